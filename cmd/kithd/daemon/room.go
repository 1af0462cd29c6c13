package daemon

import (
	"context"
	"log/slog"
	"time"

	"kith/meta"
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
	log     *slog.Logger
}

// openRoom takes the reserve of a data folder and has the store give it up.
func openRoom(dir string, bytes int64, backend store.Backend, t *trouble, log *slog.Logger) (*room, error) {
	f, err := reserve.New(dir, bytes)
	if err != nil {
		return nil, err
	}
	r := &room{reserve: f, trouble: t, full: make(chan struct{}, 1), log: log}
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

// keep makes room when the disk is full, takes the reserve again when there is room, and
// tells what low says of it whenever that changes, until ctx is done.
func (r *room) keep(ctx context.Context, runs *runner.Runner, low func(was bool) error, tell func(meta.Event)) {
	tick := time.NewTicker(roomEvery)
	defer tick.Stop()
	for was := false; ; {
		if err := low(was); (err != nil) != was {
			was = !was
			r.tellLow(err, tell)
		}
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

// tellLow tells the engine and the operator whether there is room for work of others.
func (r *room) tellLow(err error, tell func(meta.Event)) {
	if err == nil {
		r.log.Info("the disk has room again: work of other sites is taken")
		tell(meta.DiskSeen{})
		return
	}
	r.log.Warn("the disk is low on room: no work of other sites is taken", "error", err.Error())
	tell(meta.DiskSeen{Low: err.Error()})
}

// lowOnRoom says why the disk has no room for work of others, if the jobs run at this machine.
func (d *Daemon) lowOnRoom(was bool) error {
	if d.driver != nil {
		return nil // its machine says
	}
	return d.disk.Low(was, d.cfg.Files.KeepFreeBytes)
}
