package meta

import (
	"errors"
	"fmt"
	"time"

	"kith/internal/job"
)

// HarmMode says what guests may do to home jobs. The zero value is [HarmPromise].
type HarmMode string

// The modes. Under all but the first guests that run are made to leave.
const (
	// HarmPromise lets guests have what no promise to a home job needs.
	HarmPromise HarmMode = "promise"
	// HarmBounded has guests leave so that they alone keep no home job waiting for longer than
	// [NoHarm.Bound].
	HarmBounded HarmMode = "bounded"
	// HarmInvisible has home jobs start as if there were no guests. It is what the local
	// scheduler does under sitesched.DualPreempt.
	HarmInvisible HarmMode = "invisible"
)

// NoHarm is what a site does so that its guests cost its own jobs little, beside what its local
// scheduler does (sitesched.Config.KeepFree). The zero value leaves guests alone.
type NoHarm struct {
	// Measure has the site measure what guests cost.
	Measure bool
	// GuestWalltime is the longest time limit of a job of another site, zero for any.
	GuestWalltime time.Duration
	// Mode is one of the modes, empty for [HarmPromise].
	Mode HarmMode
	// Bound is for how long guests alone may keep a home job waiting before it counts as a
	// violation. It is enforced under [HarmBounded], else only counted.
	Bound time.Duration
}

// evicts reports whether guests that run may have to leave.
func (n *NoHarm) evicts() bool { return n.Mode == HarmBounded || n.Mode == HarmInvisible }

// check calls bad for everything that is wrong, see [Config.Check]. grace is how long
// guests may take to leave.
func (n *NoHarm) check(grace time.Duration, bad func(key string, value any, remedy string)) {
	if n.GuestWalltime < 0 || n.GuestWalltime > job.MaxWalltime {
		bad("no_harm.guest_walltime", n.GuestWalltime, "give a positive time, or 0s for any")
	}
	if n.Bound < 0 || n.Bound > job.MaxWalltime {
		bad("no_harm.bound", n.Bound, "give a time, 10m if in doubt")
	}
	if _, err := ParseHarmMode(string(n.Mode)); err != nil && n.Mode != "" {
		bad("no_harm.mode", string(n.Mode), err.Error())
	}
	if n.Mode == HarmBounded && n.Bound < grace {
		bad("no_harm.bound", n.Bound, fmt.Sprintf("give at least checkpoint.max_grace, the %v that guests may take to leave, or make that shorter", grace))
	}
	if n.Mode == HarmBounded && !n.Measure {
		bad("no_harm.mode", string(n.Mode), "measure what guests cost: the bound is on that")
	}
}

// ParseHarmMode reads a mode.
func ParseHarmMode(word string) (HarmMode, error) {
	switch m := HarmMode(word); m {
	case HarmPromise, HarmBounded, HarmInvisible:
		return m, nil
	}
	return "", errors.New(`give "promise", "bounded" or "invisible"`)
}
