package daemon

import (
	"context"
	"log/slog"
	"time"

	"kith/sitesched/runner"
	"kith/store"
	"kith/store/boltstore/reserve"
)

// roomEvery is how often a disk that was full is looked at.
const roomEvery = 2 * time.Second

// room keeps what is written when the disk is full: the reserve, and the space
// that attempts hold that have ended.
type room struct {
	reserve *reserve.File
	trouble *trouble
	full    chan struct{} // wakes keep
}

// openRoom takes the reserve of a data folder and has the store give it up.
func openRoom(dir string, bytes int64, backend store.Backend, t *trouble, log *slog.Logger) (*room, error) {
	f, err := reserve.New(dir, bytes)
	if err != nil {
		return nil, err
	}
	r := &room{reserve: f, trouble: t, full: make(chan struct{}, 1)}
	if err := f.Take(); err != nil {
		log.Warn("no reserve on the disk: when it is full the ends of jobs cannot be written down", "error", err.Error(),
			"remedy", "free space on the disk of the data folder; the reserve is taken then")
	}
	// Where several members keep the facts, none of them needs the reserve of this one.
	if b, ok := backend.(interface {
		Keep(r *reserve.File, told func(error))
	}); ok {
		b.Keep(f, t.reserve)
	}
	t.wake = func() {
		select {
		case r.full <- struct{}{}:
		default:
		}
	}
	return r, nil
}

// keep makes room when the disk is full, and takes the reserve again when there is
// room, until ctx is done.
func (r *room) keep(ctx context.Context, runs *runner.Runner) {
	tick := time.NewTicker(roomEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.full:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if r.trouble.full() != nil {
			runs.MakeRoom()
		}
		if r.reserve.Missing() && r.reserve.Take() == nil {
			r.trouble.reserve(nil)
		}
	}
}
