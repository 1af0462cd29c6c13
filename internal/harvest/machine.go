package harvest

import (
	"errors"
	"fmt"
	"math"
)

// Errors of what callers ask; the text names the value and the remedy.
var (
	// ErrMachine is returned for a machine that no owner can have.
	ErrMachine = errors.New("not a usable machine")
	// ErrWork is returned for work that is negative or not a number, and for no work at all
	// where some is needed.
	ErrWork = errors.New("not a usable amount of work")
	// ErrNobody is returned where no machine has anything left for guests.
	ErrNobody = errors.New("no machine has time for guests")
	// ErrTooMany is returned where all sets of so many machines cannot be looked at.
	ErrTooMany = errors.New("too many machines to look at all sets")
	// ErrLoad is returned for a measurement that cannot be.
	ErrLoad = errors.New("not a usable measurement")
)

// Machine is a processor, and what its owner does with it.
type Machine struct {
	// Lambda is how many jobs of the owner come, in 1/s. Without any the owner is never there.
	Lambda float64
	// Rho is the share of the processor that they take, from 0. From 1 on guests never run.
	Rho float64
	// Sigma is the standard deviation of their service times, in s; 0 if all are alike.
	Sigma float64
	// Speed is the work that the processor does in a second.
	Speed float64
}

// Check returns an error that wraps [ErrMachine] unless there can be such a machine.
func (m Machine) Check() error {
	for _, f := range []struct {
		name  string
		value float64
	}{{"lambda", m.Lambda}, {"rho", m.Rho}, {"sigma", m.Sigma}, {"speed", m.Speed}} {
		if f.value < 0 || math.IsNaN(f.value) || math.IsInf(f.value, 0) {
			return fmt.Errorf("%s %v: use a number from 0: %w", f.name, f.value, ErrMachine)
		}
	}
	switch {
	case m.Speed == 0:
		return fmt.Errorf("speed 0: use the work that it does in a second: %w", ErrMachine)
	case m.Lambda == 0 && m.Rho > 0:
		return fmt.Errorf("rho %v with lambda 0: what takes time has come at some time; use at least one arrival in the time measured: %w", m.Rho, ErrMachine)
	}
	return nil
}

// check is Check for several, by their places.
func check(ms []Machine) error {
	for i := range ms {
		if err := ms[i].Check(); err != nil {
			return fmt.Errorf("machine %d: %w", i, err)
		}
	}
	return nil
}

// Rate is how fast guest work gets on in the mean: (1−ρ)τ, in work per second; 0 if the owner
// leaves nothing.
func (m Machine) Rate() float64 { return max(0, 1-m.Rho) * m.Speed }

// service is the mean service time of the owner's jobs, 1/μ, in s; 0 if there are none.
func (m Machine) service() float64 {
	if m.Lambda == 0 {
		return 0
	}
	return m.Rho / m.Lambda
}

// variation is the coefficient of variation of service, θ = σμ; 0 if service takes no time.
func (m Machine) variation() float64 {
	if m.service() == 0 {
		return 0
	}
	return m.Sigma / m.service()
}

// quiet says that the owner takes no time.
func (m Machine) quiet() bool { return m.Rho == 0 }

// SpreadOver is the standard deviation of the share that the owner takes of a window of that
// many seconds: √(λE(S²)/window), at most ½. It is that of all work that comes in the window, and
// so a little high where windows are short.
func (m Machine) SpreadOver(window float64) float64 {
	if m.quiet() || window <= 0 {
		return 0
	}
	s := m.service()
	return min(0.5, math.Sqrt(m.Lambda*(s*s+m.Sigma*m.Sigma)/window))
}
