package cluster

import (
	"errors"
	"fmt"
	"math"

	"kith/internal/job"
)

// ErrImpossible is wrapped by the error about a digest that no site can have.
var ErrImpossible = errors.New("impossible load")

// What a site may say of itself. Speeds are those that a configuration may have.
const (
	mostWork  = 1e15 // seconds
	mostProcs = 1e12 // processors asked for over those there
	mostSpeed = 1e3
)

// Possible returns nil for a digest that a site could have, else an error that wraps
// [ErrImpossible] and names the first field that no site has like that, and its value.
// Such a digest must not count: it would attract or repel every job.
func (d *Digest) Possible() error {
	// A load is a sum of floats, so an empty queue may come to a little less than nothing.
	const nothing = -1e-3
	switch {
	case d.Processors < 0 || d.Processors > job.MaxProcessors:
		return impossible("processors", d.Processors, "0 to 2^24")
	case d.MemoryBytes < 0 || d.MemoryBytes > job.MaxMemoryBytes:
		return impossible("memory_bytes", d.MemoryBytes, "0 to 2^50")
	case d.Load.Free < -job.MaxProcessors || d.Load.Free > job.MaxProcessors:
		return impossible("free_processors", d.Load.Free, "at most 2^24")
	case !within(d.Load.Work, nothing, mostWork):
		return impossible("load_work", d.Load.Work, "0 to 10^15 seconds")
	case !within(d.Load.Procs, nothing, mostProcs):
		return impossible("load_procs", d.Load.Procs, "0 to 10^12")
	case d.Speed != 0 && !within(d.Speed, 1/mostSpeed, mostSpeed):
		return impossible("speed", d.Speed, "0.001 to 1000, or 0 of a site that does not say")
	case d.GuestWalltime < 0 || d.GuestWalltime > job.MaxWalltime:
		return impossible("guest_walltime", d.GuestWalltime, "0 to 10 years")
	case d.KeptFree < 0 || d.KeptFree > job.MaxProcessors:
		return impossible("kept_free", d.KeptFree, "0 to 2^24")
	case d.Load.Queued < 0 || d.Load.Running < 0:
		return impossible("queued_copies", min(d.Load.Queued, d.Load.Running), "0 or more")
	}
	if err := d.Owner.possible(); err != nil {
		return err
	}
	return d.Level.possible()
}

// within is false for what is no number.
func within(v, least, most float64) bool { return v >= least && v <= most && !math.IsNaN(v) }

func impossible(field string, value any, range_ string) error {
	return fmt.Errorf("%w: %s is %v, must be %s", ErrImpossible, field, value, range_)
}
