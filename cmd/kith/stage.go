package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/demo"
)

// stage shows a demo while it runs: a table that is drawn over and over on a
// terminal, a line for every step otherwise.
type stage struct {
	c     *client
	total int
	// live says that there is a terminal to draw on.
	live bool
	// insecure says that the sites have no keys.
	insecure bool
	began    time.Time

	mu    sync.Mutex
	sites []string
	jobs  map[string]demo.Event // latest of each
	last  []demo.Event          // the latest few
	drawn int                   // lines on the screen
	stop  chan struct{}
	done  chan struct{}
}

// lastShown is how many events the live table shows.
const lastShown = 6

func (c *client) demoStage(opt demo.Options) *stage {
	return &stage{
		c: c, total: opt.Jobs, live: c.Width > 0 && !c.JSON(), insecure: opt.Insecure, jobs: make(map[string]demo.Event),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// begin shows the sites.
func (s *stage) begin(d *demo.Demo) {
	s.began = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range d.Federation().Nodes() {
		s.sites = append(s.sites, n.Name)
		s.c.Note("site %s at %s: %d processors, %s, %s", n.Name, n.Target(), n.Config.Scheduler.Processors, n.Config.Scheduler.Backfill, n.Config.Scheduler.Queues)
	}
	for _, line := range waysTo(d, s.insecure) {
		s.c.Note("%s", line)
	}
	if !s.live {
		close(s.done)
		return
	}
	go s.keepDrawing()
}

// see takes an event.
func (s *stage) see(ev demo.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.jobs[ev.Job]
	if known && old.State == ev.State && old.Host == ev.Host {
		return
	}
	s.jobs[ev.Job] = ev
	if s.last = append(s.last, ev); len(s.last) > lastShown {
		s.last = s.last[1:]
	}
	if !s.live && !s.c.JSON() {
		fmt.Fprintln(s.c.Stdout, s.sentence(ev)) // the summary says whether all went well
	}
}

func (s *stage) sentence(ev demo.Event) string {
	state := strings.TrimPrefix(ev.State.String(), "STATE_")
	text := fmt.Sprintf("%7.3f s  %-18s %-12s %s", ev.At.Sub(s.began).Seconds(), ev.Job, ev.Name, state)
	switch {
	case ev.Host != "":
		text += " at " + ev.Host
	case len(ev.Sites) > 0:
		text += " at " + strings.Join(ev.Sites, ", ")
	}
	return cli.Clean(text)
}

func (s *stage) keepDrawing() {
	defer close(s.done)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.draw()
		case <-s.stop:
			s.draw()
			return
		}
	}
}

// draw writes the table over the one before.
func (s *stage) draw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.text()
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, l := range lines {
		b.WriteString("\x1b[2K" + cli.Cut(l, s.c.Width-1) + "\n")
	}
	s.drawn = len(lines)
	fmt.Fprint(s.c.Stdout, b.String()) // the summary says whether all went well
}

func (s *stage) text() string {
	running, ran, waiting, ended := map[string]int{}, map[string]int{}, map[string]int{}, 0
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		ev := s.jobs[id]
		switch {
		case ev.State >= kithv1.JobStatus_STATE_COMPLETED:
			ended++
			ran[ev.Host]++
		case ev.Host != "":
			running[ev.Host]++
		default:
			for _, site := range ev.Sites {
				waiting[site]++
			}
		}
	}
	g := cli.Grid{Columns: []cli.Column{{Title: "SITE"}, {Title: "WAITING", Right: true}, {Title: "RUNNING", Right: true}, {Title: "DONE", Right: true}, {Title: ""}}}
	for _, site := range s.sites {
		g.Add(site, fmt.Sprint(waiting[site]), fmt.Sprint(running[site]), fmt.Sprint(ran[site]),
			strings.Repeat("█", running[site])+strings.Repeat("·", min(waiting[site], 40)))
	}
	const bar = 40
	filled := bar * ended / max(1, s.total)
	text := g.Render(s.c.Width) + fmt.Sprintf("\n[%s%s] %d of %d jobs, %.1f s\n\n", strings.Repeat("=", filled), strings.Repeat(" ", bar-filled),
		ended, s.total, time.Since(s.began).Seconds())
	for i := range lastShown {
		if i < len(s.last) {
			text += s.sentence(s.last[i])
		}
		text += "\n"
	}
	return text
}

// end stops drawing.
func (s *stage) end() {
	close(s.stop)
	<-s.done
}
