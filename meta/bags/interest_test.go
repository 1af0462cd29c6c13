package bags

import (
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
)

func TestInterest(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 13))
	var i Interest
	now := job.Time(time.Hour)
	open := func(what string, want bool) {
		t.Helper()
		if got, again := i.Open(now); got != want || got && again != now || !got && again <= now {
			t.Errorf("%s: open %v, again at %v", what, got, again)
		}
	}
	open("no offer", false)
	i.Offer(3)
	open("an offer", true)
	i.Answer(2, now, rng)
	open("some tasks", true)
	i.Answer(0, now, rng)
	open("none", false)
	i.Offer(2)
	open("fewer are offered", false)
	i.Offer(4)
	open("more are offered", true)
	i.Answer(0, now, rng)
	i.Offer(0)
	open("withdrawn", false)
	if _, again := i.Open(now); again != job.Never {
		t.Errorf("without an offer it asks again at %v", again)
	}
	i.Offer(1)
	open("offered anew", true)
	i.Offer(-5)
	open("a number below zero", false)
}

// Who gets nothing asks less and less often, but at least twice a minute, and at once when
// an ask gets something.
func TestAsksThatGetNothingAreFew(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 14))
	i, now, asks := Interest{}, job.Time(0), 0
	i.Offer(1)
	for now < job.Time(time.Hour) {
		open, again := i.Open(now)
		if !open {
			if wait := again.Sub(now); wait < FirstWait/2 || wait > MaxWait {
				t.Fatalf("ask %d waits for %v", asks, wait)
			}
			now = again
			continue
		}
		asks++
		i.Answer(0, now, rng)
	}
	if asks < 120 || asks > 250 {
		t.Errorf("%d asks in an hour", asks)
	}
	i.Recorded()
	if open, _ := i.Open(now); !open {
		t.Error("it waits though results of it are recorded")
	}
	i.Answer(0, now, rng)
	if _, again := i.Open(now); again.Sub(now) < MaxWait/2 {
		t.Errorf("after one more ask that got none it waits for %v", again.Sub(now))
	}
	i.Answer(1, now, rng)
	if open, _ := i.Open(now); !open {
		t.Error("it waits after an ask that got a task")
	}
	i.Answer(0, now, rng)
	if _, again := i.Open(now); again.Sub(now) > FirstWait {
		t.Errorf("the first wait is %v", again.Sub(now))
	}
}

// When an offer is withdrawn, pilots ask until an ask gets nothing, and not again.
func TestPilotsAskOnceMore(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 15))
	var i Interest
	last := func(what string, want bool) {
		t.Helper()
		if i.Last() != want {
			t.Errorf("%s: one more ask %v", what, !want)
		}
	}
	i.Offer(0)
	last("nothing was offered", false)
	i.Offer(1)
	last("an offer", false)
	i.Offer(0)
	last("withdrawn", true)
	i.Offer(0)
	last("withdrawn twice", true)
	i.Answer(1, 0, rng)
	last("an ask on its way got a task", true)
	i.Answer(0, 0, rng)
	last("an ask got none", false)
	i.Offer(0)
	last("withdrawn again", false)
	i.Offer(1)
	i.Offer(0)
	last("offered and withdrawn", true)
	i.Offer(2)
	last("offered anew", false)
}
