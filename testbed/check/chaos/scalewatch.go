package chaos

import (
	"bufio"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
)

// scaleWatch looks at the healthy sites all the time, and at what the jobs sign.
type scaleWatch struct {
	r      *scaleRun
	ledger *bufio.Reader // nil before the first job has signed
	line   string        // the beginning of one that is not written whole yet

	started map[string]bool // healthy jobs
	running map[string]int  // attempts by site

	seen []scaleLook
	late []time.Duration
	over []time.Duration // how late short sleeps ended
}

// scaleLook is one look.
type scaleLook struct {
	at time.Time
	// waiting is how many healthy jobs had not started.
	waiting int
	// free and unsigned are the free processors of each healthy site, as it counts
	// and by the ledger. free is -1 where it did not answer.
	free, unsigned []int
}

func newScaleWatch(r *scaleRun) *scaleWatch {
	return &scaleWatch{r: r, started: make(map[string]bool), running: make(map[string]int)}
}

// watch looks four times a second.
func (w *scaleWatch) watch(ctx context.Context) {
	for pause.For(ctx, 250*time.Millisecond) {
		w.read()
		l := scaleLook{at: time.Now(), free: make([]int, w.r.healthy), unsigned: make([]int, w.r.healthy)}
		w.r.mu.Lock()
		l.waiting = -len(w.started)
		for id := range w.r.accepted {
			if w.healthy(id) {
				l.waiting++
			}
		}
		w.r.mu.Unlock()
		took := make([]time.Duration, w.r.healthy)
		var wg sync.WaitGroup
		for i, n := range w.r.fed.Nodes()[:w.r.healthy] {
			l.unsigned[i] = int(w.r.opt.Processors) - w.running[n.Name]
			wg.Go(func() {
				limited, cancel := context.WithTimeout(ctx, callTimeout)
				defer cancel()
				began := time.Now()
				s, err := n.Sites.GetSite(limited, &kithv1.GetSiteRequest{})
				took[i] = time.Since(began)
				if l.free[i] = int(s.GetSite().GetFreeProcessors()); err != nil {
					l.free[i] = -1
				}
			})
		}
		wg.Wait()
		if ctx.Err() != nil {
			return
		}
		w.late = append(w.late, took...)
		w.seen = append(w.seen, l)
		for _, n := range w.r.fed.Nodes()[:w.r.healthy] {
			w.r.report.PeakMemory = max(w.r.report.PeakMemory, resident(n.PID()))
		}
	}
}

// healthy reports whether a job was submitted at a healthy site.
func (w *scaleWatch) healthy(id string) bool {
	origin, _, _ := strings.Cut(id, ".")
	return slices.Index(w.r.names, origin) < w.r.healthy
}

// read takes in what the jobs have signed since the last time.
func (w *scaleWatch) read() {
	if w.ledger == nil {
		f, err := os.Open(w.r.ledger)
		if err != nil {
			return // none has
		}
		w.ledger = bufio.NewReader(f) // open until the process ends
	}
	for {
		part, err := w.ledger.ReadString('\n')
		w.line += part
		if err != nil {
			if err != io.EOF {
				w.r.problem("ledger: %v", err)
			}
			return
		}
		f := strings.Fields(w.line)
		w.line = ""
		if len(f) != 3 {
			w.r.problem("ledger: %q is no entry", f)
			continue
		}
		if f[0] == "E" {
			w.running[f[2]]--
			continue
		}
		w.running[f[2]]++
		if w.healthy(f[1]) {
			w.started[f[1]] = true
		}
	}
}

// sum says how idle the healthy sites were.
func (w *scaleWatch) sum() {
	r := w.r
	processors := r.healthy * int(r.opt.Processors)
	var idle, unsigned, all float64
	row, each := make([]float64, r.healthy), make([]float64, r.healthy)
	for k := 1; k < len(w.seen); k++ {
		a, b := &w.seen[k-1], &w.seen[k]
		if min(a.waiting, b.waiting) <= processors {
			clear(row)
			continue
		}
		span := b.at.Sub(a.at).Seconds()
		for i := range r.healthy {
			all += span * float64(r.opt.Processors)
			unsigned += span * float64(max(0, b.unsigned[i]))
			each[i] += span * float64(max(0, b.free[i]))
			switch free := b.free[i]; {
			case free > 0 && a.free[i] > 0:
				idle += span * float64(free)
				row[i] += span
				r.report.LongestIdle = max(r.report.LongestIdle, row[i])
			case free > 0:
				idle += span * float64(free)
				row[i] = 0
			default:
				row[i] = 0
			}
		}
	}
	if all > 0 {
		r.report.Idle, r.report.IdleByLedger = idle/all, unsigned/all
		for i, free := range each {
			r.note("%s: %.1f processor-seconds idle of %.0f", r.names[i], free, all/float64(r.healthy))
		}
	}
	r.report.LateSite, r.report.LateMachine = p99(w.late), p99(w.over)
}

// nap measures how late the machine lets a program go on.
func (w *scaleWatch) nap(ctx context.Context) {
	const short = 10 * time.Millisecond
	for began := time.Now(); pause.For(ctx, short); began = time.Now() {
		w.over = append(w.over, time.Since(began)-short)
	}
}

// p99 returns what 99 of 100 do not exceed, in seconds. It sorts them.
func p99(all []time.Duration) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)*99/100].Seconds()
}
