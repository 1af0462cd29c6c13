package bags

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
)

// slowAnswer gives out one task after the other: before each bundle it sorts all bags
// anew. It knows neither elsewhere nor policies.
func slowAnswer(usage *Usage, ask Ask, works []Work, now job.Time) (shares []Share) {
	ask = ask.Bounded()
	works = slices.Clone(works)
	order := make([]int, len(works))
	for i := range works {
		order[i] = i
	}
	stand := func(user string) float64 {
		sum := usage.Of(user, now)
		for i := range works {
			if w := &works[i]; w.User == user {
				mean := w.Mean
				if mean == 0 {
					mean = min(w.Walltime, 10*time.Minute)
				}
				sum += float64(w.Given) * float64(w.Shape.Processors) * mean.Seconds()
			}
		}
		return sum
	}
	size := func(mean time.Duration) time.Duration {
		if mean == 0 || mean > 2*time.Second {
			return 2 * time.Second
		}
		return mean
	}
	places := time.Duration(ask.Places) * 2 * time.Second
	left := min(places, 2*places-time.Duration(ask.Stock)*size(ask.Mean))
	for got := 0; len(shares) < 64; {
		slices.SortFunc(order, func(i, j int) int {
			a, b := &works[i], &works[j]
			switch x, y := stand(a.User), stand(b.User); {
			case a.Priority != b.Priority:
				return int(b.Priority) - int(a.Priority)
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return int(a.Submitted - b.Submitted)
		})
		share := Share{-1, 0}
		for _, i := range order {
			w := &works[i]
			each := size(w.Mean)
			if w.Mean == 0 {
				each = size(ask.Mean)
			}
			for w.Shape == ask.Shape && slices.Contains(w.Sites, ask.Site) && w.Waiting > 0 && w.Room > 0 && left > 0 && got < ask.Want && share.Tasks < 256 {
				share = Share{i, share.Tasks + 1}
				w.Waiting, w.Room, w.Given, left, got = w.Waiting-1, w.Room-1, w.Given+1, left-each, got+1
			}
			if share.Tasks > 0 {
				break
			}
		}
		if share.Tasks == 0 {
			break
		}
		shares = append(shares, share)
	}
	return shares
}

func randomWorks(rng *rand.Rand, n int) (works []Work) {
	means := []time.Duration{0, 0, time.Millisecond, 300 * time.Millisecond, time.Second, time.Minute}
	for i := range n {
		w := workOf(uint64(i), string(rune('a'+rng.IntN(4))), rng.IntN(600))
		w.Priority, w.Mean, w.Given = int32(rng.IntN(8)/6), means[rng.IntN(len(means))], rng.IntN(4)
		if rng.IntN(3) == 0 {
			w.Room = rng.IntN(50)
		}
		if rng.IntN(5) == 0 {
			w.Shape.Processors = 2
		}
		if rng.IntN(5) == 0 {
			w.Sites = w.Sites[1:]
		}
		works = append(works, w)
	}
	rng.Shuffle(n, func(i, j int) { works[i], works[j] = works[j], works[i] })
	return works
}

// The answer is that of the slow reference, and within the bounds of the ask, whatever is
// asked (spec 002, acceptance 5, for bags in the place of a buffer).
func TestAnswersAgainstAReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	d, long, several := newDesk(), 0, 0
	for range 3000 {
		*d.Usage = Usage{}
		for _, user := range []string{"a", "b"} {
			d.Usage.Add(user, float64(rng.IntN(3)*1000), 0)
		}
		works := randomWorks(rng, rng.IntN(12))
		ask := Ask{
			Site: "beta", Shape: hour, Places: rng.IntN(40) * rng.IntN(10), Stock: rng.IntN(40), Want: rng.IntN(200) * rng.IntN(30),
			Mean: time.Duration(rng.IntN(3)) * 40 * time.Millisecond,
		}
		now := job.Time(rng.Int64N(int64(3 * HalfLife)))
		before := slices.Clone(works)
		got, want := d.Answer(ask, works, now), slowAnswer(d.Usage, ask, works, now)
		if !slices.Equal(got, want) {
			t.Fatalf("%+v of %+v: %v, want %v", ask, works, got, want)
		}
		tasks, given, room := 0, make([]int, len(works)), 2*time.Second*time.Duration(ask.Places)
		for _, s := range got {
			tasks += s.Tasks
			given[s.Work] += s.Tasks
			if s.Tasks < 1 || s.Tasks > store.MaxBundleTasks {
				t.Fatalf("a bundle of %d tasks", s.Tasks)
			}
			room -= time.Duration(s.Tasks-1) * min(d.mean(&works[s.Work]), Ahead)
		}
		if tasks > min(ask.Want, MaxAsk) || len(got) > MaxBundles || room < 0 {
			t.Fatalf("%+v gets %d tasks in %d bundles, %v too much", ask, tasks, len(got), -room)
		}
		for i := range works {
			if given[i] > works[i].Tasks() || works[i].Waiting != before[i].Waiting {
				t.Fatalf("%d tasks of %+v, which was %+v", given[i], works[i], before[i])
			}
		}
		if len(got) > 1 {
			several++
		}
		if tasks > 256 {
			long++
		}
	}
	if long < 100 || several < 500 {
		t.Errorf("%d long answers, %d with several bundles: the test has become too easy", long, several)
	}
}

// Users of equal priority get equal shares of processor-seconds, however many bags they
// have and however long their tasks run; the bags of one user end in order.
func TestUsersOfEqualPriorityTakeTurns(t *testing.T) {
	d := newDesk()
	works := []Work{workOf(1, "ann", 1e6)}
	for i := range uint64(50) {
		works = append(works, workOf(2+i, "bob", 2000))
	}
	works = append(works, workOf(60, "cid", 1e6))
	works[0].Mean, works[51].Mean = time.Minute, 20*time.Minute
	for i := 1; i <= 50; i++ {
		works[i].Mean = 5 * time.Minute
	}
	// A site with 100 places runs what it gets and asks when a task has ended.
	type run struct {
		ends job.Time
		work int
	}
	var running []run
	used := map[string]float64{}
	now, first := job.Time(0), 1
	for now < job.Time(48*time.Hour) {
		for _, s := range d.Answer(Ask{Site: "beta", Shape: hour, Places: 100, Want: 100 - len(running)}, works, now) {
			if s.Work >= 1 && s.Work <= 50 {
				if s.Work != first && (s.Work != first+1 || works[first].Waiting > 0) {
					t.Fatalf("at %v tasks of bag %d are given, bag %d has %d left", time.Duration(now), s.Work, first, works[first].Waiting)
				}
				first = s.Work
			}
			w := &works[s.Work]
			w.Waiting, w.Given = w.Waiting-s.Tasks, w.Given+s.Tasks
			for range s.Tasks {
				running = append(running, run{now.Add(w.Mean), s.Work})
			}
		}
		if len(running) != 100 {
			t.Fatalf("at %v %d of 100 places are busy", time.Duration(now), len(running))
		}
		now = slices.MinFunc(running, func(a, b run) int { return int(a.ends - b.ends) }).ends
		running = slices.DeleteFunc(running, func(r run) bool {
			if r.ends > now {
				return false
			}
			w := &works[r.work]
			w.Given--
			d.Usage.Add(w.User, w.Mean.Seconds(), now)
			used[w.User] += w.Mean.Seconds()
			return true
		})
	}
	third := (used["ann"] + used["bob"] + used["cid"]) / 3
	for user, seconds := range used {
		if seconds < 0.95*third || seconds > 1.05*third {
			t.Errorf("%s has had %.3f of an equal share", user, seconds/third)
		}
	}
}
