package sim_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/testbed/sim"
)

// arrivals returns the times, in milliseconds after the start, at which
// messages of a kind from one site to another arrived.
func arrivals(log []byte, kind, from, to string) (at []float64) {
	for line := range strings.Lines(string(log)) {
		f := strings.Fields(line)
		if len(f) > 3 && f[1] == kind && f[2] == from && f[3] == to {
			seconds, err := strconv.ParseFloat(f[0], 64)
			if err != nil {
				panic(err)
			}
			at = append(at, seconds*1000)
		}
	}
	return at
}

// Each way of each link has its own latency.
func TestEveryWayHasItsLatency(t *testing.T) {
	cfg := federation(0, 4, 4, 4)
	var log bytes.Buffer
	cfg.Log = &log
	ms := func(n int) sim.LinkConfig { return sim.LinkConfig{Latency: time.Duration(n) * time.Millisecond} }
	cfg.Network = sim.NetworkConfig{LinkConfig: ms(100), Links: map[sim.Way]sim.LinkConfig{
		{From: "s0", To: "s1"}: ms(7), {From: "s1", To: "s0"}: ms(40), {From: "s0", To: "s2"}: ms(0),
	}}
	for i := range cfg.Sites {
		cfg.Sites[i].Meta.Placement.Scheme, cfg.Sites[i].Meta.Placement.Copies = meta.KDual, 3
	}
	w := newWorld(t, cfg)
	full := sim.Submission{Request: request(4, time.Hour), RunTime: time.Hour}
	for _, s := range []job.SiteID{"s0", "s1", "s2"} {
		w.Submit(sim.Start.Add(time.Second), s, full)
	}
	w.Submit(sim.Start.Add(10*time.Second), "s0", full)
	if err := w.Run(sim.Start.Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := w.CloseLog(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind, from, to string
		want           float64
	}{
		{"place-copy", "s0", "s1", 10007}, {"copy-answer", "s1", "s0", 10047},
		{"place-copy", "s0", "s2", 10000}, {"copy-answer", "s2", "s0", 10100},
	} {
		got := arrivals(log.Bytes(), c.kind, c.from, c.to)
		if !slices.Contains(got, c.want) {
			t.Errorf("%s from %s to %s arrived at %v ms, want %v among them", c.kind, c.from, c.to, got, c.want)
		}
	}
}

// Jitter has the mean and the tail of its shape.
func TestShapesOfJitter(t *testing.T) {
	const jitter = 100 * time.Millisecond
	for shape, want := range map[sim.Shape]struct{ mean, most float64 }{
		sim.Uniform: {50, 100}, sim.Exponential: {100, 2000}, sim.HeavyTail: {100 * math.Exp(0.5), 10_000},
	} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			cfg := federation(1, 1, 1)
			cfg.Check = false
			var log bytes.Buffer
			cfg.Log = &log
			cfg.Network.LinkConfig = sim.LinkConfig{Latency: time.Second, Jitter: jitter, Shape: shape, Reorder: 1}
			for i := range cfg.Sites {
				cfg.Sites[i].Meta.Timing.Load = 20 * time.Second
			}
			w := newWorld(t, cfg)
			if err := w.Run(sim.Start.Add(24 * time.Hour)); err != nil {
				t.Fatal(err)
			}
			if err := w.CloseLog(); err != nil {
				t.Fatal(err)
			}
			// Digests leave at one phase of their period: what remains is the jitter,
			// counted from the fastest of thousands.
			late := arrivals(log.Bytes(), "load-digest", "s0", "s1")[1:]
			for i := range late {
				late[i] = math.Mod(late[i], 20_000)
			}
			sum, most, fastest := 0.0, slices.Max(late), slices.Min(late)
			for _, at := range late {
				sum += at - fastest
			}
			mean := sum / float64(len(late))
			most -= fastest
			if len(late) < 4000 || math.Abs(mean-want.mean) > 0.1*want.mean || most > want.most {
				t.Errorf("%d messages: mean %.1f ms, most %.1f ms beyond the latency, want mean %.1f and at most %.1f",
					len(late), mean, most, want.mean, want.most)
			}
		})
	}
}

// A partition stops everything between two groups, also one way alone, and
// jobs end once it is over.
func TestPartitions(t *testing.T) {
	for name, cut := range map[string]func(*sim.World){
		"both ways": func(w *sim.World) { w.Partition("s0", "s1") },
		"one way":   func(w *sim.World) { w.Cut("s0", "s2"); w.Cut("s1", "s2") },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := federation(2, 2, 2, 2)
			cfg.Network.LinkConfig = sim.LinkConfig{Latency: 5 * time.Millisecond}
			for i := range cfg.Sites {
				cfg.Sites[i].Meta.Placement.Copies = 3
			}
			w := newWorld(t, cfg)
			const n = 30
			for i := range n {
				w.Submit(sim.Start.Add(time.Duration(i)*10*time.Second), cfg.Sites[i%3].ID, sim.Submission{
					Request: request(1+int32(i%2), time.Minute), RunTime: 40 * time.Second,
				})
			}
			began, ended := sim.Start.Add(90*time.Second), sim.Start.Add(240*time.Second)
			w.At(began, func() { cut(w) })
			through := int64(0)
			w.At(began.Add(time.Minute), func() {
				if !w.Cuts("s0", "s2") || !w.Cuts("s1", "s2") || w.Cuts("s0", "s1") {
					t.Error("the wrong links are cut")
				}
				sent, lost := w.Messages()
				through = sent - lost
			})
			w.At(ended, w.HealAll)
			if err := w.RunWhile(sim.Start.Add(6*time.Hour), func() bool { return len(w.Acknowledged()) < n || !drained(w) }); err != nil {
				t.Fatal(err)
			}
			if err := w.CheckEnded(); err != nil {
				t.Error(err)
			}
			if sent, lost := w.Messages(); lost == 0 || sent-lost <= through || through == 0 {
				t.Errorf("%d messages sent, %d lost, %d got through during the partition", sent, lost, through)
			}
		})
	}
}
