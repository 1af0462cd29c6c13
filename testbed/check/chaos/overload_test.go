package chaos

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"kith/meta/api"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/check/wan"
	"kith/testbed/local"
)

// overload runs one, and demands what does not depend on the machine: every
// submission is answered, by acceptance or by advice when to try again, and what
// was accepted runs once. What is offered was measured a moment before: if the machine
// became so much faster meanwhile that nothing was refused, that was none, and there is another.
func overload(t *testing.T, change func(*OverloadOptions)) *Overload {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short: it takes some seconds")
	}
	t.Parallel()
	for range 3 {
		if r := overloadOnce(t, change); r.Refused > 0 {
			return r
		}
	}
	t.Fatal("the site took all that it was offered, three times")
	return nil
}

func overloadOnce(t *testing.T, change func(*OverloadOptions)) *Overload {
	t.Helper()
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
	for _, m := range r.Misses(testSlack) {
		t.Error(m)
	}
	if !r.Sound() || r.Accepted == 0 {
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

// stuck is a site that accepts every job, slowly, and ends none.
type stuck struct {
	kithv1.JobServiceClient
	kithv1.SiteServiceClient
	slow    time.Duration
	ends    int64 // so many of the jobs, one a second
	began   time.Time
	refuses bool
}

func (s *stuck) SubmitJob(context.Context, *kithv1.SubmitJobRequest, ...grpc.CallOption) (*kithv1.SubmitJobResponse, error) {
	time.Sleep(s.slow)
	if s.refuses {
		return nil, api.Refusal(api.ErrBusy)
	}
	return &kithv1.SubmitJobResponse{}, nil
}

func (s *stuck) GetSite(context.Context, *kithv1.GetSiteRequest, ...grpc.CallOption) (*kithv1.GetSiteResponse, error) {
	closed := min(s.ends, int64(time.Since(s.began)/time.Second))
	return &kithv1.GetSiteResponse{Counters: &kithv1.SiteCounters{JobsSubmitted: 300, JobsClosed: closed}}, nil
}

// A site that does not get over an overload ends the run, with an error that
// says so. One that is slow does not.
func TestOverloadEnds(t *testing.T) {
	for name, c := range map[string]struct {
		site    *stuck
		recover error
		drain   error
	}{
		"slow answers":   {&stuck{slow: time.Second}, errNotIdle, errStands},
		"only refusals":  {&stuck{refuses: true}, errNotIdle, errStands},
		"stops half-way": {&stuck{ends: 150}, nil, errStands},
		"slow":           {&stuck{ends: 300}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.site.began = time.Now()
				f := &flood{node: &local.Node{Jobs: c.site, Sites: c.site}, taken: make(map[string]bool)}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := f.recover(ctx, 10*time.Millisecond); !errors.Is(err, c.recover) {
					t.Errorf("recover: %v", err)
				}
				if err := f.drain(ctx); !errors.Is(err, c.drain) {
					t.Errorf("drain: %v", err)
				}
			})
		})
	}
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
	line := func(delay time.Duration, rate int64) {
		for _, from := range []string{"alpha", "beta"} {
			scope := wan.Between(from, gamma.Name)
			if err := errors.Join(s.bed.net.SetDelay(scope, delay), s.bed.net.SetRate(scope, rate)); err != nil {
				t.Fatal(err)
			}
		}
	}
	line(600*time.Millisecond, 20_000)
	slow := measure()
	if err := gamma.Signal(sigstop); err != nil {
		t.Fatal(err)
	}
	frozen := measure()
	if err := gamma.Signal(sigcont); err != nil {
		t.Fatal(err)
	}
	line(0, 0)
	measure()
	well = max(well, measure()) // what else the machine does may have become more meanwhile
	t.Logf("a job takes %v; with a slow site %v, with a frozen one %v", well, slow, frozen)
	for name, took := range map[string]time.Duration{"slow": slow, "frozen": frozen} {
		if took > 4*well {
			t.Errorf("with a %s site a job takes %v, else %v", name, took, well)
		}
	}
}
