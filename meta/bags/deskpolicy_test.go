package bags

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"kith/internal/job"
)

// fixed gives a verdict, and counts how often it is asked.
type fixed struct {
	Judge
	verdict Verdict
	asked   *int
}

func (f fixed) Verdict(*Scene) Verdict { *f.asked++; return f.verdict }

// Policies that are asked of those alone whose turn may be next give what they give when all
// are asked before.
func TestPoliciesAreAskedLate(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	late, early, fewer := newDesk(), newDesk(), 0
	for range 4000 {
		asked := 0
		works := randomWorks(rng, rng.IntN(30))
		for i := range works {
			w := &works[i]
			w.User = string(rune('a' + rng.IntN(12)))
			if rng.IntN(3) > 0 {
				v := Verdict{Yes: rng.IntN(3) > 0, Rank: float64(rng.IntN(3)), Most: math.Inf(1)}
				if rng.IntN(3) == 0 {
					v.Most = float64(rng.IntN(60))
				}
				w.Judge = fixed{verdict: v, asked: &asked}
			}
		}
		for _, d := range []*Desk{late, early} {
			*d.Usage = Usage{}
		}
		for user := range 12 {
			used := float64(rng.IntN(3) * 1000)
			for _, d := range []*Desk{late, early} {
				d.Usage.Add(string(rune('a'+user)), used, 0)
			}
		}
		ask := Ask{Site: "beta", Shape: hour, Places: rng.IntN(40) * rng.IntN(10), Stock: rng.IntN(40), Want: rng.IntN(200) * rng.IntN(30)}
		if rng.IntN(2) == 0 {
			ask.Places, ask.Stock, ask.Want = 1, 0, 1
		}
		now := job.Time(1)
		got := slices.Clone(late.Answer(ask, works, now))
		some := asked
		asked = 0
		var want []Share
		early.ask, early.shares = ask.Bounded(), early.shares[:0]
		early.want, early.room, early.left, early.has = early.ask.Want, early.ask.room(), MaxBundles, early.ask.Running+early.ask.Stock
		early.forgetUsers()
		if early.want > 0 && early.room > 0 {
			early.gather(works, now, early.waiting)
			if early.asked = mostAsked; len(early.bags) > 0 {
				early.judge(early.bags[0].user, works, now)
			}
			want = early.deal(works, now)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v of %+v: %v, and %v if all policies are asked first", ask, works, got, want)
		}
		if some > asked {
			t.Fatalf("%d policies were asked, of %d", some, asked)
		}
		if some < asked {
			fewer++
		}
	}
	if fewer < 500 {
		t.Errorf("fewer were asked %d times only", fewer)
	}
}

// Where nobody who stands early gets anything, all are asked in the end, and not one user after
// the other.
func TestPoliciesOfManyUsersAreAskedTogether(t *testing.T) {
	asked := 0
	var works []Work
	d := newDesk()
	for i := range 500 {
		w := workOf(uint64(i), string(rune('a'+i)), 10)
		w.Judge = fixed{asked: &asked}
		works = append(works, w)
		d.Usage.Add(w.User, float64(i), 0)
	}
	if got := d.Answer(Ask{Site: "beta", Shape: hour, Places: 1, Want: 1}, works, 1); len(got) > 0 || asked != 500 || d.asked != mostAsked+1 {
		t.Errorf("%v; %d policies in %d rounds", got, asked, d.asked)
	}
}
