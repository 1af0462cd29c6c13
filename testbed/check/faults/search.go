package faults

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Search says what to look at.
type Search struct {
	// Seeds is how many schedules are made, from FirstSeed on.
	Seeds     int
	FirstSeed uint64
	Size      Size
	// Wide makes wide schedules, see [Wide].
	Wide bool
	// Bags makes schedules with bags of tasks beside the jobs, see [Bagged].
	Bags bool
	// Hostile makes schedules with an enemy among the sites, see [Attacked] and
	// [WideAttacked].
	Hostile bool
	// Members makes schedules with sites whose facts several members keep, see [Membered].
	Members bool
	// Levels makes schedules whose sites are levels of a hierarchy, see [Leveled].
	Levels bool
	// Workers run side by side; at least 1.
	Workers int
	// Progress is called now and then, by one goroutine at a time; nil for never.
	Progress func(done, failed int)
}

// maxFailures is how many failures a search shrinks; it counts all.
const maxFailures = 10

// Report is what a search found.
type Report struct {
	FirstSeed uint64 `json:"first_seed"`
	// Schedules that were explored.
	Schedules int     `json:"schedules"`
	Seconds   float64 `json:"seconds"`
	// Faults counts what went wrong, by kind.
	Faults map[Kind]int64 `json:"faults"`
	// Jobs that a client was told of; Starts of processes; Messages between sites.
	Jobs   int64 `json:"jobs"`
	Starts int64 `json:"starts"`
	// Evicted are attempts that left for a home job of their host.
	Evicted  int64 `json:"evicted"`
	Messages int64 `json:"messages"`
	// Refused are submissions that got an error for an answer, for good.
	Refused int64 `json:"refused"`
	// LostWithDisk are jobs whose only record was on a disk that was wiped:
	// more is not promised.
	LostWithDisk int64 `json:"lost_with_disk"`
	// What was broken, by schedules: S1 to S3, S5 and L1, L2, S4, L4, L5, anything else.
	DoubleStarts     int `json:"double_starts"`
	LostJobs         int `json:"lost_jobs"`
	StrayCopies      int `json:"stray_copies"`
	BrokenGuarantees int `json:"broken_guarantees"`
	IdleSites        int `json:"idle_sites,omitempty"`
	MissingCopies    int `json:"missing_copies,omitempty"`
	Other            int `json:"other"`
	// SlowestAgreement is how long after the last fault sites that differed
	// agreed again on who holds what, the slowest of all schedules.
	SlowestAgreement float64 `json:"slowest_agreement_seconds"`
	// Failures are the first ones, by seed.
	Failures []Failure `json:"failures,omitempty"`
}

// Failure is a schedule that broke an invariant.
type Failure struct {
	Seed      uint64 `json:"seed"`
	Invariant string `json:"invariant"`
	Text      string `json:"text"`
	// Schedule is a small one that breaks the same, as [Parse] reads it.
	Schedule string `json:"schedule"`
	// Story is what happened in it.
	Story []string `json:"story"`
}

// Failed returns how many schedules broke something.
func (r *Report) Failed() int {
	return r.DoubleStarts + r.LostJobs + r.StrayCopies + r.BrokenGuarantees + r.IdleSites + r.MissingCopies + r.Other
}

// FaultCount returns how many faults were injected.
func (r *Report) FaultCount() int64 {
	var n int64
	for _, k := range r.Faults {
		n += k
	}
	return n
}

// Run looks at all schedules of a search, until ctx ends.
func (x Search) Run(ctx context.Context) *Report {
	began := time.Now()
	report := &Report{FirstSeed: x.FirstSeed, Faults: make(map[Kind]int64)}
	seeds := make(chan uint64)
	var mu sync.Mutex
	var failed []uint64
	var workers sync.WaitGroup
	for range max(x.Workers, 1) {
		workers.Go(func() {
			for seed := range seeds {
				r := Run(x.schedule(seed), nil)
				mu.Lock()
				report.add(r)
				if r.Violation != nil {
					failed = append(failed, seed)
				}
				if x.Progress != nil && report.Schedules%64 == 0 {
					x.Progress(report.Schedules, report.Failed())
				}
				mu.Unlock()
			}
		})
	}
	for i := range x.Seeds {
		select {
		case seeds <- x.FirstSeed + uint64(i):
			continue
		case <-ctx.Done():
		}
		break
	}
	close(seeds)
	workers.Wait()
	slices.Sort(failed)
	for _, seed := range failed[:min(len(failed), maxFailures)] {
		if ctx.Err() == nil {
			report.Failures = append(report.Failures, explain(seed, x.schedule(seed)))
		}
	}
	report.Seconds = time.Since(began).Seconds()
	return report
}

// schedule makes the schedule of a seed.
func (x *Search) schedule(seed uint64) *Schedule {
	switch {
	case x.Levels && x.Bags:
		return LeveledBags(seed, x.Size)
	case x.Levels:
		return Leveled(seed, x.Size)
	case x.Members:
		return Membered(seed, x.Size)
	case x.Wide && x.Hostile:
		return WideAttacked(seed, x.Size)
	case x.Wide:
		return Wide(seed, x.Size)
	case x.Hostile:
		return Attacked(seed, x.Size)
	case x.Bags:
		return Bagged(seed, x.Size)
	}
	return Random(seed, x.Size)
}

// add takes up a result.
func (r *Report) add(x *Result) {
	r.Schedules++
	for k, n := range x.Injected {
		r.Faults[k] += int64(n)
	}
	r.Jobs += int64(x.Acknowledged)
	r.Starts += int64(x.Starts)
	r.Evicted += int64(x.Evicted)
	r.Refused += int64(x.Refused)
	r.Messages += x.Messages
	r.LostWithDisk += int64(x.LostWithDisk)
	r.SlowestAgreement = max(r.SlowestAgreement, x.Agreed.Seconds())
	if x.Violation == nil {
		return
	}
	switch x.Violation.Invariant {
	case "S1", "S2", "S3":
		r.DoubleStarts++
	case "S5", "L1":
		r.LostJobs++
	case "L2":
		r.StrayCopies++
	case "S4":
		r.BrokenGuarantees++
	case "L4":
		r.IdleSites++
	case "L5":
		r.MissingCopies++
	default:
		r.Other++
	}
}

// explain makes a failure small and tells its story.
func explain(seed uint64, s *Schedule) Failure {
	s = Shrink(s)
	f := Failure{Seed: seed, Schedule: s.String(), Story: Story(s)}
	if v := Run(s, nil).Violation; v != nil {
		f.Invariant, f.Text = v.Invariant, v.Text
	}
	return f
}

// First returns the failure of the lowest seed of a search as it is, without
// making it small; nil if there is none.
func First(ctx context.Context, x Search) *Failure {
	var mu sync.Mutex
	var found *Failure
	var next atomic.Int64
	var workers sync.WaitGroup
	for range max(x.Workers, 1) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i >= int64(x.Seeds) {
					return
				}
				seed := x.FirstSeed + uint64(i)
				mu.Lock()
				done := found != nil && found.Seed < seed
				mu.Unlock()
				if done {
					return
				}
				s := x.schedule(seed)
				if v := Run(s, nil).Violation; v != nil {
					mu.Lock()
					if found == nil || seed < found.Seed {
						found = &Failure{Seed: seed, Invariant: v.Invariant, Text: v.Text, Schedule: s.String()}
					}
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	return found
}
