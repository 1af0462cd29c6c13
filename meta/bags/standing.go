package bags

import (
	"math"
	"time"

	"kith/internal/job"
)

// Standing is how runs at a host or a site have ended of late, as their origin has seen by
// its own clock. What the host says of itself is not in it. It is volatile: after a restart
// of the origin a host is judged by what it does from then on. The zero value has seen
// nothing, of a host with one place.
type Standing struct {
	errorRate, turnaround float64 // turnaround in seconds
	done, failed          float64
	known                 bool
	as                    job.Time // of done, failed and short
	// full is how many tasks the host has to lose, 0 as long as one place gives; short is how
	// many of them it has lost.
	full, short float64
	// wait is how long the host is held back between two probes, until until when.
	wait  time.Duration
	until job.Time
}

const (
	// standingWeight is what the latest result counts in averages (spec 002 section 2.8).
	standingWeight = 0.1
	// standingHalf is how long it takes until half of what was done is forgotten.
	standingHalf = time.Hour

	// heldRate is from which error rate on a host is held back: four failures in a row that
	// are its own fault. Hosts that fail as their bags do elsewhere stay far below.
	heldRate = 0.3
	// quotaPerPlace is the quota of a host that has done nothing wrong, for each place, and
	// mostQuota bounds it: the places are what the host says.
	quotaPerPlace, mostQuota = 4, 256
	// quotaRefill is how long it takes until a host has one task more to lose.
	quotaRefill = time.Hour

	// FirstProbe is how long a host that is held back waits for a task by which it can show
	// that it is well again, MostProbe how long at most: the wait doubles with each such task
	// that it does not do well.
	FirstProbe, MostProbe = time.Minute, time.Hour
)

// Blamed is a result and how far it is the host's fault, see [Blame.Result].
type Blamed struct {
	Failed bool
	// Turnaround is from the grant to the result.
	Turnaround time.Duration
	// Compared says that it could be told from what the bag gives elsewhere.
	Compared bool
	// Excess is how much worse it is than what the bag gives elsewhere: from -1 to 1, for a
	// success 0 at most.
	Excess float64
	// Charge is by how many halvings the quota goes down, or up below 0.
	Charge float64
}

// Result notes a result.
func (s *Standing) Result(r Blamed, now job.Time) {
	s.age(now)
	if r.Failed {
		s.failed++
	} else {
		s.done++
		s.wait, s.until = 0, now
		s.setQuota(s.quota() + 1)
	}
	s.charge(r.Charge)
	if r.Compared || !r.Failed {
		s.errorRate = min(1, max(0, s.errorRate+standingWeight*(r.Excess-s.errorRate)))
	}
	if seconds := max(0, r.Turnaround).Seconds(); s.known {
		s.turnaround += standingWeight * (seconds - s.turnaround)
	} else {
		s.turnaround, s.known = seconds, true
	}
}

// Charge takes up that earlier results were more a host's fault than they seemed, or less, by
// so many halvings of its quota.
func (s *Standing) Charge(halvings float64, now job.Time) {
	s.age(now)
	s.charge(halvings)
}

// leastQuota bounds from below what is left of a quota, so that it comes back.
const leastQuota = 1.0 / (1 << 20)

func (s *Standing) charge(halvings float64) {
	if halvings != 0 {
		s.setQuota(s.quota() * math.Exp2(-halvings))
	}
}

func (s *Standing) quota() float64 { return s.whole() - s.short }

func (s *Standing) setQuota(n float64) {
	s.short = s.whole() - min(s.whole(), max(leastQuota, n))
}

func (s *Standing) whole() float64 {
	if s.full == 0 {
		return quotaPerPlace
	}
	return s.full
}

// Places notes how many places the host says that it has. Its quota is larger with more of
// them as long as it has lost nothing: nobody regains it by saying more.
func (s *Standing) Places(n int) {
	full := float64(min(mostQuota, quotaPerPlace*max(1, n)))
	if s.short == 0 && full > s.whole() {
		s.full = full
	}
}

// Held reports whether the host is held back: its results are too bad, and it has lost more
// of its quota than its places bear.
func (s *Standing) Held(now job.Time) bool {
	s.age(now)
	return s.errorRate >= heldRate && s.quota() < s.whole()/quotaPerPlace
}

// May returns how many tasks a host that is held back may have which has so many, of all
// bags, and until when it waits if that is no more. Call [Standing.Probed] when it got some.
func (s *Standing) May(has int, now job.Time) (more int, until job.Time) {
	s.age(now)
	if most := int(s.quota()); most >= 1 {
		return max(0, most-has), now
	}
	if has > 0 || now < s.until {
		return 0, s.until
	}
	return 1, now
}

// Probed notes that a host that is held back has got tasks: the next ones come later unless
// it does them well.
func (s *Standing) Probed(now job.Time) {
	s.wait = min(max(2*s.wait, FirstProbe), MostProbe)
	s.until = now.Add(s.wait)
}

func (s *Standing) age(now job.Time) {
	if past := now.Sub(s.as); past > 0 {
		left := math.Exp2(-past.Seconds() / standingHalf.Seconds())
		s.done, s.failed, s.as = s.done*left, s.failed*left, now
		s.short = max(0, s.short-past.Seconds()/quotaRefill.Seconds())
	}
}

// Fill sets what a host's standing says in its scope. Counts are rounded, so that what
// policies found holds while they are nearly the same.
func (s *Standing) Fill(host *Scope, now job.Time) {
	s.age(now)
	host.Number(HostErrorRate, s.ErrorRate())
	host.Number(HostTurnaround, s.Turnaround())
	host.Number(HostDone, round(s.done, 10))
	host.Number(HostFailed, round(s.failed, 10))
	host.Number(HostQuota, s.Quota())
}

// Turnaround returns the seconds from a grant to a result, NaN before the first.
func (s *Standing) Turnaround() float64 {
	if !s.known {
		return math.NaN()
	}
	return round(s.turnaround, 10)
}

// ErrorRate returns by how much the share of failures is above what bags fail elsewhere, from
// 0 to 1; the latest result counts for a tenth.
func (s *Standing) ErrorRate() float64 { return round(s.errorRate, 1e4) }

// Quota returns how many tasks the host may lose until it is held back for good.
func (s *Standing) Quota() float64 { return round(s.quota(), 10) }

// Recent returns how many tasks the host has done well and failed of late, see [HostDone].
func (s *Standing) Recent(now job.Time) (done, failed float64) {
	s.age(now)
	return round(s.done, 10), round(s.failed, 10)
}

// Until returns when a host that is held back gets a task next, if it has none.
func (s *Standing) Until() job.Time { return s.until }

func round(n, steps float64) float64 { return math.Round(n*steps) / steps }
