package join

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kith/internal/job"
	"kith/internal/strict"
	"kith/internal/units"
	"kith/meta"
	"kith/sitesched"
	"kith/testbed/replay"
	"kith/testbed/workload"
)

// Config is a federation that might be, as a TOML file describes it. A
// commented example is docs/examples/federation.toml.
type Config struct {
	// Title is the heading of the report.
	Title string `toml:"title"`
	// Seed is that of all made-up jobs.
	Seed uint64 `toml:"seed"`
	// Align says how the logs lie beside each other: "start" lets all begin at
	// one instant, "calendar" leaves each at its own date.
	Align string `toml:"align"`
	// Whole keeps the jobs that were submitted after the shortest log has
	// ended. Without it they are left out: its site would seem to be idle.
	Whole bool `toml:"whole"`
	// Asks is the site whose users the answer is about; empty for all alike.
	Asks      string          `toml:"asks"`
	Placement PlacementConfig `toml:"placement"`
	Sites     []SiteConfig    `toml:"sites"`

	// Notes are more sentences on what the answer rests on, and Maker is what made its page;
	// "" for kith replay --federation. Programs set them.
	Notes []string `toml:"-"`
	Maker string   `toml:"-"`

	// folder is where relative names of logs begin.
	folder string
}

// PlacementConfig says how copies would be placed. The words are those of the
// daemon's configuration.
type PlacementConfig struct {
	Scheme string `toml:"scheme"`
	// Rank is empty for that of the scheme, or the daemon's default.
	Rank string `toml:"rank"`
	// Copies are the K to compare; empty for 2 up to the number of sites, at most 8.
	Copies []int32 `toml:"copies"`
	// Weight and Adaptive are those of [meta.Placement].
	Weight   float64 `toml:"weight"`
	Adaptive bool    `toml:"adaptive"`
	// LoadAge is how often a site takes down its load for the others: what they
	// rank by is up to so old, and Latency older. Zero means no older than that.
	LoadAge units.Duration `toml:"load_age"`
	// Latency is how long a message takes between any two sites, a load as well.
	Latency units.Duration `toml:"latency"`
}

// SiteConfig is a site and its jobs.
type SiteConfig struct {
	Name string `toml:"name"`
	// Processors is its size; nil for what the log says of the machine it is from.
	Processors *int32 `toml:"processors"`
	// Policy is fcfs, easy, cons-compress or cons-replan.
	Policy string `toml:"policy"`
	// Queues is single, dual-strict or dual-backfill.
	Queues string `toml:"queues"`
	// Guarantee is head or all.
	Guarantee string `toml:"guarantee"`
	// GuaranteeDepth is how many waiting local jobs the guarantee reaches; nil
	// means 1000, that of the daemon, and 0 all of them.
	GuaranteeDepth *int32 `toml:"guarantee_depth"`
	// Speed divides run times and estimates; nil means 1, that of the log.
	Speed *float64 `toml:"speed"`
	// Zone delays all submissions: a site elsewhere has the same day later.
	Zone units.Duration `toml:"zone"`
	// Timezone is that of the clock by which the log tells times: a name of the
	// IANA database, or an offset. It is for logs that do not say it.
	Timezone string `toml:"timezone"`

	// Trace is the log of its jobs, by a name relative to the configuration.
	Trace string `toml:"trace"`
	// Generate makes jobs up instead: ctc or lublin.
	Generate string `toml:"generate"`
	// Log are its jobs, if a program has them; then there is neither Trace nor Generate.
	Log *workload.Workload `toml:"-"`
	// Jobs is how many, Skip how many of those that fit are left out ahead of
	// them; zero jobs are all of a log, or 5000 made up.
	Jobs int `toml:"jobs"`
	Skip int `toml:"skip"`
	// Load brings the jobs closer or farther apart, so that they ask for this
	// share of what the site can do; zero leaves them as they are.
	Load float64 `toml:"load"`
	// ScaleRuntime multiplies run times and estimates; nil means 1.
	ScaleRuntime *float64 `toml:"scale_runtime"`
	// Overrun is kill or raise: what becomes of jobs that ran longer than estimated.
	Overrun string `toml:"overrun"`
	// PerfectEstimates makes estimates equal to run times.
	PerfectEstimates bool `toml:"perfect_estimates"`
}

// The words of [Config.Align].
const (
	alignStart    = "start"
	alignCalendar = "calendar"
)

// The words of [SiteConfig.Generate].
const (
	generateCTC    = "ctc"
	generateLublin = "lublin"
)

// Bounds of a study.
const (
	// MaxSites is the most sites.
	MaxSites = 256
	// MaxPlans is the most K to compare.
	MaxPlans = 8
	// MaxFileSize is the longest configuration, in bytes.
	MaxFileSize = 1 << 20
)

// defaults are what an empty file stands for.
func defaults() Config {
	return Config{
		Title: "Should we join?", Align: alignStart,
		Placement: PlacementConfig{Scheme: string(meta.KDual), Weight: 1},
	}
}

// New returns a configuration of some sites that a program describes, with the defaults of a
// file for all that is left out.
func New(sites ...SiteConfig) Config {
	c := defaults()
	for _, s := range sites {
		s.siteDefaults()
		c.Sites = append(c.Sites, s)
	}
	return c
}

// siteDefaults fills in what a site leaves out.
func (s *SiteConfig) siteDefaults() {
	fill := func(field *string, word string) {
		if *field == "" {
			*field = word
		}
	}
	fill(&s.Policy, "easy")
	fill(&s.Queues, sitesched.DualBackfill.String())
	fill(&s.Guarantee, sitesched.ScopeAll.String())
	fill(&s.Overrun, workload.Kill.String())
	if s.GuaranteeDepth == nil {
		s.GuaranteeDepth = new(int32(1000))
	}
	if s.Speed == nil {
		s.Speed = new(1.0)
	}
	if s.ScaleRuntime == nil {
		s.ScaleRuntime = new(1.0)
	}
}

// Load reads a configuration. Change what a command line overrides, then call
// [Config.Validate]. The error is an [Error] with every key that is not known, or
// that of the file.
func Load(path string) (Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return Config{}, err // names the path
	}
	defer f.Close() //nolint:errcheck // Only read from.
	if info, err := f.Stat(); err != nil {
		return Config{}, err
	} else if info.IsDir() {
		return Config{}, problem("is a folder, not a file")
	} else if info.Size() > MaxFileSize {
		return Config{}, problem("has %d bytes: no description of a federation is that long", info.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, err
	}
	c, err := Parse(string(text))
	c.folder = filepath.Dir(path)
	return c, err
}

// Parse reads the text of a configuration; names of logs are relative to the
// working folder. The error is an [Error].
func Parse(text string) (Config, error) {
	c := defaults()
	sample := defaults()
	sample.Sites = []SiteConfig{{Processors: new(int32), GuaranteeDepth: new(int32), Speed: new(float64), ScaleRuntime: new(float64)}}
	sample.Placement.Copies = []int32{1}
	if err := strict.Decode(text, &c, sample, "docs/examples/federation.toml"); err != nil {
		return Config{}, collected(split(err))
	}
	for i := range c.Sites {
		c.Sites[i].siteDefaults()
	}
	return c, nil
}

// Validate returns an [Error] with all that is wrong. Logs are not looked at.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf(format, args...))
	}
	if c.Align != alignStart && c.Align != alignCalendar {
		bad("align %q: choose start or calendar", c.Align)
	}
	if len(c.Sites) < 2 || len(c.Sites) > MaxSites {
		bad("%d [[sites]]: a federation has 2 to %d; a single site needs none", len(c.Sites), MaxSites)
	}
	names := make(map[string]int)
	for i := range c.Sites {
		s := &c.Sites[i]
		key := fmt.Sprintf("sites[%d]", i)
		if _, err := job.ParseSiteID(s.Name); s.Name == "" {
			bad("%s.name is missing: give the site a name", key)
		} else if err != nil {
			bad("%s.name: %w", key, err)
		} else if at, twice := names[s.Name]; twice {
			bad("%s.name %q: is that of sites[%d], too", key, s.Name, at)
		}
		names[s.Name] = i
		s.check(func(field, format string, args ...any) {
			bad("%s.%s %s", key, field, fmt.Sprintf(format, args...))
		})
	}
	if n := c.wantedJobs(); n > workload.MaxJobs {
		bad("jobs: %d at all sites together: give at most %d", n, workload.MaxJobs)
	}
	if _, known := names[c.Asks]; c.Asks != "" && !known {
		bad("asks %q: name one of the sites", c.Asks)
	}
	c.checkPlacement(bad)
	return collected(errs)
}

// wantedJobs is how many jobs the sites name a number of.
func (c *Config) wantedJobs() int {
	n := 0
	for i := range c.Sites {
		n += max(0, min(c.Sites[i].Jobs, workload.MaxJobs+1)) // at most a few hundred sites
	}
	return n
}

// check checks a site by itself.
func (s *SiteConfig) check(bad func(field, format string, args ...any)) {
	if p := s.Processors; p != nil && (*p < 1 || *p > job.MaxProcessors) {
		bad("processors", "%d: give 1 to %d, or leave the key out where the log says it", *p, job.MaxProcessors)
	}
	if _, err := replay.ParsePolicy(s.Policy); err != nil {
		bad("policy", "%.40q: choose fcfs, easy, cons-compress or cons-replan", s.Policy)
	}
	if _, err := sitesched.ParseQueues(s.Queues); err != nil {
		bad("queues", "%.40q: choose single, dual-strict or dual-backfill", s.Queues)
	}
	if _, err := sitesched.ParseScope(s.Guarantee); err != nil {
		bad("guarantee", "%.40q: choose head or all", s.Guarantee)
	}
	if d := *s.GuaranteeDepth; d < 0 {
		bad("guarantee_depth", "%d: give a number of jobs, or 0 for all of them", d)
	}
	if v := *s.Speed; !(v >= 0.001 && v <= 1e6) {
		bad("speed", "%v: give 0.001 to 1e6; 1 is the speed that the log is from", v)
	}
	if z := time.Duration(s.Zone); z < -24*time.Hour || z > 24*time.Hour {
		bad("zone", "%v: give -24h to 24h", z)
	}
	if _, err := parseTimezone(s.Timezone); err != nil {
		bad("timezone", "%.40q: give the name of a zone such as Europe/Berlin, or an offset such as +01:00", s.Timezone)
	} else if s.Timezone != "" && s.Trace == "" {
		bad("timezone", "%.40q: is that of a log; leave the key out", s.Timezone)
	}
	switch {
	case s.Log != nil && s.Trace == "" && s.Generate == "":
	case s.Trace == "" && s.Generate == "":
		bad("trace", "is missing: name a log, or choose generate = %q or %q", generateCTC, generateLublin)
	case s.Trace != "" && s.Generate != "":
		bad("trace", "%q and generate %q: choose one of them", s.Trace, s.Generate)
	case s.Generate != "" && s.Generate != generateCTC && s.Generate != generateLublin:
		bad("generate", "%.40q: choose %s or %s", s.Generate, generateCTC, generateLublin)
	}
	if s.Jobs < 0 || s.Jobs > workload.MaxJobs {
		bad("jobs", "%d: give 1 to %d, or 0 for all", s.Jobs, workload.MaxJobs)
	}
	if s.Skip < 0 || s.Skip > workload.MaxJobs {
		bad("skip", "%d: give 0 to %d", s.Skip, workload.MaxJobs)
	}
	if !(s.Load >= 0 && s.Load <= 100) {
		bad("load", "%v: give a share such as 0.7, or 0 to leave the jobs as they are", s.Load)
	}
	if v := *s.ScaleRuntime; !(v > 0) || math.IsInf(v, 0) {
		bad("scale_runtime", "%v: give a number above 0", v)
	}
	if o, err := workload.ParseOverrun(s.Overrun); err != nil || o == workload.Keep {
		bad("overrun", "%.40q: choose kill or raise", s.Overrun)
	}
}

// checkPlacement checks how copies are placed.
func (c *Config) checkPlacement(bad func(format string, args ...any)) {
	p := &c.Placement
	scheme := meta.Scheme(p.Scheme)
	others := slices.DeleteFunc(meta.Schemes(), func(s meta.Scheme) bool { return s == meta.Independent })
	switch {
	case scheme == meta.Independent:
		bad("placement.scheme %q: is what the others are compared with; choose one of %v", p.Scheme, others)
	case !slices.Contains(others, scheme):
		bad("placement.scheme %.40q: choose one of %v", p.Scheme, others)
	case !placesCopies(scheme) && len(p.Copies) > 0 && !slices.Equal(p.Copies, []int32{1}):
		bad("placement.copies %v: scheme %s places one copy; leave the key out", p.Copies, scheme)
	}
	if p.Rank != "" {
		rank, ok := meta.ParseRank(p.Rank)
		if !ok {
			bad("placement.rank %.40q: choose work, procs, start, completion or forecast", p.Rank)
		} else if implied, is := scheme.ImpliedRank(); is && rank != implied {
			bad("placement.rank %q: scheme %s ranks by %v; leave the key out", p.Rank, scheme, implied)
		}
	}
	seen := make(map[int32]bool)
	for _, k := range p.Copies {
		switch {
		case k < 1:
			bad("placement.copies %d: give 1 or more", k)
		case int(k) > len(c.Sites) && placesCopies(scheme):
			bad("placement.copies %d: there are only %d sites, and a site holds one copy of a job", k, len(c.Sites))
		case seen[k]:
			bad("placement.copies %d: is named twice", k)
		}
		seen[k] = true
	}
	if len(p.Copies) > MaxPlans {
		bad("placement.copies: %d values; give at most %d", len(p.Copies), MaxPlans)
	}
	if !(p.Weight >= 0.01 && p.Weight <= 100) {
		bad("placement.weight %v: give 0.01 to 100, 1 for none", p.Weight)
	}
	if p.Adaptive && !asksForStarts(p) {
		bad("placement.adaptive: only the ranks start and completion promise a time to compare with")
	}
	if p.LoadAge < 0 || time.Duration(p.LoadAge) > 24*time.Hour || p.Latency < 0 || time.Duration(p.Latency) > time.Minute {
		bad("placement.load_age %v, placement.latency %v: give 0 to 24h, and 0 to 1m", time.Duration(p.LoadAge), time.Duration(p.Latency))
	}
}

// daemonLoadAge is how old a load may be for daemons to rank by it.
var daemonLoadAge = meta.Default().Placement.MaxLoadAge

// maxLoadAge is how old it may be here: as for daemons, unless the question is
// what older loads would do.
func (p *PlacementConfig) maxLoadAge() time.Duration {
	return max(daemonLoadAge, time.Duration(p.LoadAge))
}

// placesCopies reports whether a scheme has a K to choose.
func placesCopies(s meta.Scheme) bool { return s == meta.KDistributed || s == meta.KDual }

func asksForStarts(p *PlacementConfig) bool {
	if _, implied := meta.Scheme(p.Scheme).ImpliedRank(); implied {
		return true
	}
	rank, _ := meta.ParseRank(p.Rank)
	return rank == meta.RankStart || rank == meta.RankCompletion || rank == meta.RankForecast
}

// copies returns the K to compare.
func (c *Config) copies() []int32 {
	if !placesCopies(meta.Scheme(c.Placement.Scheme)) {
		return []int32{1}
	}
	if len(c.Placement.Copies) > 0 {
		return slices.Sorted(slices.Values(c.Placement.Copies))
	}
	var list []int32
	for k := int32(2); int(k) <= len(c.Sites) && len(list) < MaxPlans; k++ {
		list = append(list, k)
	}
	return list
}
