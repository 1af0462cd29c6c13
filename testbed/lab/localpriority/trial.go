package localpriority

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"kith/meta"
	"kith/sitesched"
	"kith/testbed/federation"
	"kith/testbed/lab"
	"kith/testbed/metrics"
	"kith/testbed/workload"
)

// trial is one configuration of spec 004. Equal trials are run once.
type trial struct {
	setting
	// duals is k of the configuration Qk: the first k sites put local jobs first.
	duals int
	// weight is the constant a; 1 is plain MCT.
	weight float64
	// adaptive weighs sites by what their promises were worth.
	adaptive bool
	// small is a run with few jobs of the first seed, for its event log.
	small bool
}

// setting is a case and a load of the source's tables: what decides which
// jobs there are.
type setting struct {
	number int // 1 to 3
	load   workload.PriorityLoad
}

func (c setting) String() string { return fmt.Sprintf("case %d %v", c.number, c.load) }

// String names the trial for people.
func (t trial) String() string {
	s := fmt.Sprintf("%v, Q%d", t.setting, t.duals)
	switch {
	case t.adaptive:
		s += ", adaptive"
	case t.weight != 1:
		s += fmt.Sprintf(", a=%.4g", t.weight)
	}
	return s
}

// The schemes that the source compares.
func mct(number int, load workload.PriorityLoad, duals int) trial {
	return trial{setting: setting{number, load}, duals: duals, weight: 1}
}

func (t trial) weighted(a float64) trial { t.weight = a; return t }
func (t trial) adapting() trial          { t.adaptive = true; return t }
func (t trial) logged() trial            { t.small = true; return t }

// paperWeight is the constant a of the source.
const paperWeight = 1.3

// with returns the trial with the other number of sites of dual queues.
func (t trial) with(duals int) trial { t.duals = duals; return t }

// beside reports whether the trial serves no statement of the source, so that few
// seeds are enough.
func (t trial) beside() bool {
	return t.adaptive || t.weight != 1 && t.weight != paperWeight
}

// weightsAct are the configurations in which the source says that weights act
// (spec 004 section 2.3), by case - 1.
var weightsAct = [3][]int{{3, 4}, {2, 3, 4}, {4}}

// smallJobs is how many jobs a site has in runs whose event logs are compared.
const smallJobs = 80

// model returns the workload of a setting with a number of jobs a site; 0 means
// that of the source.
func (c setting) model(jobs int) (workload.Exponential, error) {
	m, err := workload.Priority(c.number, c.load)
	if err != nil || jobs == 0 {
		return m, err
	}
	for i := range m.Streams {
		m.Streams[i].Jobs = max(1, m.Streams[i].Jobs*jobs/siteJobs)
	}
	m.Drop = m.Drop * jobs / siteJobs
	return m, nil
}

// outcome is what came of a trial with one seed. Times are means in seconds.
type outcome struct {
	sites [siteCount]float64 // completion time by origin
	all   float64
	moved float64 // share of jobs that ran elsewhere
	// jobs is a fingerprint of the jobs as the records have them, log one of the
	// event log where it was asked for.
	jobs, log string
}

// run runs the trial with the jobs of a seed.
func (t trial) run(ctx context.Context, env *lab.Env, seed int) (*outcome, error) {
	jobs := env.Jobs
	if t.small {
		jobs = smallJobs
	}
	m, err := t.model(jobs)
	if err != nil {
		return nil, err
	}
	number := env.SeedList()[seed]
	f, err := m.Generate(workload.NewRand(number, 0))
	if err != nil {
		return nil, fmt.Errorf("%v, seed %d: %w", t.setting, number, err)
	}
	cfg := federation.Config{Placement: meta.Placement{Scheme: meta.MCT, Copies: 1, Weight: t.weight, Adaptive: t.adaptive}, Hash: t.small}
	for i, s := range m.Streams {
		site := federation.Site{ID: s.Site, Processors: workload.PriorityNodes, Speed: s.MIPS / m.ReferenceMIPS}
		if i < t.duals {
			site.Queues = sitesched.DualStrict
		}
		cfg.Sites = append(cfg.Sites, site)
	}
	result, err := federation.Run(ctx, cfg, f.Sites)
	if err != nil {
		return nil, fmt.Errorf("%v, seed %d: %w", t, number, err)
	}
	if len(result.Refused) > 0 {
		return nil, fmt.Errorf("%v, seed %d: %d jobs were refused, the first: %w", t, number, len(result.Refused), result.Refused[0].Err)
	}
	o := &outcome{log: result.Hash, jobs: jobsOf(result.Records)}
	first := 0
	var n, sum, remote float64
	for i := range f.Sites {
		var own, spent float64
		records := result.Records[first : first+len(f.Sites[i].Jobs)]
		first += len(records)
		for k := range records {
			r := &records[k]
			if r.Submit < f.From || r.Submit >= f.Until {
				continue
			}
			own++
			spent += r.Turnaround().Seconds()
			if r.Site != r.Origin {
				remote++
			}
		}
		o.sites[i] = spent / max(own, 1)
		n, sum = n+own, sum+spent
	}
	o.all, o.moved = sum/max(n, 1), remote/max(n, 1)
	return o, nil
}

// jobsOf returns a fingerprint of the jobs that were run: when and where they
// were submitted and what they asked for.
func jobsOf(records []metrics.Record) string {
	h := sha256.New()
	b := make([]byte, 0, 32)
	for i := range records {
		r := &records[i]
		b = append(b[:0], r.Origin...)
		for _, v := range [...]int64{r.Job, int64(r.Submit), int64(r.Estimate)} {
			b = binary.LittleEndian.AppendUint64(b, uint64(v)) // bits are bits
		}
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))
}
