package daemon

import (
	"sync"

	"kith/cluster"
	"kith/cluster/gossip"
	"kith/cluster/gossip/plain"
	"kith/internal/job"
	"kith/meta"
)

// startGossip joins the peers, and returns what spreads this site's load there. What
// gossip brings goes to the engine.
func (d *Daemon) startGossip(in *inbox, streams *streams) (*spread, error) {
	cfg := gossip.Config{
		Site: d.siteID(), Sites: func() []job.SiteID { return sitesOf(*d.peers.Load()) }, Trusted: d.admits, Logger: d.log,
		Seen: func(g cluster.Digest) { in.post(meta.LoadSeen{Digest: g}) },
		Head: d.heardHead, Refused: d.refusedInGossip,
	}
	if i := d.identity; i != nil {
		cfg.Lanes, cfg.Signer, cfg.Verifier = tlsLanes{i.endpoint, d.links.Addresses}, i.keys, proofs{i.trusted}
		cfg.Proves = d.provesLane
	} else {
		d.lanes = plain.New(plain.Config{
			Site: d.siteID(), Address: d.addressOf, Admit: d.admits, DialOptions: dialOptions(),
			Accept: func(site job.SiteID, c gossip.Conn) { d.gossip.Accept(site, c) },
		})
		cfg.Lanes, cfg.Signer, cfg.Verifier = d.lanes, gossip.Unsigned{}, gossip.Unsigned{}
	}
	var err error
	if d.gossip, err = gossip.Start(cfg); err != nil {
		return nil, err
	}
	return &spread{gossip: d.gossip, streams: streams}, nil
}

// addressOf returns host:port of a peer, the first to be tried; empty if it is none or only
// dials out.
func (d *Daemon) addressOf(site job.SiteID) string {
	if all := d.links.Addresses(site); len(all) > 0 {
		return all[0]
	}
	return ""
}

// closeGossip leaves the others.
func (d *Daemon) closeGossip() {
	if d.gossip != nil {
		if err := d.gossip.Close(); err != nil {
			d.log.Warn("gossip", "error", err.Error())
		}
	}
	if d.lanes != nil {
		d.lanes.Close()
	}
}

// spread tells other sites how loaded this one is.
type spread struct {
	gossip  *gossip.Gossip
	streams *streams
}

// needsStream reports whether a load is to go to a site over the stream: the first one
// on a stream, and those that gossip cannot carry as there is no lane to the site, or as
// the clocks differ so much that the site refuses the digests.
func (s *spread) needsStream(site job.SiteID) bool {
	return s.streams.first(site) || !s.gossip.Up(site) || s.gossip.Skewed(site)
}

// streams knows to which sites a stream is up.
type streams struct {
	mu sync.Mutex
	up map[job.SiteID]*stream
}

// stream is one that is up.
type stream struct {
	told bool // a load went over it
}

func newStreams() *streams { return &streams{up: make(map[job.SiteID]*stream)} }

func (s *streams) set(site job.SiteID, up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if up {
		s.up[site] = &stream{}
	} else {
		delete(s.up, site)
	}
}

func (s *streams) away(site job.SiteID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up[site] == nil
}

// first reports whether no load went over the stream to a site yet, and that one goes now.
func (s *streams) first(site job.SiteID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.up[site]
	if st == nil || st.told {
		return false
	}
	st.told = true
	return true
}
