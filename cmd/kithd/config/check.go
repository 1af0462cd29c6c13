package config

import (
	"fmt"
	"net"

	"kith/meta"
	"kith/sitesched"
)

// badFunc takes a mistake about a key. others are further keys that it is
// about: it is none if one of those is wrong by itself.
type badFunc func(key, says string, others ...string)

// check calls bad for everything that is wrong.
func (c *Config) check(bad badFunc) {
	for _, k := range c.Knobs() {
		checkKnob(k.Key, k, bad)
	}
	for i := range c.Peers {
		for _, k := range c.Peers[i].Knobs() {
			checkKnob(fmt.Sprintf("peers[%d]%s", i, k.Key[len("peers"):]), k, bad)
		}
	}
	mc := c.MetaConfig()
	mc.Check(func(field string, value any, remedy string) {
		bad(field, fmt.Sprintf("%s = %s: %s", field, literalOf(value), remedy))
	})
	if keep := c.Scheduler.KeepFree; keep > c.Processors() {
		bad("no_harm.keep_free", fmt.Sprintf("no_harm.keep_free = %d: the site has %d processors: give at most as many", keep, c.Processors()), "scheduler.processors")
	} else if q := c.Scheduler.Queues; keep > 0 && q != sitesched.DualBackfill && q != sitesched.DualPreempt {
		bad("no_harm.keep_free", fmt.Sprintf("no_harm.keep_free = %d: works with scheduler.queues = %q or %q only: leave it out, or change the queues", keep, sitesched.DualBackfill, sitesched.DualPreempt), "scheduler.queues")
	}
	c.checkHarm(bad)
	c.checkListen(bad)
	c.checkMembers(bad)
	c.checkPeers(bad)
}

// checkHarm compares what guests may do with the queues that let them.
func (c *Config) checkHarm(bad badFunc) {
	needs := map[meta.HarmMode]sitesched.Queues{meta.HarmBounded: sitesched.DualBackfill, meta.HarmInvisible: sitesched.DualPreempt}
	switch want, has := needs[c.NoHarm.Mode]; {
	case has && c.Scheduler.Queues != want:
		bad("no_harm.mode", fmt.Sprintf("no_harm.mode = %q: works with scheduler.queues = %q only, and they are %q: leave one of the two out", c.NoHarm.Mode, want, c.Scheduler.Queues), "scheduler.queues")
	case !has && c.Scheduler.Queues == sitesched.DualPreempt:
		bad("no_harm.mode", fmt.Sprintf("no_harm.mode = %q: with scheduler.queues = %q guests leave as soon as jobs of this site need their processors, which is %q: leave one of the two out", c.NoHarm.Mode, sitesched.DualPreempt, meta.HarmInvisible), "scheduler.queues")
	}
}

func (c *Config) checkMembers(bad badFunc) {
	m := &c.Members
	if m.Self == "" {
		for _, k := range [][2]string{{"members.cluster", m.Cluster}, {"members.address", m.Address}, {"members.executor", m.Executor}, {"members.executor_address", m.ExecutorAddress}} {
			if k[1] != "" {
				bad(k[0], fmt.Sprintf("%s = %q, and members.self is missing: name this machine among the members", k[0], k[1]), "members.self")
			}
		}
		return
	}
	if m.Cluster == "" {
		bad("members.cluster", "members.cluster is missing: draw one with kithd members id, and give it to all members of the site", "members.self")
	}
	if c.Listen.InsecureLoopback {
		bad("members.self", fmt.Sprintf("members.self = %q: members prove themselves with the keys of the site, and listen.insecure_loopback has none: leave one of them out", m.Self), "listen.insecure_loopback")
	}
	switch {
	case m.Executor == "" && c.Scheduler.Processors > 0:
		bad("scheduler.processors", fmt.Sprintf("scheduler.processors = %d: a site of several members has processors at one machine, which members.executor names, and that is missing: "+
			"name it, or leave both out, and the site's jobs run at other sites", c.Scheduler.Processors), "members.self", "members.executor")
	case m.Executor != "" && c.Scheduler.Processors == 0:
		bad("scheduler.processors", fmt.Sprintf("scheduler.processors is missing: whichever member leads must know how many processors machine %s has: give all members of the site the same number", m.Executor), "members.executor")
	}
	if m.Executor == "" && m.ExecutorAddress != "" {
		bad("members.executor_address", fmt.Sprintf("members.executor_address = %q, and members.executor is missing: name the machine with the processors", m.ExecutorAddress), "members.executor")
	}
	if c.Level.Rank > 0 {
		bad("level.rank", fmt.Sprintf("level.rank = %d: a level does what the processors of its machine can, and a site of several members goes on at another machine: leave it out", c.Level.Rank), "members.self")
	}
	if c.Owner.Sharing {
		bad("owner.sharing", "owner.sharing = true: a site of several members does not share its machines with an owner: leave it out", "members.self")
	}
	host, port, err := net.SplitHostPort(c.MemberAddress())
	if err == nil && (isWildcard(host) || port == "0") {
		bad("members.address", fmt.Sprintf("members.address is missing, and other members cannot dial %q: give the host:port under which they reach this machine", c.MemberAddress()), "listen.address", "listen.advertise", "members.self")
	}
}

func checkKnob(key string, k Knob, bad badFunc) {
	remedy := k.check()
	switch {
	case remedy == "":
	case k.get() == any(""):
		bad(key, fmt.Sprintf("%s is missing: %s", key, remedy))
	default:
		bad(key, fmt.Sprintf("%s = %s: %s", key, k.write(k.get()), remedy))
	}
}

func (c *Config) checkListen(bad badFunc) {
	host, port, err := net.SplitHostPort(c.Listen.Address)
	if err != nil {
		return // said already
	}
	if c.Listen.InsecureLoopback && !IsLoopback(host) {
		bad("listen.address", fmt.Sprintf("listen.address = %q is not loopback, and listen.insecure_loopback serves anyone who reaches it: "+
			"give a loopback address, or leave listen.insecure_loopback out and make keys with kithd init", c.Listen.Address),
			"listen.insecure_loopback")
		return
	}
	if isWildcard(host) && c.Listen.Advertise == "" {
		bad("listen.address", fmt.Sprintf("listen.address = %q names no address that other sites could dial: "+
			"set listen.advertise to the one that they reach, such as %q, or to \"none\" if they do not dial this site", c.Listen.Address,
			net.JoinHostPort("10.8.0.1", port)), "listen.advertise")
	}
}

func (c *Config) checkPeers(bad badFunc) {
	seen := make(map[string]bool)
	for i, p := range c.Peers {
		site, address := fmt.Sprintf("peers[%d].site", i), fmt.Sprintf("peers[%d].address", i)
		switch {
		case p.Site == c.Site && p.Site != "":
			bad(site, fmt.Sprintf("%s = %q is this site: name the others only", site, p.Site), "site")
		case seen[p.Site]:
			bad(site, fmt.Sprintf("%s = %q: name every other site once", site, p.Site))
		}
		seen[p.Site] = true
		if host, _, err := net.SplitHostPort(p.Address); err == nil && c.Listen.InsecureLoopback && !IsLoopback(host) {
			bad(address, fmt.Sprintf("%s = %q is not loopback, and with listen.insecure_loopback nothing proves who answers there: "+
				"give a loopback address, or leave listen.insecure_loopback out and make keys with kithd init", address, p.Address),
				"listen.insecure_loopback")
		}
		if reaches(p.Address, c.Listen.Address) || same(c.Listen.Advertise, p.Address) {
			bad(address, fmt.Sprintf("%s = %q is this site's own address: give that of %s", address, p.Address, p.Site),
				"listen.address", "listen.advertise", site)
		}
	}
}

// Doubts returns what may be right, but is not on this machine: addresses to
// listen at that none of its interfaces has. own are the addresses that it has.
func (c *Config) Doubts(own []net.Addr) Mistakes {
	host, _, _ := net.SplitHostPort(c.Listen.Address)
	ip := net.ParseIP(host)
	if ip == nil || ip.IsUnspecified() || ip.IsLoopback() || has(own, ip) {
		return nil
	}
	return Mistakes{{Key: "listen.address", Says: fmt.Sprintf(
		"listen.address = %q: no interface of this machine has this address; kithd cannot start with it here", c.Listen.Address)}}
}

func has(own []net.Addr, ip net.IP) bool {
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}
