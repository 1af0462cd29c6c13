package forecast

import (
	"math"
	"math/rand/v2"
	"time"

	"kith/internal/job"
)

// How much of what decides a run time is common to all jobs of a scenario, and to those of
// one user (shares of the variance of a Gaussian copula). Run times that are drawn one by
// one make ranges of starts far too narrow: that all jobs ahead are short does happen.
const (
	commonShare = 0.1
	userShare   = 0.5
)

// Cast are the jobs that play in the scenarios of a forecast, each with the distribution of
// its run time. Jobs have numbers of the caller's. The zero value is usable.
type Cast struct {
	roles []role
	users map[person]int32
	// mood is that of each user in this scenario, drawn when it is first needed.
	mood     []mood
	scenario uint32
	common   float64
	rng      *rand.Rand
}

// person is a user of an origin.
type person struct {
	origin job.SiteID
	name   string
}

// role is a job: its run time is one of runs and told, or it has none.
type role struct {
	runs  *Dist
	told  *Runs
	limit time.Duration
	user  int32
}

type mood struct {
	z        float64
	scenario uint32
}

// Reset takes everybody out, and makes room for numbers below n.
func (c *Cast) Reset(n int) {
	clear(c.roles)
	if cap(c.roles) < n {
		c.roles = make([]role, n)
	}
	c.roles = c.roles[:n]
	if c.users == nil {
		c.users = make(map[person]int32)
	}
	clear(c.users)
	c.mood = c.mood[:0]
}

// Set gives a number a job: its run time, which is only read and must stay, its limit and its
// user.
func (c *Cast) Set(number int32, runs *Dist, limit time.Duration, user string) {
	runs.Settle()
	c.roles[number] = role{runs: runs, limit: limit, user: c.userOf(person{name: user})}
}

// Expect is [Cast.Set] of a run time that is known by its quantiles.
func (c *Cast) Expect(number int32, runs *Runs, limit time.Duration, origin job.SiteID, user string) {
	c.roles[number] = role{told: runs, limit: limit, user: c.userOf(person{origin, user})}
}

func (c *Cast) userOf(user person) int32 {
	u, known := c.users[user]
	if !known {
		u = int32(len(c.mood)) //nolint:gosec // Users are fewer than 2^31.
		c.users[user] = u
		c.mood = append(c.mood, mood{})
	}
	return u
}

// Begin begins the next scenario, whose randomness comes from rng.
func (c *Cast) Begin(rng *rand.Rand) {
	c.rng = rng
	c.scenario++
	if c.scenario == 0 { // after 2^32 of them
		clear(c.mood)
		c.scenario = 1
	}
	c.common = rng.NormFloat64() * math.Sqrt(commonShare)
}

// Run draws how long a job runs in all, given that it has run for elapsed. A number without
// a job runs for as long as it has.
func (c *Cast) Run(number int32, elapsed time.Duration) time.Duration {
	switch r := &c.roles[number]; {
	case r.told != nil:
		return r.told.Residual(elapsed, r.limit, c.level(r.user))
	case r.runs != nil:
		return r.runs.Residual(elapsed, r.limit, c.level(r.user))
	}
	return elapsed
}

var ownRoot, userRoot = math.Sqrt(1 - commonShare - userShare), math.Sqrt(userShare)

// level draws a level for a job of a user. Each by itself is even on 0 to 1.
func (c *Cast) level(user int32) float64 {
	m := &c.mood[user]
	if m.scenario != c.scenario {
		*m = mood{c.rng.NormFloat64() * userRoot, c.scenario}
	}
	z := c.common + m.z + c.rng.NormFloat64()*ownRoot
	return 0.5 * math.Erfc(-z/math.Sqrt2)
}
