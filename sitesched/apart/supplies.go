package apart

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kith/cluster/wire"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
	"kith/store/blobstore"
)

// supplyTime is how long the machine waits for what it needs.
const supplyTime = 30 * time.Second

// mostPayload bounds what a bag or a job runs, in bytes: requests to submit one have less, and the list of the
// files that a job goes on with comes to it.
const mostPayload = 16 << 20

// errNotDriven is returned for what the leader has while there is none.
var errNotDriven = errors.New("no member of the site drives this machine")

// supplies is what the worker's files and runner have of the leader: chunks, what bags run, and
// files of other sites.
type supplies struct{ w *Worker }

// ask asks the leader and waits for the answer.
func (p supplies) ask(ctx context.Context, n *kithv1.Need) (*kithv1.Supply, error) {
	s := p.w.driven()
	if s == nil {
		return nil, errNotDriven
	}
	ctx, cancel := context.WithTimeout(ctx, supplyTime)
	defer cancel()
	answer := make(chan *kithv1.Supply, 1)
	s.mu.Lock()
	s.last++
	n.Need = s.last
	s.needs[n.Need] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.needs, n.Need)
		s.mu.Unlock()
	}()
	s.out.put(&kithv1.DriveResponse{Report: &kithv1.DriveResponse_Need{Need: n}})
	select {
	case a := <-answer:
		if a.GetError() != "" {
			return nil, errors.New(a.GetError())
		}
		return a, nil
	case <-s.ctx.Done():
		return nil, errNotDriven
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Keep implements blobstore.Copies: the leader takes what an attempt left.
func (supplies) Keep(*blobstore.Store, []blobstore.Sum) error { return nil }

// Bring implements blobstore.Copies.
func (p supplies) Bring(sum blobstore.Sum) ([]byte, error) {
	var data []byte
	for {
		a, err := p.ask(p.w.ctx, &kithv1.Need{What: &kithv1.Need_Chunk{Chunk: sum[:]}, Offset: int64(len(data))})
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", blobstore.ErrCopies, err)
		case a.GetUnknown():
			return nil, blobstore.ErrNotFound
		}
		data = append(data, a.GetData()...)
		if !a.GetMore() || len(a.GetData()) == 0 || len(data) > blobstore.MaxChunk {
			return data, nil // whose sum is looked at
		}
	}
}

// HeldPayload returns what the tasks of a bundle run.
func (p supplies) HeldPayload(bundle job.AttemptID) ([]byte, error) {
	var data []byte
	for {
		a, err := p.ask(p.w.ctx, &kithv1.Need{What: &kithv1.Need_Bundle{Bundle: wire.AttemptName(bundle)}, Offset: int64(len(data))})
		switch {
		case err != nil:
			return nil, err
		case a.GetUnknown():
			return nil, store.ErrUnknown
		case len(data)+len(a.GetData()) > mostPayload:
			return nil, fmt.Errorf("what %v runs has more than %d bytes", bundle, mostPayload)
		}
		data = append(data, a.GetData()...)
		if !a.GetMore() || len(a.GetData()) == 0 {
			return data, nil
		}
	}
}

// Payload returns what the tasks of a bag of this site run.
func (p supplies) Payload(bag job.ID) ([]byte, error) {
	return p.HeldPayload(job.AttemptID{Job: bag, Number: 1})
}

// ReadFile reads a file of another site.
func (p supplies) ReadFile(ctx context.Context, site job.SiteID, r *kithv1.FileRequest) (*kithv1.FileReply, error) {
	a, err := p.ask(ctx, &kithv1.Need{What: &kithv1.Need_Peer{Peer: &kithv1.PeerFile{Site: string(site), Request: r}}})
	if err != nil {
		return nil, err
	}
	return a.GetFile(), nil
}

// The rest of a site's records nobody asks for here.

func (supplies) Outputs(job.ID) ([]byte, error)             { return nil, store.ErrUnknown }
func (supplies) AttemptFiles(job.AttemptID) ([]byte, error) { return nil, store.ErrUnknown }
func (supplies) TaskFilesFrom(job.ID, uint32) ([]store.TaskFiles, error) {
	return nil, store.ErrUnknown
}
