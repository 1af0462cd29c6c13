package levels

import (
	"testing"

	"kith/testbed/lab"
	"kith/testbed/lab/labtest"
)

// A small run is whole.
func TestSharingSmall(t *testing.T) { labtest.Small(t, Sharing(), 1, 0) }

// All jobs end under each way, and none is moved but where they are pushed.
func TestSharingWays(t *testing.T) {
	for name, env := range labtest.Envs(t, 400) {
		env.Settle(1) //nolint:errcheck // Its values are good.
		for _, x := range allSharing() {
			o, err := x.run(t.Context(), env, 1)
			if err != nil {
				t.Fatal(err)
			}
			if int(o.all.n) != 400 || o.moved > 0 && x != pushed && x != homePushed || o.moved == 0 && x == homePushed {
				t.Errorf("%s, %s: %+v", name, x, o)
			}
		}
	}
}

// Bands accept what meets them and refuse what is just outside.
func TestSharingBands(t *testing.T) {
	a := &sharers{Outcomes: make(lab.Outcomes[sharing, *shared])}
	at := func(x sharing, narrow, all, moves, sent float64) {
		a.Outcomes[x] = []*shared{{outcome: outcome{narrow: part{time: narrow}, all: part{time: all}}, moved: moves, messages: sent}}
	}
	judge := func() (held string) {
		for _, q := range sharingQuestions() {
			if q.Judge(a).Result == lab.Holds {
				held += q.ID + " "
			}
		}
		return held
	}
	at(copies, 0, 102, 0, 10)
	at(single, 0, 100, 0, 0)
	at(pushed, 0, 102, 5, 10)
	at(homeCopies, 90, 0, 0, 0)
	at(home, 100, 0, 0, 0)
	at(homePushed, 90, 0, 0, 0)
	if got := judge(); got != "U1 U2 U3 U4 U5 U6 " {
		t.Errorf("at the bands: %s", got)
	}
	at(copies, 0, 104, 0, 10)
	at(pushed, 0, 103, 5.1, 10.1)
	at(homeCopies, 92, 0, 0, 0)
	at(homePushed, 91, 0, 0, 0)
	if got := judge(); got != "" {
		t.Errorf("just outside: %s", got)
	}
}
