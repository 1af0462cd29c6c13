package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"kith/internal/job"
)

// Stream is the submissions at one site of an [Exponential] model.
type Stream struct {
	Site job.SiteID
	// MIPS is the speed of each of the site's nodes, in million instructions a second.
	MIPS float64
	// Jobs is how many are submitted here, at least 1.
	Jobs int
	// MeanGap is the mean time between two submissions.
	MeanGap time.Duration
}

// Exponential makes sequential jobs with exponential sizes and exponential gaps
// at several sites (spec 004 section 3.1).
//
// A size is in million instructions (MI), so that a run lasts size ÷ speed. A
// [Job.Run] is the run time at ReferenceMIPS; at a node of speed v the run
// lasts Run × ReferenceMIPS ÷ v.
type Exponential struct {
	Streams []Stream
	// MeanSizeMI is the mean size of a job; zero means 10⁶.
	MeanSizeMI float64
	// ReferenceMIPS is the speed for which runs are written down; zero means 500.
	ReferenceMIPS float64
	// Drop is how many jobs are left out of the figures at either end, in the
	// order of submission over all sites.
	Drop int
}

// Federation is workloads for several sites that were made together.
type Federation struct {
	// Sites has one workload for each stream, on one clock: the instant 0 is
	// where all streams began, so that a first submission is later.
	Sites []*Workload
	// From and Until limit the submissions that count in figures: From ≤ Submit < Until.
	From, Until job.Time
}

// Generate returns the jobs of all sites. Each site draws from a source of its
// own that is seeded from rng, gaps and sizes apart: sizes of one seed are the
// same for any gaps and speeds (common random numbers). The error wraps [ErrArgument].
func (m Exponential) Generate(rng *rand.Rand) (*Federation, error) {
	if m.MeanSizeMI == 0 {
		m.MeanSizeMI = 1e6
	}
	if m.ReferenceMIPS == 0 {
		m.ReferenceMIPS = 500
	}
	if err := m.validate(); err != nil {
		return nil, err
	}
	f := &Federation{}
	var all []job.Time
	for _, s := range m.Streams {
		gaps := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))  //nolint:gosec // A simulation, no secret.
		sizes := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64())) //nolint:gosec // A simulation, no secret.
		w := &Workload{Name: fmt.Sprintf("exponential, site %s", s.Site), Tick: 1, Jobs: make([]Job, s.Jobs)}
		at := 0.0
		for i := range w.Jobs {
			at += gaps.ExpFloat64() * float64(s.MeanGap)
			run := sizes.ExpFloat64() * m.MeanSizeMI / m.ReferenceMIPS * float64(time.Second)
			d := max(time.Duration(math.Round(run)), 1)
			w.Jobs[i] = Job{ID: int64(i) + 1, Submit: job.Time(math.Round(at)), Run: d, Estimate: d, Procs: 1}
			all = append(all, w.Jobs[i].Submit)
		}
		f.Sites = append(f.Sites, w)
	}
	slices.Sort(all)
	f.From, f.Until = all[m.Drop], job.Never
	if m.Drop > 0 {
		f.Until = all[len(all)-m.Drop]
	}
	return f, nil
}

func (m Exponential) validate() error {
	total := 0
	if len(m.Streams) == 0 {
		return fmt.Errorf("no streams: %w", ErrArgument)
	}
	for _, s := range m.Streams {
		switch {
		case s.Jobs < 1 || s.Jobs > MaxJobs:
			return fmt.Errorf("site %s: jobs %d: must be 1 to %d: %w", s.Site, s.Jobs, MaxJobs, ErrArgument)
		case s.MeanGap <= 0 || float64(s.MeanGap)*float64(s.Jobs) > float64(MaxSpan)/2:
			return fmt.Errorf("site %s: mean gap %v: must be above 0 and all within %v: %w", s.Site, s.MeanGap, MaxSpan/2, ErrArgument)
		case !(s.MIPS > 0):
			return fmt.Errorf("site %s: speed %v MIPS: must be above 0: %w", s.Site, s.MIPS, ErrArgument)
		}
		total += s.Jobs
	}
	switch {
	case !(m.MeanSizeMI > 0) || !(m.ReferenceMIPS > 0) || m.MeanSizeMI/m.ReferenceMIPS > job.MaxWalltime.Seconds()/100:
		return fmt.Errorf("mean size %v MI at %v MIPS: must be above 0 and at most a hundredth of ten years: %w", m.MeanSizeMI, m.ReferenceMIPS, ErrArgument)
	case m.Drop < 0 || 2*m.Drop >= total:
		return fmt.Errorf("drop %d at either end of %d jobs: some must be left: %w", m.Drop, total, ErrArgument)
	}
	return nil
}

// PriorityLoad is a column of the gaps of spec 004 section 3.1.
type PriorityLoad uint8

// The loads. Offered are about 111, 95 and 83 % of what the sites can do.
const (
	Heavy PriorityLoad = iota
	Medium
	Light
)

var priorityLoadNames = [...]string{"heavy", "medium", "light"}

// String returns heavy, medium or light.
func (l PriorityLoad) String() string {
	if int(l) < len(priorityLoadNames) {
		return priorityLoadNames[l]
	}
	return fmt.Sprintf("unknown(%d)", uint8(l))
}

// PriorityNodes is the number of nodes at each site of [Priority].
const PriorityNodes = 4

// Tables 3.1 and 3.2 of spec 004 section 3.1: sites A to E of the cases 1 to 3.
// Gaps are in seconds.
var (
	priorityMIPS = [3][5]float64{{500, 500, 500, 500, 500}, {700, 600, 500, 400, 300}, {300, 400, 500, 600, 700}}
	priorityJobs = [3][5]int{{880, 880, 880, 880, 880}, {1232, 1056, 880, 704, 528}, {528, 704, 880, 1056, 1232}}
	priorityGaps = [3][3][5]int{
		Heavy:  {{450, 450, 450, 450, 450}, {321, 375, 450, 563, 750}, {750, 563, 450, 375, 321}},
		Medium: {{525, 525, 525, 525, 525}, {375, 438, 525, 656, 875}, {875, 656, 525, 438, 375}},
		Light:  {{600, 600, 600, 600, 600}, {429, 500, 600, 750, 1000}, {1000, 750, 600, 500, 429}},
	}
)

// Priority returns the model of spec 004 section 3.1: five sites a to e of four
// nodes, 4400 jobs of which the middle 4000 count. Cases count from 1 to 3.
func Priority(number int, load PriorityLoad) (Exponential, error) {
	if number < 1 || number > 3 || load > Light {
		return Exponential{}, fmt.Errorf("case %d, load %v: cases are 1 to 3, loads heavy, medium, light: %w", number, load, ErrArgument)
	}
	m := Exponential{MeanSizeMI: 1e6, ReferenceMIPS: 500, Drop: 200}
	for i, site := range []job.SiteID{"a", "b", "c", "d", "e"} {
		m.Streams = append(m.Streams, Stream{
			Site: site, MIPS: priorityMIPS[number-1][i], Jobs: priorityJobs[number-1][i],
			MeanGap: time.Duration(priorityGaps[load][number-1][i]) * time.Second,
		})
	}
	return m, nil
}
