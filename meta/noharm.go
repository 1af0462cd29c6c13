package meta

import (
	"errors"
	"time"

	"kith/internal/job"
)

// HarmMode says what guests may do to home jobs.
type HarmMode string

// HarmPromise lets guests have what no promise to a home job needs. It is the only mode there
// is: the others stop guests that run, and start them again elsewhere.
const HarmPromise HarmMode = "promise"

// NoHarm is what a site does so that its guests cost its own jobs little, beside what its local
// scheduler does (sitesched.Config.KeepFree). The zero value leaves guests alone.
type NoHarm struct {
	// Measure has the site measure what guests cost.
	Measure bool
	// GuestWalltime is the longest time limit of a job of another site, zero for any.
	GuestWalltime time.Duration
	// Bound is for how long guests alone may keep a home job waiting before it counts as a
	// violation. It is counted, not enforced.
	Bound time.Duration
}

// check calls bad for everything that is wrong, see [Config.Check].
func (n *NoHarm) check(bad func(key string, value any, remedy string)) {
	if n.GuestWalltime < 0 || n.GuestWalltime > job.MaxWalltime {
		bad("no_harm.guest_walltime", n.GuestWalltime, "give a positive time, or 0s for any")
	}
	if n.Bound < 0 || n.Bound > job.MaxWalltime {
		bad("no_harm.bound", n.Bound, "give a time, 10m if in doubt")
	}
}

// ParseHarmMode reads a mode. It tells those that are to come from what is no mode at all.
func ParseHarmMode(word string) (HarmMode, error) {
	switch word {
	case string(HarmPromise):
		return HarmPromise, nil
	case "bounded", "invisible":
		return "", errors.New(`give "promise": this mode would have to stop guests that run and go on with them from a checkpoint later, which Kith cannot yet`)
	}
	return "", errors.New(`give "promise"`)
}
