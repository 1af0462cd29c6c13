package bags

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
)

// What users have used is the sum of what they were charged, each halved for each
// half-life since, however long that goes on.
func TestUsageDecays(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var u Usage
	type charge struct {
		at      job.Time
		seconds float64
	}
	charges := map[string][]charge{}
	now := job.Time(1e18)
	for range 2000 {
		now = now.Add(time.Duration(rng.Int64N(int64(HalfLife) / 4)))
		user := string(rune('a' + rng.IntN(3)))
		seconds := float64(rng.IntN(1e6))
		u.Add(user, seconds, now)
		charges[user] = append(charges[user], charge{now, seconds})
		want := 0.0
		for _, c := range charges["b"] {
			want += c.seconds / math.Exp2(float64(now-c.at)/float64(HalfLife))
		}
		if got := u.Of("b", now); math.Abs(got-want) > 1e-6*want+1e-3 {
			t.Fatalf("after %d charges %v, want %v", len(charges["b"]), got, want)
		}
	}
}

func TestUsageForgetsUsersOfLongAgo(t *testing.T) {
	var u Usage
	if got := u.Of("ann", 1e18); got != 0 {
		t.Errorf("of nobody: %v", got)
	}
	u.Add("ann", 1000, 0)
	u.Add("bob", 1000, job.Time(40*HalfLife))
	if len(u.used) != 1 || u.Of("ann", job.Time(40*HalfLife)) != 0 || math.Abs(u.Of("bob", job.Time(41*HalfLife))-500) > 1e-9 {
		t.Errorf("%+v", u)
	}
}
