package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/api"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched"
	"kith/store"
)

// node is the site as the API sees it.
type node struct {
	*loop
	store.Backend
	d *Daemon
}

var _ api.Node = node{}

// Ask implements api.Node. A site that was forgotten may come back on any folder.
func (n node) Ask(ctx context.Context, make func(token uint64) meta.Event) (meta.Reply, error) {
	var asked meta.Event
	r, err := n.loop.Ask(ctx, func(token uint64) meta.Event {
		asked = make(token)
		return asked
	})
	if l := n.d.options.lead; l != nil && errors.Is(err, meta.ErrTooLarge) && time.Since(l.began) < leadWarm {
		return r, fmt.Errorf("%w: the member that leads has just begun, and has not heard of all sites yet", api.ErrNoLeader)
	}
	if err != nil {
		return r, err
	}
	if f, ok := asked.(meta.ForgetSite); ok {
		n.d.links.Forget(f.Site)
	}
	n.d.witness(ctx, asked)
	return r, nil
}

// Salt implements api.Node.
func (n node) Salt() ([]byte, error) { return n.d.salt.get() }

// Plan implements api.Node.
func (n node) Plan() (sitesched.Config, bool) { return n.d.plan, n.d.plan.Processors > 0 }

// Describe implements api.Node.
func (n node) Describe() api.Description {
	peers := *n.d.peers.Load()
	sent, received := n.d.files.Moved()
	desc := api.Description{
		Keys: n.d.expiry(time.Now()), Shown: make(map[job.SiteID]time.Time),
		FileBytesSent: sent, FileBytesReceived: received,
		Addresses: make(map[job.SiteID]string, len(peers)), Trouble: make(map[job.SiteID]api.Trouble),
		DiskTrouble: cmp.Or(n.trouble.tells(), n.d.runs.Scarcity(), n.d.low.tells()),
	}
	for site, t := range n.d.links.Trouble() {
		trouble := api.Trouble{Why: t.Why, Clash: t.Clash, Load: t.Load}
		if t.Why != "" {
			trouble.Since = job.Instant(t.Since)
		}
		desc.Trouble[site] = trouble
	}
	for _, c := range n.d.tries.Capabilities() {
		desc.Capabilities = append(desc.Capabilities, &kithv1.Capability{Name: c.Name, Available: c.Available, Detail: c.Detail})
	}
	for _, p := range peers {
		site := job.SiteID(p.Site)
		desc.Addresses[site] = n.d.addressOf(site)
		if end, ok := n.d.shown(site); ok {
			desc.Shown[site] = end
		}
	}
	return desc
}
