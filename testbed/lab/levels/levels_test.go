package levels

import (
	"testing"
	"time"

	"kith/testbed/lab"
	"kith/testbed/lab/labtest"
)

// A small run is whole.
func TestSmall(t *testing.T) { labtest.Small(t, Experiment(), 1, 1) }

// Predictions rest on what had ended, and none is longer than the user's limit; the truth of later jobs changes nothing
// about those of earlier ones.
func TestPredictions(t *testing.T) {
	for name, env := range labtest.Envs(t, 500) {
		w, p, err := jobsOf(env, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.OfferedLoad(p) / total; got < load*0.99 || got > load*1.01 {
			t.Errorf("%s: load %v", name, got)
		}
		before, n := predictions(w), len(w.Jobs)/2
		other := *w
		other.Jobs = append(other.Jobs[:0:0], w.Jobs...)
		for i := n; i < len(other.Jobs); i++ {
			other.Jobs[i].Run = time.Second
		}
		after, less := predictions(&other), 0
		for i := range before {
			if i <= n && before[i] != after[i] {
				t.Fatalf("%s: the prediction of job %d changes with later ones", name, i)
			}
			if before[i] > w.Jobs[i].Estimate {
				t.Fatalf("%s: job %d is predicted to take %v, its limit is %v", name, i, before[i], w.Jobs[i].Estimate)
			}
			if before[i] < w.Jobs[i].Estimate {
				less++
			}
		}
		if less < len(before)/4 {
			t.Errorf("%s: %d of %d predictions are shorter than the limit", name, less, len(before))
		}
	}
}

// On levels all jobs end with their whole work, and some go down; only where a prediction is a limit are some stopped.
func TestTrials(t *testing.T) {
	for name, env := range labtest.Envs(t, 300) {
		env.Settle(1) //nolint:errcheck // Its values are good.
		for _, x := range allTrials() {
			o, err := x.run(t.Context(), env, 1)
			if err != nil {
				t.Fatal(err)
			}
			w, _, err := jobsOf(env, 1)
			if err != nil {
				t.Fatal(err)
			}
			if int(o.all.n) != len(w.Jobs) || o.stopped > 0 != (x == hard) || o.demotions > 0 != (x == hierarchy || x == limited || x == predicted) {
				t.Errorf("%s, %s: %+v", name, x, o)
			}
			if x != hard && o.work < w.Work()*0.999 {
				t.Errorf("%s, %s: %v processor-seconds were held for %v", name, x, o.work, w.Work())
			}
		}
	}
}

// Bands accept what meets them and refuse what is just outside.
func TestBands(t *testing.T) {
	a := &answers{Outcomes: make(lab.Outcomes[trial, *outcome])}
	at := func(x trial, s, l float64) {
		a.Outcomes[x] = []*outcome{{short: part{time: s}, narrow: part{time: s}, long: part{time: l}, repeated: 5, stopped: 10}}
	}
	judge := func() (held string) {
		for _, q := range questions() {
			if q.Judge(a).Result == lab.Holds {
				held += q.ID + " "
			}
		}
		return held
	}
	at(hierarchy, 100, 1000)
	at(limited, 100, 1000)
	at(limits, 120, 1000)
	at(predicted, 110, 1000)
	at(hard, 110, 1000)
	at(perfect, 110, 1000)
	if got := judge(); got != "L1 L2 L3 L4 L5 L6 L7 L8 L9 " {
		t.Errorf("at the bands: %s", got)
	}
	at(hierarchy, 100, 999)
	at(limits, 99, 1000)
	at(limited, 100, 1000)
	at(predicted, 111, 1000)
	at(perfect, 112, 1000)
	a.Outcomes[hierarchy][0].repeated, a.Outcomes[hard][0].stopped = 5.1, 9.9
	if got := judge(); got != "" {
		t.Errorf("just outside: %s", got)
	}
}
