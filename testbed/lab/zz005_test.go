package lab

import (
	"context"
	"fmt"
	"os"
	"testing"
	"kith/testbed/metrics"
)

func TestZZ005(t *testing.T) {
	if os.Getenv("ZZ5") == "" {
		t.Skip()
	}
	trials := []priorityTrial{mct(1, medium, 0), mct(1, medium, 1), mct(1, medium, 4), mct(1, medium, 3), mct(1, medium, 3).weighted(1.3)}
	for first := uint64(0); first < 400; first += 40 {
		env := &Env{Seeds: 40, FirstSeed: first}
		if err := env.settle(40); err != nil {
			t.Fatal(err)
		}
		a, err := answerPriority(context.Background(), env, trials)
		if err != nil {
			t.Fatal(err)
		}
		var all []float64
		for _, o := range a.trials[trials[0]] {
			all = append(all, o.all)
		}
		g, _ := a.gainLoss(trials[1])
		_, l := a.gainLoss(trials[2])
		fmt.Printf("first %d: ALL %.0f sd %.0f gain Q1 %.1f loss Q4 %.1f; sd Q3 %.0f -> %.0f\n", first, metrics.Mean(all), metrics.SampleSD(all), g, l, a.of(trials[3]).sd(), a.of(trials[4]).sd())
	}
}
