package meta

import (
	"testing"
	"time"

	"kith/internal/job"
	"kith/sitesched"
)

// told lets time pass and returns how many processors are free by the latest load that
// others are told, and how long it took until that left; -1 if none did.
func (h *silentHost) told(d time.Duration) (free int32, after time.Duration) {
	free = -1
	for begin, end := h.now, h.now.Add(d); ; {
		for _, ev := range []Event{Tick{}, Pass{}} {
			for _, e := range h.Step(h.now, ev) {
				if a, ok := e.(Advertise); ok {
					free, after = a.Digest.Load.Free, h.now.Sub(begin)
				}
			}
		}
		if h.now = max(h.NextWake(h.now), h.now+1); h.now > end {
			h.now = end
			return free, after
		}
	}
}

// A site that is never dry, as a wide job waits, tells at once of processors that come
// free: when a job ends, and when the claim of a copy that came for them is denied.
// Else jobs as long as the time between two loads leave them idle for ever. (Wide
// schedules 34315 and 47726.)
func TestProcessorsThatComeFreeAreTold(t *testing.T) {
	h := newSilentHost(t, 1)
	h.Step(h.now, Receive{From: "alpha", Message: Withdraw{Attempt: h.host.copiesOf("alpha")[0].rec.ID}})
	local := func(n uint64) job.AttemptID {
		return job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: n}, Number: 1}
	}
	for n, processors := range []int32{1, 1, 2} {
		h.Step(h.now, Submit{Request: job.Request{Name: "x", User: "ada", Processors: processors, Walltime: time.Hour}})
		h.Step(h.now, Pass{})
		if processors == 1 {
			h.Step(h.now, AttemptStarted{Attempt: local(uint64(n + 1)), At: h.now})
		}
	}
	const load = 5 * time.Second
	within := func(what string, want int32) {
		t.Helper()
		if free, after := h.told(load / 2); free != want || after > dryPause {
			t.Errorf("%s: others are told of %d free processors after %v, want %d after %v at most", what, free, after, want, dryPause)
		}
	}
	h.told(load)
	h.host.advertise(h.now)
	h.Step(h.now, AttemptEnded{Attempt: local(2), Outcome: job.Outcome{Kind: job.Success, End: h.now}})
	within("a job has ended", 1)
	copied := job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 9}, Number: 1}
	h.Step(h.now, Receive{From: "alpha", Message: PlaceCopy{Attempt: copied, Request: job.Request{Processors: 1, Walltime: time.Minute}}})
	h.Step(h.now, Pass{})
	h.Step(h.now, Receive{From: "alpha", Message: Verdict{Attempt: copied, Reason: job.HeldByOther, Sent: h.now}})
	within("a claim is denied", 1)
	if free, after := h.told(load / 2); free != -1 {
		t.Errorf("nothing has changed: others are told of %d free processors after %v", free, after)
	}
}

// A site whose own jobs go strictly first has no processors for others while one waits. When that
// one is gone, and the site is not dry, as a copy waits, it tells at once that it has.
func TestProcessorsThatNobodyWaitsForAreTold(t *testing.T) {
	h := newSilentHostOf(t, sitesched.Config{Processors: 2, Backfill: sitesched.EASY, Queues: sitesched.DualStrict}, 1)
	h.Step(h.now, Receive{From: "alpha", Message: Withdraw{Attempt: h.host.copiesOf("alpha")[0].rec.ID}})
	local := func(n uint64) job.ID { return job.ID{Origin: "beta", Generation: 1, Seq: n} }
	for n, processors := range []int32{1, 2} {
		h.Step(h.now, Submit{Request: job.Request{Name: "x", User: "ada", Processors: processors, Walltime: time.Hour}})
		h.Step(h.now, Pass{})
		if n == 0 {
			h.Step(h.now, AttemptStarted{Attempt: job.AttemptID{Job: local(1), Number: 1}, At: h.now})
		}
	}
	copied := job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 9}, Number: 1}
	h.Step(h.now, Receive{From: "alpha", Message: PlaceCopy{Attempt: copied, Request: job.Request{Processors: 2, Walltime: time.Minute}}})
	const load = 5 * time.Second
	h.told(load)
	h.host.advertise(h.now)
	if d := h.host.describe(h.now); !d.Load.Blocked || d.Load.Free != 1 || d.Load.Queued != 2 {
		t.Fatalf("%+v", d.Load)
	}
	h.Step(h.now, Cancel{Job: local(2)})
	if free, after := h.told(load / 2); free != 1 || after > dryPause {
		t.Errorf("others are told of %d free processors after %v, want 1 after %v at most", free, after, dryPause)
	}
}

// Processors that come free and are taken before others are told of them are counted: a copy that
// left the site before may find room there. (Wide schedule 70033647.)
func TestProcessorsThatCameFreeAreCounted(t *testing.T) {
	h := newSilentHost(t, 1)
	h.Step(h.now, Receive{From: "alpha", Message: Withdraw{Attempt: h.host.copiesOf("alpha")[0].rec.ID}})
	for n := uint64(1); n <= 2; n++ {
		h.Step(h.now, Submit{Request: job.Request{Name: "x", User: "ada", Processors: 1, Walltime: time.Hour}})
		h.Step(h.now, Pass{})
		h.Step(h.now, AttemptStarted{Attempt: job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: n}, Number: 1}, At: h.now})
	}
	const load = 5 * time.Second
	h.told(load)
	h.host.advertise(h.now)
	before := h.host.describe(h.now).TimesFreed
	ended := job.AttemptID{Job: job.ID{Origin: "beta", Generation: 1, Seq: 1}, Number: 1}
	h.Step(h.now, AttemptEnded{Attempt: ended, Outcome: job.Outcome{Kind: job.Success, End: h.now}})
	h.Step(h.now, Pass{})
	h.Step(h.now, Submit{Request: job.Request{Name: "x", User: "ada", Processors: 1, Walltime: time.Hour}})
	h.Step(h.now, Pass{})
	if free, after := h.told(load / 2); free != 0 || after > dryPause {
		t.Errorf("others are told of %d free processors after %v, want 0 after %v at most", free, after, dryPause)
	}
	for range 2 {
		if now := h.host.describe(h.now).TimesFreed; now != before+1 {
			t.Errorf("%d times more than others knew were free, want %d", now, before+1)
		}
		h.told(2 * load) // counts nothing again
	}
}
