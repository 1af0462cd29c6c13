package chaos

import (
	"slices"
	"testing"
	"time"

	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/wan"
)

// overload runs one, and demands what does not depend on the machine: every
// submission is answered, by acceptance or by advice when to try again, and what
// was accepted runs once.
func overload(t *testing.T, change func(*OverloadOptions)) *Overload {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	t.Parallel()
	opt := DefaultOverloadOptions()
	opt.Dir, opt.Length, opt.Observe = t.TempDir(), 3*time.Second, func(line string) { t.Log(line) }
	change(&opt)
	r, err := RunOverload(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Problems {
		t.Error(p)
	}
	if !r.Good() || r.Accepted == 0 || r.Refused == 0 {
		t.Errorf("%+v", r)
	}
	// What is not answered at once must not be kept either.
	if r.PeakMemory > r.IdleMemory+100 {
		t.Errorf("%v jobs of which at most %d are kept took %.0f MiB, idle %.0f", r.Accepted, opt.Jobs, r.PeakMemory, r.IdleMemory)
	}
	return r
}

func TestOverload(t *testing.T) {
	overload(t, func(o *OverloadOptions) { o.Jobs = 300 })
}

// Users who submit as fast as they are answered, and heed no advice, are
// refused before their calls pile up.
func TestFlood(t *testing.T) {
	thorough(t)
	overload(t, func(o *OverloadOptions) { o.Jobs, o.Users = 300, 1500 })
}

// A site behind a bad line, and one that is frozen, delay no job between others.
func TestSlowSiteDelaysNobody(t *testing.T) {
	s := newStage(t)
	gamma := s.bed.sites[2]
	// measure returns how long jobs take that are submitted at alpha, which is
	// full, and have copies everywhere.
	measure := func() time.Duration {
		var took []time.Duration
		for range 15 {
			began := time.Now()
			id := s.submit(&kithv1.Job{Command: []string{"/bin/true"}, Processors: 1, Copies: 3})
			for !ended(&kithv1.Job{Status: s.get(id)}) {
				time.Sleep(time.Millisecond)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	measure() // warms everything up
	well := measure()
	for _, from := range []string{"alpha", "beta"} {
		scope := wan.Between(from, gamma.Name)
		for _, err := range []error{s.bed.net.SetDelay(scope, 600*time.Millisecond), s.bed.net.SetRate(scope, 20_000)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	slow := measure()
	if err := gamma.Signal(sigstop); err != nil {
		t.Fatal(err)
	}
	frozen := measure()
	if err := gamma.Signal(sigcont); err != nil {
		t.Fatal(err)
	}
	t.Logf("a job takes %v; with a slow site %v, with a frozen one %v", well, slow, frozen)
	for name, took := range map[string]time.Duration{"slow": slow, "frozen": frozen} {
		if took > 4*well {
			t.Errorf("with a %s site a job takes %v, else %v", name, took, well)
		}
	}
}
