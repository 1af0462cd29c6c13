package join

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
	_ "time/tzdata" // names of zones mean something on any machine

	"kith/internal/job"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/replay"
	"kith/testbed/workload"
)

// Study is a federation with its jobs, ready to be run.
type Study struct {
	cfg Config
	// sites and jobs are in the order of the configuration.
	sites []federation.Site
	jobs  []*workload.Workload
	// left counts the jobs of each site that were submitted after the shortest
	// log had ended, end is when it did.
	left []int
	end  job.Time
}

// Open checks a configuration and reads or makes the jobs of all sites. The
// error is an [Error].
func Open(c Config) (*Study, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Study{cfg: c, left: make([]int, len(c.Sites)), end: job.Never}
	var errs []error
	for i := range c.Sites {
		w, err := c.workload(i)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.jobs = append(s.jobs, w)
		s.sites = append(s.sites, c.Sites[i].site(w.Processors))
	}
	if err := collected(errs); err != nil {
		return nil, err
	}
	if err := s.align(); err != nil {
		return nil, err
	}
	if !c.Whole {
		if err := s.cut(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Jobs returns how many jobs there are at all sites.
func (s *Study) Jobs() int {
	n := 0
	for _, w := range s.jobs {
		n += len(w.Jobs)
	}
	return n
}

// site is s for package federation; the words have been checked.
func (s *SiteConfig) site(processors int32) federation.Site {
	backfill, _ := replay.ParsePolicy(s.Policy)
	queues, _ := sitesched.ParseQueues(s.Queues)
	scope, _ := sitesched.ParseScope(s.Guarantee)
	return federation.Site{
		ID: job.SiteID(s.Name), Processors: processors, Backfill: backfill, Queues: queues, Scope: scope, GuaranteeDepth: *s.GuaranteeDepth, Speed: *s.Speed,
	}
}

// workload reads or makes the jobs of site i and changes them as it says, in
// the order in which published schedules were made: what does not fit goes
// first, then the window is cut, then run times are stretched.
func (c *Config) workload(i int) (*workload.Workload, error) {
	s := &c.Sites[i]
	key := fmt.Sprintf("sites[%d], %s", i, s.Name)
	w, err := c.source(i)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	processors := w.Processors
	if s.Processors != nil {
		processors = *s.Processors
	}
	if processors == 0 {
		return nil, fmt.Errorf("%s: the log does not say how large the machine is; give processors", key)
	}
	overrun, err := workload.ParseOverrun(s.Overrun)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	steps := []func() error{
		func() error { w, err = w.Fit(processors, overrun); return err },
		func() error { w, err = w.Window(s.Skip, s.Jobs); return err },
		func() error { w, err = w.Stretch(*s.ScaleRuntime); return err },
		func() error {
			if s.PerfectEstimates {
				w = w.PerfectEstimates()
			}
			now := w.OfferedLoad(processors) / *s.Speed
			if s.Load == 0 || now == 0 {
				return nil
			}
			w, err = w.ScaleLoad(s.Load / now)
			return err
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if len(w.Jobs) == 0 {
			return nil, fmt.Errorf("%s: %s has no job left that fits %d processors behind the first %d", key, w.Name, processors, s.Skip)
		}
	}
	return w, nil
}

// source reads the log of site i, or makes its jobs up from a sequence of its own.
func (c *Config) source(i int) (*workload.Workload, error) {
	s := &c.Sites[i]
	if s.Log != nil {
		return s.Log, nil
	}
	if s.Generate == "" {
		path := s.Trace
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.folder, path)
		}
		zone, err := parseTimezone(s.Timezone)
		if err != nil {
			return nil, err
		}
		w, err := workload.OpenIn(path, zone)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("trace %q: there is no such file as %s", s.Trace, path)
		case err != nil:
			return nil, err
		case s.Timezone != "" && !w.WallClock:
			return nil, fmt.Errorf("timezone %q: the log %s says by itself when things happened; leave the key out", s.Timezone, s.Trace)
		case c.Align == alignCalendar && s.Timezone == "" && w.WallClock:
			return nil, fmt.Errorf("trace %q: tells times by a clock of a zone that it does not name; give timezone = %q or the like, or choose align = %q",
				s.Trace, "Europe/Berlin", alignStart)
		}
		return w, nil
	}
	processors := int32(0)
	if s.Processors != nil {
		processors = *s.Processors
	}
	count := s.Jobs
	if count == 0 {
		count = 5000
	}
	rng := workload.NewRand(c.Seed, uint64(i))
	var w *workload.Workload
	var err error
	name := "made up like the log of the Cornell Theory Center"
	if s.Generate == generateCTC {
		w, err = workload.CTCLike{Jobs: count + s.Skip, Processors: processors}.Generate(rng)
	} else {
		name = "made up by the model of Lublin and Feitelson"
		w, err = workload.Lublin{Jobs: count + s.Skip, Processors: processors}.Generate(rng)
	}
	if err != nil {
		return nil, err
	}
	w.Name = name // the model's own tells of a load that is changed below
	return w, nil
}

// parseTimezone reads the name of a zone or an offset from UTC; "" is UTC. The
// zone of this machine has no name: it says nothing of that of the log.
func parseTimezone(s string) (*time.Location, error) {
	for _, form := range []string{"-07:00", "-0700"} {
		if t, err := time.Parse(form, s); err == nil {
			_, offset := t.Zone()
			return time.FixedZone(s, offset), nil
		}
	}
	if s == "Local" {
		return nil, errors.New("no name of a zone")
	}
	return time.LoadLocation(s)
}

// align puts the workloads beside each other on one clock.
func (s *Study) align() error {
	delay := make([]time.Duration, len(s.jobs))
	for i := range delay {
		delay[i] = time.Duration(s.cfg.Sites[i].Zone)
	}
	if s.cfg.Align == alignCalendar {
		for i, w := range s.jobs {
			if w.Start.IsZero() {
				return problem("align calendar: the log of site %s does not say when it began; choose align = %q", s.sites[i].ID, alignStart)
			}
			delay[i] += w.Start.Sub(s.jobs[0].Start)
		}
	}
	first := delay[0]
	for _, d := range delay {
		first = min(first, d)
	}
	for i := range s.jobs {
		w, err := s.jobs[i].Shift(delay[i] - first)
		if err != nil {
			return problem("site %s: its log begins too long after the others; choose align = %q: %w", s.sites[i].ID, alignStart, err)
		}
		s.jobs[i] = w
	}
	return nil
}

// cut leaves out the jobs that were submitted after the shortest log had ended,
// or before the last one had begun.
func (s *Study) cut() error {
	begin := job.Time(0)
	for _, w := range s.jobs {
		s.end = min(s.end, w.Jobs[len(w.Jobs)-1].Submit)
		begin = max(begin, w.Jobs[0].Submit)
	}
	for i, w := range s.jobs {
		skip, n := 0, 0
		for _, j := range w.Jobs {
			switch {
			case s.cfg.Align == alignCalendar && j.Submit < begin:
				skip++
			case j.Submit <= s.end:
				n++
			}
		}
		s.left[i] = len(w.Jobs) - n
		if n == 0 {
			return problem("site %s: no job of its log falls into the time that all logs cover; choose align = %q, or whole = true", s.sites[i].ID, alignStart)
		}
		kept := *w
		kept.Jobs = w.Jobs[skip : skip+n]
		s.jobs[i] = &kept
	}
	return nil
}
