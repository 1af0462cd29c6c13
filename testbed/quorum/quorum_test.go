package quorum

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
	"kith/store"
)

// clock is an agenda in virtual time.
type clock struct {
	now   job.Time
	queue timers
	order int
}

type timer struct {
	at    job.Time
	order int
	do    func()
}

type timers []timer

func (q timers) Len() int { return len(q) }
func (q timers) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q timers) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *timers) Push(x any)   { *q = append(*q, x.(timer)) } //nolint:forcetypeassert // there is nothing else
func (q *timers) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

func (c *clock) after(d time.Duration, do func()) {
	c.order++
	heap.Push(&c.queue, timer{c.now.Add(max(d, 1)), c.order, do})
}

func (c *clock) run(until job.Time) {
	for len(c.queue) > 0 && c.queue[0].at <= until {
		t := heap.Pop(&c.queue).(timer) //nolint:forcetypeassert // there is nothing else
		c.now = t.at
		t.do()
	}
	c.now = until
}

// driver submits a job after the other through a lead, until its answer is for good.
type driver struct {
	w     *world
	lead  *Lead
	state *store.State
}

// world is a site and what its clients were told.
type world struct {
	clock
	t     *testing.T
	g     *Group
	rng   *rand.Rand
	acked map[job.ID]bool
	leads int
	void  int
	quiet bool // nothing more is submitted
	wrong []string
}

func newWorld(t *testing.T, seed uint64, members int) *world {
	t.Helper()
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), acked: make(map[job.ID]bool)}
	w.now = job.Time(time.Hour)
	g, first, err := New(Config{
		Site: "alpha", Generation: 1, Members: members, Rand: w.rng, After: w.after, Now: func() job.Time { return w.now },
		Latency: time.Millisecond, Jitter: 20 * time.Millisecond, Snapshot: 20, Trailing: 5,
		Begins: w.drive, Over: func(*Lead) {},
		Violate: func(format string, args ...any) { w.wrong = append(w.wrong, fmt.Sprintf(format, args...)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.g = g
	g.Begin()
	w.drive(first)
	return w
}

func (w *world) drive(l *Lead) {
	w.leads++
	state, err := l.Load()
	if err != nil {
		w.t.Fatal(err)
	}
	for id := range w.acked {
		if state.Job(id) == nil {
			w.wrong = append(w.wrong, fmt.Sprintf("job %v was acknowledged and is lost", id))
		}
	}
	(&driver{w, l, state}).next()
}

func (d *driver) next() {
	if d.w.quiet {
		return
	}
	var id job.ID
	if d.w.rng.IntN(3) > 0 {
		id = d.state.NextID()
		if err := store.Record(d.state, store.SubmitJob{ID: id, Request: job.Request{Name: "x", Processors: 1, Walltime: time.Hour}, Payload: []byte("x"), Time: 1}); err != nil {
			d.w.t.Fatal(err)
		}
	}
	b := d.lead.Seal(d.state).(*Batch) //nolint:forcetypeassert // it is one
	b.Start(func() {
		err := b.Commit()
		switch {
		case store.Void(err):
			d.w.void++
			d.w.after(time.Second, d.lead.Again)
			return
		case err != nil:
			d.w.t.Fatalf("commit: %v", err)
		case !id.IsZero():
			d.w.acked[id] = true
		}
		d.w.after(time.Duration(d.w.rng.IntN(200))*time.Millisecond, d.next)
	})
}

// upset has something go wrong.
func (w *world) upset() {
	g, m := w.g, w.rng.IntN(w.g.Members())
	switch w.rng.IntN(10) {
	case 0, 1:
		g.Kill(m)
		w.after(time.Duration(w.rng.IntN(20_000))*time.Millisecond, func() { g.Start(m) })
	case 2:
		g.Pause(m)
		w.after(time.Duration(w.rng.IntN(20_000))*time.Millisecond, func() { g.Resume(m) })
	case 3:
		g.Part(m)
	case 4:
		g.PartAll()
	case 5, 6:
		g.Join()
	case 7:
		g.HandOver(m)
	case 8:
		if g.Wipe(m) {
			w.after(time.Duration(w.rng.IntN(5_000))*time.Millisecond, func() { g.Start(m) })
		}
	case 9:
		g.Fill(m, true)
		w.after(time.Duration(w.rng.IntN(20_000))*time.Millisecond, func() { g.Fill(m, false) })
	}
}

// Whatever happens to members, what was acknowledged stands, and all come to the same facts.
func TestWhatWasAcknowledgedStands(t *testing.T) {
	leads, void, acked := 0, 0, 0
	for seed := range uint64(60) {
		w := newWorld(t, seed, 3+2*int(seed%2))
		for range 60 {
			w.run(w.now.Add(time.Duration(w.rng.IntN(6_000)) * time.Millisecond))
			w.upset()
		}
		w.g.Join()
		for m := range w.g.Members() {
			w.g.Resume(m)
			w.g.Start(m)
			w.g.Fill(m, false)
		}
		before := len(w.acked)
		w.run(w.now.Add(time.Minute))
		if len(w.acked) == before {
			w.wrong = append(w.wrong, "nothing is acknowledged after all faults")
		}
		w.quiet = true
		w.run(w.now.Add(time.Minute))
		want := ""
		for _, m := range w.g.members {
			if m.role == leading {
				want = string(m.disk.Bytes())
			}
		}
		same := 0
		for _, m := range w.g.members {
			if string(m.disk.Bytes()) == want {
				same++
			}
		}
		if same < w.g.Members() {
			w.wrong = append(w.wrong, fmt.Sprintf("%d of %d members have the facts of the leader", same, w.g.Members()))
		}
		for _, text := range w.wrong {
			t.Errorf("seed %d: %s", seed, text)
		}
		leads, void, acked = leads+w.leads, void+w.void, acked+len(w.acked)
	}
	t.Logf("%d leads, %d given up, %d jobs acknowledged", leads, void, acked)
	if leads < 400 || void < 200 || acked < 20_000 {
		t.Errorf("%d leads, %d batches given up and %d jobs acknowledged: too few to say anything", leads, void, acked)
	}
}
