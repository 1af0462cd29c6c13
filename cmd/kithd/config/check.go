package config

import (
	"fmt"
	"net"
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
	c.checkListen(bad)
	c.checkPeers(bad)
	c.checkGossip(bad)
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
	if !c.Listen.Insecure && !isLoopback(host) {
		bad("listen.address", fmt.Sprintf("listen.address = %q is not loopback, and callers are not authenticated in this version: "+
			"set listen.insecure_no_authentication = true if only trusted machines can reach it", c.Listen.Address),
			"listen.insecure_no_authentication")
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
		if reaches(p.Address, c.Listen.Address) || same(c.Listen.Advertise, p.Address) {
			bad(address, fmt.Sprintf("%s = %q is this site's own address: give that of %s", address, p.Address, p.Site),
				"listen.address", "listen.advertise", site)
		}
	}
}

func (c *Config) checkGossip(bad badFunc) {
	if c.Gossip.Listen == "" {
		if len(c.Gossip.Join) > 0 {
			bad("gossip.join", "gossip.join without gossip.listen: set gossip.listen to the address at which this site listens", "gossip.listen")
		}
		return
	}
	if collide(c.Gossip.Listen, c.Listen.Address) {
		bad("gossip.listen", fmt.Sprintf("gossip.listen = %q is taken by listen.address: give another port", c.Gossip.Listen), "listen.address")
	}
}

// Doubts returns what may be right, but is not on this machine: addresses to
// listen at that none of its interfaces has. own are the addresses that it has.
func (c *Config) Doubts(own []net.Addr) Mistakes {
	var doubts Mistakes
	for _, l := range []struct{ key, address string }{{"listen.address", c.Listen.Address}, {"gossip.listen", c.Gossip.Listen}} {
		host, _, _ := net.SplitHostPort(l.address)
		ip := net.ParseIP(host)
		if ip == nil || ip.IsUnspecified() || ip.IsLoopback() || has(own, ip) {
			continue
		}
		doubts = append(doubts, Mistake{Key: l.key, Says: fmt.Sprintf(
			"%s = %q: no interface of this machine has this address; kithd cannot start with it here", l.key, l.address)})
	}
	return doubts
}

func has(own []net.Addr, ip net.IP) bool {
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}
