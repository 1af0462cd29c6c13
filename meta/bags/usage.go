package bags

import (
	"math"
	"time"

	"kith/internal/job"
)

// HalfLife is after what time what a user has used counts half.
const HalfLife = 24 * time.Hour

// Usage is what users have used of processors, where the past counts less and less. The
// zero value is ready: nobody has used anything. It is volatile; after a restart its owner
// adds what the sums of bags say.
type Usage struct {
	// used has processor-seconds, each weighed by when it was added: what came a half-life
	// after since weighs twice as much. So nothing changes while time goes on.
	used  map[string]float64
	since job.Time
}

// maxDoublings is after how many half-lives the weights are scaled down.
const maxDoublings = 32

// negligible is below what a user's processor-seconds are forgotten, when weights are
// scaled down.
const negligible = 1e-3

// Add counts processor-seconds that a user used, as of now.
func (u *Usage) Add(user string, processorSeconds float64, now job.Time) {
	if u.used == nil {
		u.used, u.since = make(map[string]float64), now
	}
	if now.Sub(u.since) >= maxDoublings*HalfLife {
		u.rescale(now)
	}
	u.used[user] += processorSeconds * u.weight(now)
}

// Of returns what a user has used, in processor-seconds, decayed until now.
func (u *Usage) Of(user string, now job.Time) float64 { return u.used[user] / u.weight(now) }

func (u *Usage) weight(now job.Time) float64 {
	return math.Exp2(float64(now.Sub(u.since)) / float64(HalfLife))
}

func (u *Usage) rescale(now job.Time) {
	by := u.weight(now)
	for user, used := range u.used {
		if used /= by; used < negligible {
			delete(u.used, user)
		} else {
			u.used[user] = used
		}
	}
	u.since = now
}
