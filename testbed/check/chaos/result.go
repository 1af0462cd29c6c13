package chaos

import (
	"fmt"
	"slices"
	"time"
)

// Result is what a run found.
type Result struct {
	Seed    uint64  `json:"seed"`
	Minutes float64 `json:"minutes"` // with faults
	Sites   int     `json:"sites"`
	Jobs    Jobs    `json:"jobs"`
	Bags    Bags    `json:"bags"`
	// Demotions are of jobs that save what they have done and go on elsewhere.
	Demotions Demotions `json:"demotions"`
	// Faults came about. Skipped are the kinds of which none did, each with the reason.
	FaultCount int            `json:"fault_count"`
	Faults     map[string]int `json:"faults"`
	Skipped    []Skipped      `json:"skipped,omitempty"`
	Injected   []Injected     `json:"injected,omitempty"`

	// What must be zero. DoubleStarts are attempts that started twice and jobs
	// under wait that ran twice; LostJobs were acknowledged and have no outcome,
	// or one that nothing explains, and so have LostTasks of bags; StrayCopies, and bundles
	// of bags, stayed after a heal or the end; Overlaps are attempts that ran beside another
	// of their job, or runs beside another of their task; Miscounted are numbers of jobs that count which were
	// left out, or counted again without a loss, and checkpoints that were older than they should.
	DoubleStarts    int `json:"double_starts"`
	LostJobs        int `json:"lost_jobs"`
	LostTasks       int `json:"lost_tasks"`
	StrayCopies     int `json:"stray_copies"`
	Overlaps        int `json:"overlapping_attempts"`
	ChangedOutcomes int `json:"changed_outcomes"`
	DamagedOutputs  int `json:"damaged_outputs"`
	Miscounted      int `json:"miscounted"`
	LeftProcesses   int `json:"left_processes"`
	Crashes         int `json:"crashes"`
	// PromisesMoved are guarantees to a site's own jobs that guests moved, by what the sites count.
	PromisesMoved int `json:"promises_moved"`
	// OtherProblems are those that are in no other number.
	OtherProblems int `json:"other_problems"`

	// Unguarded are jobs under rerun of which attempts overlapped, as they may:
	// the shim was frozen and the daemon not at work.
	Unguarded int `json:"unguarded,omitempty"`

	// AuditLines are how many lines the audit logs of all sites had at the end.
	AuditLines uint64 `json:"audit_lines"`

	// Heals are the times from the end of the faults of a round until stray
	// copies were gone and the sites agreed.
	Heals Heals `json:"heals"`
	// Problems explain the numbers, for people. Missed are the targets that were.
	Problems []string `json:"problems,omitempty"`
	Missed   []string `json:"missed_targets,omitempty"`
}

// Jobs counts what became of the jobs.
type Jobs struct {
	Acknowledged int `json:"acknowledged"`
	Refused      int `json:"refused"` // by an earlier version
	Completed    int `json:"completed"`
	Failed       int `json:"failed"` // as they were meant to
	TimedOut     int `json:"timed_out"`
	Cancelled    int `json:"cancelled"`
	// LostWithShim lost their shim to a fault. SpoiltByDisk failed or lost
	// their output while the host's disk was full, and say so.
	LostWithShim int `json:"lost_with_shim"`
	SpoiltByDisk int `json:"spoilt_by_disk"`
	// LostWithNode waited for a machine that was silent for longer than its site waits for it.
	LostWithNode int `json:"lost_with_node,omitempty"`
	// LostWithTrust were lost, or lost their output, as one of their two sites trusted the
	// other one no more.
	LostWithTrust int `json:"lost_with_trust"`
	// Vandals damaged the folder of their own attempt and ended, in whatever way.
	Vandals  int `json:"vandals"`
	Attempts int `json:"attempts"` // that ran, by the ledger
	// RanAgain are jobs with more than one attempt that ran.
	RanAgain int `json:"ran_again"`
}

// Bags counts what became of bags and their tasks. An origin that is of an earlier
// version at first is given none.
type Bags struct {
	Acknowledged int `json:"acknowledged"`
	Tasks        int `json:"tasks"` // of those bags
	Completed    int `json:"completed"`
	Failed       int `json:"failed"` // as they were meant to
	Cancelled    int `json:"cancelled"`
	// These explain themselves as those of [Jobs] do.
	LostWithShim  int `json:"lost_with_shim"`
	SpoiltByDisk  int `json:"spoilt_by_disk"`
	LostWithTrust int `json:"lost_with_trust"`
	Runs          int `json:"runs"`      // of tasks, by the ledger
	RanAgain      int `json:"ran_again"` // tasks with more than one run
	OutputsRead   int `json:"outputs_read"`
}

// Demotions counts how often jobs went on elsewhere, and what those that count did. Demoted are
// jobs of all kinds of which an attempt ended so, by Causes.
type Demotions struct {
	Demoted int            `json:"demoted"`
	Causes  map[string]int `json:"causes,omitempty"`
	// Counting are jobs that count. Numbers is how many they counted, Repeated of these those that had been
	// counted before, after so many Losses.
	Counting int `json:"counting"`
	Numbers  int `json:"numbers"`
	Repeated int `json:"repeated"`
	Losses   int `json:"losses"`
}

// DemotedTarget is the share of jobs that are to be demoted at least once.
const DemotedTarget = 0.5

// Share is that of jobs that were demoted at least once.
func (r *Result) Share() float64 {
	return float64(r.Demotions.Demoted) / max(float64(r.Jobs.Acknowledged), 1)
}

// Skipped is a kind of fault that was wanted and did not come about.
type Skipped struct {
	Kind   Kind   `json:"kind"`
	Reason string `json:"reason"`
}

// Heals sums up how long the sites took to agree.
type Heals struct {
	Count  int     `json:"count"`
	Median float64 `json:"median_s"`
	Worst  float64 `json:"worst_s"`
	Target float64 `json:"target_s"`
}

func sumUp(heals []time.Duration) Heals {
	h := Heals{Count: len(heals), Target: settleTarget.Seconds()}
	if len(heals) > 0 {
		slices.Sort(heals)
		h.Median, h.Worst = heals[len(heals)/2].Seconds(), heals[len(heals)-1].Seconds()
	}
	return h
}

// Good reports whether nothing is wrong and all targets are met.
func (r *Result) Good() bool { return r.Sound() && len(r.Misses(1)) == 0 }

// Misses describes the targets of time that are missed by more than a factor.
func (r *Result) Misses(slack float64) []string {
	var missed targets
	missed.atMost(slack, "seconds from healing until the sites agree, at worst", r.Heals.Worst, r.Heals.Target)
	if r.Demotions.Counting > 0 && r.Share()*slack < DemotedTarget {
		missed = append(missed, fmt.Sprintf("share of jobs demoted at least once: %.2f, the target is %v", r.Share(), DemotedTarget))
	}
	return missed
}

// targets describes those that are missed.
type targets []string

func (t *targets) atMost(slack float64, what string, value, target float64) {
	if value > slack*target {
		*t = append(*t, fmt.Sprintf("%s: %.3g, the target is %.3g", what, value, target))
	}
}

// Sound reports whether nothing is wrong, however long it took.
func (r *Result) Sound() bool {
	return r.DoubleStarts+r.LostJobs+r.LostTasks+r.StrayCopies+r.Overlaps+r.ChangedOutcomes+r.DamagedOutputs+r.Miscounted+r.LeftProcesses+r.Crashes+r.PromisesMoved+r.OtherProblems == 0
}
