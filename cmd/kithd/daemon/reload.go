package daemon

import (
	"log/slog"
	"os"
	"slices"

	"kith/cmd/kithd/config"
	"kith/internal/job"
	"kith/meta"
)

// Reload tells a running site when to read its configuration again.
type Reload struct {
	// Path is the file, Signal says when to read it.
	Path   string
	Signal <-chan os.Signal
	// Level is the log's.
	Level *slog.LevelVar
	// InsecureLoopback says that the command line has the flag of this name.
	InsecureLoopback bool
}

// reload reads the configuration again and takes up what a running site can.
// Whatever is wrong with the file, the site goes on with what it has. It does not
// wait for the engine, which may be waiting for its disk.
func (d *Daemon) reload(r *Reload) {
	next, err := config.Load(r.Path)
	if err == nil {
		next.Listen.InsecureLoopback = next.Listen.InsecureLoopback || r.InsecureLoopback
		d.takeUp(next, r)
		return
	}
	d.log.Warn("configuration not reloaded", "path", r.Path, "mistakes", mistakesOf(err))
}

// mistakesOf returns the mistakes of a configuration, or err as the only one.
func mistakesOf(err error) []string { return mistakesIn(err).Lines() }

// takeUp makes next the running configuration as far as that goes without a
// restart, and logs each key that has changed.
func (d *Daemon) takeUp(next config.Config, r *Reload) {
	if d.identity != nil {
		d.running.Peers = *d.peers.Load() // they are facts and do not come from the file
		next.Peers = d.running.Peers
		d.reloadKeys()
	}
	running := config.Reloaded(&d.running, &next)
	// The mixture of old and new may be wrong although both are right.
	if err := running.Validate(); err != nil {
		d.log.Warn("configuration not reloaded", "path", r.Path, "mistakes", mistakesOf(err))
		return
	}
	taken, left := config.Changes(&d.running, &running), config.Changes(&running, &next)
	before := d.running.Peers
	d.running = running
	r.Level.Set(running.Log.SlogLevel())
	if d.identity == nil {
		d.setPeers(before, running.Peers)
	}
	mc := running.MetaConfig()
	d.loop.tell(meta.Reconfigure{Placement: mc.Placement, Limits: mc.Limits, Timing: mc.Timing, Bags: mc.Bags, NoHarm: mc.NoHarm, Level: mc.Level, Peers: sitesOf(running.Peers)})

	d.log.Info("configuration reloaded", "changed", len(taken))
	for _, c := range taken {
		d.log.Info("configuration changed", "key", c.Key, "old", c.Old, "new", c.New)
	}
	for _, c := range left {
		d.log.Warn("configuration change needs a restart", "key", c.Key, "running", c.Old, "file", c.New)
	}
}

// setPeers admits and dials the peers that are configured now, and ends the
// streams to those that no longer are.
func (d *Daemon) setPeers(before, now []config.Peer) {
	d.peers.Store(&now)
	for _, p := range now {
		d.links.Dial(job.SiteID(p.Site), p.Address)
	}
	for _, p := range before {
		if !slices.ContainsFunc(now, func(q config.Peer) bool { return q.Site == p.Site }) {
			d.links.Leave(job.SiteID(p.Site))
		}
	}
	d.gossip.TrustChanged()
}

func sitesOf(peers []config.Peer) []job.SiteID {
	sites := make([]job.SiteID, len(peers))
	for i, p := range peers {
		sites[i] = job.SiteID(p.Site)
	}
	return sites
}
