package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// ListBags implements kithv1.BagServiceServer.
func (s *Server) ListBags(ctx context.Context, r *kithv1.ListBagsRequest) (*kithv1.ListBagsResponse, error) {
	size, err := pageSize(r.GetPageSize())
	if err != nil {
		return nil, err
	}
	q := meta.BagQuery{Limit: size, Keep: bagSelection(r)}
	if text := r.GetPageToken(); text != "" {
		if q.After, err = job.ParseID(text); err != nil {
			return nil, &FieldError{Field: "page_token", Reason: "is not one that ListBags returned", Err: err}
		}
	}
	var list meta.BagList
	if err := s.Node.Glance(ctx, func(_ job.Time, v meta.Views) { list = v.ListBags(q) }); err != nil {
		return nil, err
	}
	resp := &kithv1.ListBagsResponse{}
	for i := range list.Bags {
		b := briefBag(&list.Bags[i])
		b.LeftOut = leftOutOfBagList
		resp.Bags = append(resp.Bags, b)
	}
	if list.More {
		resp.NextPageToken = list.Bags[len(list.Bags)-1].Record.ID.String()
	}
	return resp, nil
}

// pageSize returns how many entries a page may have.
func pageSize(asked int32) (int, error) {
	switch {
	case asked == 0:
		return defaultPage, nil
	case asked < 0 || asked > largestPage:
		return 0, &FieldError{Field: "page_size", Reason: fmt.Sprintf("%d: must be 0 to %d", asked, largestPage)}
	}
	return int(asked), nil
}

// bagSelection returns what a request selects.
func bagSelection(r *kithv1.ListBagsRequest) func(*store.Bag) bool {
	states, users, names := r.GetStates(), r.GetUsers(), r.GetNames()
	return func(b *store.Bag) bool {
		switch {
		case r.GetAllStates():
		case len(states) == 0 && b.State.Terminal(), len(states) > 0 && !slices.Contains(states, bagState(b.State)):
			return false
		}
		return (len(users) == 0 || slices.Contains(users, b.Request.User)) && (len(names) == 0 || slices.Contains(names, b.Request.Name))
	}
}

// watchPause is how long a watch of a bag waits from one response to the next: a bag may
// change ten thousand times a second.
const watchPause = 250 * time.Millisecond

// WatchBag implements kithv1.BagServiceServer.
func (s *Server) WatchBag(r *kithv1.WatchBagRequest, g grpc.ServerStreamingServer[kithv1.WatchBagResponse]) error {
	id, err := bagID(r.GetBagId())
	if err != nil {
		return err
	}
	w, _, err := s.BagChanges.follow(map[job.ID]bool{id: true}, "")
	if err != nil {
		return err
	}
	defer w.close()
	sent := int64(-1)
	for {
		if _, err := w.next(); err != nil { // what comes from here on wakes it again
			return err
		}
		view, err := s.bagView(g.Context(), id)
		if err != nil {
			return err // it was purged, if it was there before
		}
		b := fullBag(&view)
		b.LeftOut = leftOutOfBagWatch
		if v := b.GetStatus().GetVersion(); v != sent {
			if err := g.Send(&kithv1.WatchBagResponse{Bag: b}); err != nil {
				return err
			}
			sent = v
		}
		if view.Record.State.Terminal() {
			return nil
		}
		if err := rest(g.Context(), watchPause); err != nil {
			return err
		}
		select {
		case <-w.wake:
		case <-g.Context().Done():
			return g.Context().Err()
		}
	}
}

// rest waits, or returns why the context has ended.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
