package apart

import (
	"context"
	"errors"
	"sync"

	"kith/cluster/wire"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
	"kith/store/blobstore"
)

// chunkBytes is the most of a chunk in one answer; of what attempts run it is [wire.Payload], which almost all
// of those have less than.
const chunkBytes = 1 << 20

// places bounds what is brought for the machine at a time: of this site, and of each other one by itself, so
// that one that hangs keeps nothing else waiting.
type places struct {
	mu sync.Mutex
	of map[job.SiteID]chan struct{}
}

// get returns the places of a site; empty for this one. There are no more than sites of which the attempts at
// the machine are.
func (p *places) get(site job.SiteID) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = make(map[job.SiteID]chan struct{})
	}
	if p.of[site] == nil {
		p.of[site] = make(chan struct{}, readsAtOnce)
	}
	return p.of[site]
}

// supply answers what the machine needs when it has a place, for as long as the machine waits.
func (d *Driver) supply(ctx context.Context, s *session, n *kithv1.Need) {
	ctx, cancel := context.WithTimeout(ctx, supplyTime)
	defer cancel()
	place := s.supply.get(job.SiteID(n.GetPeer().GetSite()))
	select {
	case place <- struct{}{}:
	case <-ctx.Done():
		return // the machine waits no longer
	}
	defer func() { <-place }()
	s.out.put(&kithv1.DriveRequest{Order: &kithv1.DriveRequest_Supply{Supply: d.supplyOf(ctx, n)}})
}

// supplyOf answers what the machine needs.
func (d *Driver) supplyOf(ctx context.Context, n *kithv1.Need) *kithv1.Supply {
	a := &kithv1.Supply{Need: n.GetNeed()}
	var err error
	switch what := n.GetWhat().(type) {
	case *kithv1.Need_Chunk:
		if len(what.Chunk) != len(blobstore.Sum{}) {
			a.Unknown = true
			return a
		}
		a.Data, err = d.cfg.Files.Chunk(blobstore.Sum(what.Chunk))
		part(a, n.GetOffset(), chunkBytes)
	case *kithv1.Need_Bundle:
		var bundle job.AttemptID
		if bundle, err = wire.AttemptID(what.Bundle); err == nil {
			a.Data, err = d.cfg.Files.BagOf(bundle)
			part(a, n.GetOffset(), wire.Payload)
		}
	case *kithv1.Need_Peer:
		a.File, err = d.cfg.Peers.ReadFile(ctx, job.SiteID(what.Peer.GetSite()), what.Peer.GetRequest())
	}
	switch {
	case errors.Is(err, blobstore.ErrNotFound), errors.Is(err, store.ErrUnknown):
		a.Unknown = true
	case err != nil:
		a.Error = job.ClipText(err.Error(), mostText)
	}
	return a
}

// part leaves so many bytes at most of an answer, from an offset on.
func part(a *kithv1.Supply, offset int64, most int) {
	a.Data = a.Data[max(0, min(offset, int64(len(a.Data)))):]
	a.More = len(a.Data) > most
	a.Data = a.Data[:min(len(a.Data), most)]
}
