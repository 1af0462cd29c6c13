package forecast

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"kith/internal/job"
)

// Draws are what one scenario makes up.
type Draws interface {
	// Run returns how long a copy runs in all, by its number in the scene, given that it has
	// run for elapsed; zero if it starts now. More than its walltime counts as that.
	Run(number int32, elapsed time.Duration) time.Duration
	// Next returns the next copy that comes in, in order of time; false if none will.
	Next() (Arrival, bool)
}

// Scene is a copy of the state of a scheduler in which one copy waits, as of an instant. It
// shares nothing with the scheduler, so that another goroutine may play it.
type Scene interface {
	// Copies yields the copies that hold processors or wait, each with its number.
	Copies(yield func(number int32, c job.Copy) bool)
	// Numbers is what all numbers are below.
	Numbers() int
	// Play plays one scenario and returns when the copy starts; [job.Never] if nothing that
	// happens makes it start. It is false if the steps of the scene are used up.
	Play(d Draws) (start job.Time, ok bool)
	// Left is how many steps are left.
	Left() int64
}

// Steps is what a forecast may take, in steps of about 50 ns: some tens of milliseconds.
const Steps = 1 << 20

// Role is what is known of a copy in a scene.
type Role struct {
	Runs Runs
	// Limit is that of the copy at this site; without one nothing is known of it.
	Limit time.Duration
	// Origin and User name whose it is.
	Origin job.SiteID
	User   string
}

// Inquiry is a question for a start, with all that its answer needs. Nobody changes it while
// it is answered.
type Inquiry struct {
	Scene Scene
	// Roles are by the numbers of the scene.
	Roles []Role
	// Days are where arrivals come from; nil for none. They are only read.
	Days *Days
	Now  job.Time
	// Seed is that of all that is drawn, see [SeedOf].
	Seed uint64
	// Draws is how many scenarios are wanted, [DefaultScenarios] if zero. Fewer than
	// [MinScenarios] are no forecast.
	Draws int
}

// SeedOf makes a seed of a site, an attempt and an instant: the same state gives the same
// forecast.
func SeedOf(site job.SiteID, a job.AttemptID, now job.Time) uint64 {
	h := fnv.New64a()
	var b [64]byte
	line := append(append(b[:0], site...), 0)
	line = a.Job.Append(line)
	for _, x := range [2]uint64{uint64(a.Number), uint64(now)} { //nolint:gosec // Any 64 bits will do.
		for i := range 8 {
			line = append(line, byte(x>>(8*i)))
		}
	}
	h.Write(line)
	return h.Sum64()
}

// Answer is what scenarios came to.
type Answer struct {
	// Waits are of those scenarios in which the copy starts. They are set if Scenarios is
	// at least [MinScenarios].
	Waits     Waits
	Scenarios int
	// Limit is how long the copy waits if all run for their limits and nothing comes in,
	// where LimitKnown says so.
	Limit      time.Duration
	LimitKnown bool
}

// Stage is what inquiries are answered with: memory that is used again. The zero value is
// ready. It belongs to one goroutine.
type Stage struct {
	cast    Cast
	stream  Stream
	pcg     rand.PCG
	samples Samples
	dist    Dist
}

// byLimits are the draws by which all run for their limits.
type byLimits struct{}

func (byLimits) Run(int32, time.Duration) time.Duration { return job.MaxWalltime }
func (byLimits) Next() (a Arrival, ok bool)             { return a, false }

// lots are the draws of a scenario.
type lots struct {
	*Cast
	*Stream
}

// probe is after how many scenarios it is clear whether there will be enough of them.
const probe = 4

// Play answers an inquiry. It stops early once it is clear that the steps of the scene are
// not enough for [MinScenarios].
func (st *Stage) Play(q *Inquiry) (a Answer) {
	start, ok := q.Scene.Play(byLimits{})
	if !ok {
		return a
	}
	if start != job.Never {
		a.Limit, a.LimitKnown = max(0, start.Sub(q.Now)), true
	}
	draws := q.Draws
	if draws == 0 {
		draws = DefaultScenarios
	}
	st.cast.Reset(q.Scene.Numbers())
	for i := range q.Roles {
		if r := &q.Roles[i]; r.Limit > 0 {
			st.cast.Expect(int32(i), &r.Runs, r.Limit, r.Origin, r.User) //nolint:gosec // Numbers are 32 bits.
		}
	}
	st.pcg.Seed(q.Seed, 0x9e3779b97f4a7c15)
	rng := rand.New(&st.pcg) //nolint:gosec // A forecast, no secret.
	st.samples, st.stream = st.samples[:0], Stream{}
	begin := q.Scene.Left()
	for n := range draws {
		st.cast.Begin(rng)
		if q.Days != nil {
			q.Days.Draw(q.Now, rng, &st.stream)
		}
		start, ok := q.Scene.Play(lots{&st.cast, &st.stream})
		if !ok {
			break
		}
		if start != job.Never {
			st.samples = append(st.samples, max(0, start.Sub(q.Now)))
		}
		left := q.Scene.Left()
		if played := int64(n + 1); played == probe && (begin-left)*(MinScenarios-played) > left*played {
			break
		}
	}
	a.Scenarios = len(st.samples)
	if a.Scenarios < MinScenarios {
		return a
	}
	st.samples.Dist(&st.dist)
	a.Waits = WaitsOf(&st.dist)
	return a
}
