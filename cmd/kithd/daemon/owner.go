package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"kith/cluster"
	"kith/internal/durable"
	"kith/internal/harvest"
	"kith/internal/job"
	"kith/internal/pathkind"
	"kith/meta"
	"kith/sitesched/executor/owner"
)

// ownerName is the file in the data folder with what the owner did in the last four weeks.
const ownerName = "owner.json"

const (
	// ownerTold is how often the engine is told what the owner is expected to do.
	ownerTold = 10 * time.Minute
	// ownerSoon is how much of an hour must be measured before it counts while it goes on.
	ownerSoon = 5 * time.Minute
	// ownerSlowest is how long a span is at most: how often somebody comes is seen by spans.
	ownerSlowest = time.Minute
	// maxOwnerFile bounds what is read of the file; four weeks take some 150 kB.
	maxOwnerFile = 1 << 20
)

// ownerWatch measures the owner of the machine and tells the engine what to expect of him. It
// belongs to one goroutine.
type ownerWatch struct {
	read func() (owner.Span, error)
	now  func() job.Time
	tell func(meta.Event)
	path string
	log  *slog.Logger
	// fastest is how long a span is at least.
	fastest time.Duration

	meter    harvest.Meter
	sampler  harvest.Sampler
	usage    [harvest.Widths]harvest.Usage
	hour     harvest.Hour
	measured time.Duration // of this hour
	interval time.Duration
	toldAt   job.Time
	lost     int // spans of this hour of which nothing is known
	why      error
}

// watchOwner makes the watch of a site that shares its machine.
func (d *Daemon) watchOwner(adopted func() []int) *ownerWatch {
	sensor := owner.New(owner.Config{Site: os.Getpid(), Adopted: adopted})
	return &ownerWatch{
		read: sensor.Read, now: d.loop.clock.now, tell: d.loop.tell, path: filepath.Join(d.cfg.Data, ownerName), log: d.log, fastest: d.cfg.Owner.Interval,
		meter: harvest.Meter{Processors: int(d.cfg.Processors())},
	}
}

// run measures until ctx is done.
func (w *ownerWatch) run(ctx context.Context) {
	w.begin()
	timer := time.NewTimer(w.interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			w.look()
			timer.Reset(w.interval)
		}
	}
}

// begin tells the engine what is known from before.
func (w *ownerWatch) begin() {
	w.hour, w.interval = harvest.HourOf(w.now()), w.fastest
	if err := w.load(); err != nil {
		w.log.Warn("what is known of the machine's owner is not used: it begins anew", "error", err.Error())
		w.usage = [harvest.Widths]harvest.Usage{}
	}
	_, _ = w.read() // the first one begins the first span
	w.say()
}

// look takes up what happened since the last time.
func (w *ownerWatch) look() {
	if hour := harvest.HourOf(w.now()); hour != w.hour {
		w.endHour(hour)
	}
	span, err := w.read()
	switch {
	case err != nil:
		w.miss(err)
	case span.Length > 3*w.interval: // the machine slept, or the daemon stood still
		w.miss(fmt.Errorf("a span of %v", span.Length.Round(time.Second)))
	default:
		w.meter.Add(span.Length, span.Held)
		w.sampler.Add(min(1, span.Held/float64(max(1, w.meter.Processors))))
		w.measured += span.Length
	}
	if w.now().Sub(w.toldAt) >= ownerTold {
		w.say()
	}
}

func (w *ownerWatch) miss(err error) {
	w.lost++
	w.why = err
	w.meter.Gap()
}

// endHour takes an hour down and begins the next one.
func (w *ownerWatch) endHour(next harvest.Hour) {
	w.take()
	w.meter.NextHour()
	w.interval = min(ownerSlowest, max(w.fastest, time.Hour/time.Duration(w.sampler.EndHour())))
	if w.lost > 0 {
		w.log.Warn("spans of the machine's owner were not measured", "lost", w.lost, "last", w.why.Error())
	}
	w.hour, w.measured, w.lost = next, 0, 0
	if err := w.save(); err != nil {
		w.log.Warn("what is known of the machine's owner is not saved", "error", err.Error())
	}
}

// take adds what is known of this hour to what is known of all.
func (w *ownerWatch) take() {
	loads, ok := w.meter.Hour()
	if !ok || w.measured < ownerSoon {
		return
	}
	for i := range loads {
		if err := w.usage[i].Add(w.hour, loads[i]); err != nil {
			w.log.Error("a load of the machine's owner cannot be", "error", err.Error())
		}
	}
}

// say tells the engine what to expect.
func (w *ownerWatch) say() {
	w.take()
	w.toldAt = w.now()
	o := new(cluster.Owner)
	for i := range o.Loads {
		o.Loads[i] = w.usage[i].Predict(w.hour, w.hour+1).Load
	}
	w.tell(meta.OwnerSeen{Owner: o})
}

// ownerHour is an hour in the file.
type ownerHour struct {
	Hour  harvest.Hour
	Loads [harvest.Widths]harvest.Load
}

func (w *ownerWatch) save() error {
	var list []ownerHour
	for at, loads := range harvest.Known(&w.usage, w.hour) {
		list = append(list, ownerHour{at, loads})
	}
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return durable.WriteFile(w.path, data)
}

// load reads the file; that there is none is no error.
func (w *ownerWatch) load() error {
	if err := pathkind.File(w.path); err != nil { // a pipe would be waited for
		return err
	}
	if info, err := os.Stat(w.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	} else if info.Size() > maxOwnerFile {
		return fmt.Errorf("%s has %d bytes, more than %d: remove it", w.path, info.Size(), maxOwnerFile)
	}
	data, err := os.ReadFile(w.path)
	if err != nil {
		return err
	}
	var list []ownerHour
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("%s: %w: remove it", w.path, err)
	}
	for _, h := range list {
		for i := range h.Loads {
			if err := w.usage[i].Add(h.Hour, h.Loads[i]); err != nil {
				return fmt.Errorf("%s: %w: remove it", w.path, err)
			}
		}
	}
	return nil
}
