package sitesched

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"kith/internal/job"
)

// player is one job of a random story: when it comes, what becomes of its
// claims, how long it really runs. A story is replayed against the scheduler
// and the reference side by side, so whatever happens depends on the starts alone.
type player struct {
	copy     entry
	comes    int
	run      int
	withdraw int // -1: never
	adopt    int // runs since then already, -1: it is queued
	answers  []answer
}

// answer is what becomes of a claim.
type answer struct {
	kind  EventKind // Confirm, Withdraw or Postpone
	after int       // seconds after the start
	until int       // Postpone: seconds from then on
}

type story struct {
	cfg     Config
	players []player
	// tardy makes wake-ups come late by this many seconds.
	tardy int
	// drains are the seconds at which draining begins and ends in turn.
	drains   []int
	absences []absence
}

// absence says from when until when the copies of an origin are set aside, and
// which of them is tried meanwhile.
type absence struct {
	origin   job.SiteID
	from, to int
	probe    job.AttemptID
}

func (y story) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d processors, %d bytes, %s, patience %v; tardy %d, drains %v, absences %v\n",
		y.cfg.Processors, y.cfg.MemoryBytes, y.cfg.Policy(), y.cfg.Patience, y.tardy, y.drains, y.absences)
	for _, p := range y.players {
		c := p.copy
		fmt.Fprintf(&b, "  at %d %v: procs %d mem %d wall %v arrival %d remote %v elder %v; run %d withdraw %d adopt %d answers %v\n",
			p.comes, c.id, c.processors, c.memoryBytes, c.walltime, c.arrival/second, c.remote, c.elder, p.run, p.withdraw, p.adopt, p.answers)
	}
	return b.String()
}

// spice says which complications a story may have.
type spice struct {
	overdue, claims, withdrawals, disorder, adoption, tardiness, drains, memory, absences, elders bool
	// crowd is how many jobs more than usual come all at once.
	crowd int
}

var everything = spice{
	overdue: true, claims: true, withdrawals: true, disorder: true, adoption: true, tardiness: true, drains: true, memory: true,
	absences: true,
}

func randomStory(rng *rand.Rand, cfg Config, with spice) story {
	y := story{cfg: cfg}
	y.cfg.Processors = 1 + rng.Int32N(10)
	y.cfg.KeepFree = min(y.cfg.KeepFree, y.cfg.Processors-1)
	if with.memory && rng.IntN(3) == 0 {
		y.cfg.MemoryBytes = 1 + rng.Int64N(40)
	}
	if with.tardiness && rng.IntN(4) == 0 {
		y.tardy = 1 + rng.IntN(4)
	}
	if with.drains && rng.IntN(5) == 0 {
		y.drains = []int{rng.IntN(30), 30 + rng.IntN(30)}
	}
	span := 1 + rng.IntN(40)
	for i := range 2 + rng.IntN(13) + with.crowd {
		p := player{comes: rng.IntN(span), withdraw: -1, adopt: -1}
		p.copy = entry{
			id: attempt(job.SiteID("abc"[rng.IntN(3):][:1]), i), processors: 1 + rng.Int32N(y.cfg.Processors),
			walltime: time.Duration(1+rng.IntN(20)) * time.Second, remote: rng.IntN(2) == 0,
		}
		if rng.IntN(3) > 0 { // most jobs are narrow
			p.copy.processors = 1 + rng.Int32N((y.cfg.Processors+2)/3)
		}
		if p.copy.remote { // it could start some time
			p.copy.processors = min(p.copy.processors, y.cfg.Processors-y.cfg.KeepFree)
		}
		if y.cfg.MemoryBytes > 0 && rng.IntN(2) == 0 {
			p.copy.memoryBytes = rng.Int64N(y.cfg.MemoryBytes + 1)
		}
		arrival := p.comes
		if with.disorder && rng.IntN(4) == 0 {
			arrival -= rng.IntN(10)
		}
		p.copy.arrival = job.Time(arrival) * second
		wall := int(p.copy.walltime / time.Second)
		p.run = wall
		switch k := rng.IntN(10); {
		case k < 5:
			p.run = 1 + rng.IntN(wall)
		case k == 9 && with.overdue:
			p.run += 1 + rng.IntN(6)
		}
		if with.withdrawals && rng.IntN(5) == 0 {
			p.withdraw = p.comes + rng.IntN(30)
		}
		if with.adoption && rng.IntN(12) == 0 {
			p.adopt = p.comes - rng.IntN(20)
		}
		for with.claims && len(p.answers) < 3 && rng.IntN(3) == 0 {
			kind := []EventKind{Confirm, Withdraw, Postpone, Postpone}[rng.IntN(4)]
			p.answers = append(p.answers, answer{kind, rng.IntN(4), rng.IntN(12)})
		}
		p.copy.elder = with.elders && p.copy.remote && rng.IntN(4) == 0
		y.players = append(y.players, p)
	}
	for with.absences && len(y.absences) < 3 && rng.IntN(2) == 0 {
		a := absence{origin: job.SiteID("abc"[rng.IntN(3):][:1]), from: rng.IntN(span + 20)}
		a.to = a.from + rng.IntN(30)
		a.probe = y.players[rng.IntN(len(y.players))].copy.id
		y.absences = append(y.absences, a)
	}
	return y
}
