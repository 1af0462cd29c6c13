package explore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrTooLarge is returned when a world has more states than the search may keep.
var ErrTooLarge = errors.New("more states than allowed")

// Report is what a search found.
type Report struct {
	// States of the world, Transitions between them that were looked at, and
	// how long the longest of the shortest ways to a state is.
	States      int `json:"states"`
	Transitions int `json:"transitions"`
	Depth       int `json:"depth"`
	// LocalStates are those of single sites, LocalSteps the steps that engines
	// have really carried out; all others were looked up.
	LocalStates int `json:"local_states"`
	LocalSteps  int `json:"local_steps"`
	// Messages are those that differ. Ends are states in which only time can
	// bring anything about.
	Messages int `json:"messages"`
	Ends     int `json:"ends"`
	// Slept are transitions that were left out because another order of the
	// same steps is looked at.
	Slept   int     `json:"slept"`
	Seconds float64 `json:"seconds"`
	// Violation is the first broken invariant, empty if all hold everywhere;
	// Story is a shortest way to it.
	Violation string   `json:"violation,omitempty"`
	Story     []string `json:"story,omitempty"`
}

// Run looks at every state of a world. It returns an error that wraps
// [ErrTooLarge] or is that of ctx if it could not; the report then tells how
// far it came.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.MaxStates == 0 {
		cfg.MaxStates = DefaultMaxStates
	}
	began := time.Now()
	x := &search{w: &world{&cfg, newSites(&cfg)}, cfg: &cfg, visited: newTable()}
	x.ends = &completions{w: x.w, good: make(map[digest]bool)}
	err := x.run(ctx)
	r := &x.report
	r.States, r.LocalStates, r.LocalSteps, r.Messages = len(x.visited.keys), len(x.w.sites.byID), x.w.sites.played, len(x.w.sites.byNumber)
	r.Seconds = time.Since(began).Seconds()
	return r, err
}

// search is a breadth-first search.
type search struct {
	w       *world
	cfg     *Config
	visited *table
	// parents and by are the way to each state: the state before, and which of
	// its moves led here.
	parents []uint32
	by      []uint16
	ends    *completions
	report  Report
}

// level is the states of one depth, one after another.
type level struct {
	bytes   []byte
	numbers []uint32
}

func (x *search) run(ctx context.Context) error {
	first, err := x.beginning()
	if err != nil {
		return err
	}
	now, next := &level{}, &level{}
	x.push(now, first, 0, 0)
	var s state
	var list []move
	for depth := 0; len(now.numbers) > 0; depth++ {
		x.report.Depth = depth
		if x.cfg.Progress != nil {
			x.cfg.Progress(len(x.visited.keys), depth)
		}
		rest := now.bytes
		for _, number := range now.numbers {
			rest = rest[s.decode(rest, x.cfg):]
			list = x.w.moves(&s, list[:0])
			if violation := x.expand(&s, number, list, next); violation != "" {
				x.report.Violation = violation
				return nil
			}
			if len(x.visited.keys) > x.cfg.MaxStates {
				return fmt.Errorf("%d at depth %d: %w", len(x.visited.keys), depth, ErrTooLarge)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		now, next = next, now
		next.bytes, next.numbers = next.bytes[:0], next.numbers[:0]
	}
	return nil
}

// beginning is the world with all sites connected, and busy if they shall be.
func (x *search) beginning() (*state, error) {
	s := &state{}
	for i := range x.cfg.Sites {
		s.locals[i] = x.w.sites.first(i).id
	}
	for i := range x.cfg.Sites {
		for j := range x.cfg.Sites {
			if x.cfg.linked(i, j) {
				s.streams[i][j].mark = upMark
			}
		}
	}
	acked, jobs := s.acked, x.cfg.Jobs
	var list []move
	settle := func() error {
		for {
			list = x.w.moves(s, list[:0])
			k := 0
			for k < len(list) && (list[k].step.kind == submitJob || list[k].step.kind == processEnd) {
				k++
			}
			if k == len(list) {
				return nil
			}
			if objection, _ := x.w.apply(s, &list[k]); objection != "" {
				return errors.New(objection)
			}
		}
	}
	if err := settle(); err != nil {
		return nil, err
	}
	if x.cfg.Busy {
		if objection, _ := x.w.apply(s, &move{kind: atSite, step: step{kind: submitJob, job: blockerJob, cut: whole}}); objection != "" {
			return nil, errors.New(objection)
		}
		if err := settle(); err != nil {
			return nil, err
		}
	}
	s.acked, x.cfg.Jobs = acked, jobs
	for spend, n := range map[spending]int{
		aCrash: x.cfg.Crashes, aReboot: x.cfg.Reboots, aLoss: x.cfg.Losses, aDuplicate: x.cfg.Duplicates,
		aCut: x.cfg.Cuts, aTimeout: x.cfg.Timeouts, aCancel: x.cfg.Cancels,
	} {
		s.left[spend] = uint8(n) // bounded by Validate
	}
	return s, nil
}

// push adds a state to a level if it is new.
func (x *search) push(to *level, s *state, parent uint32, by int) {
	from := len(to.bytes)
	to.bytes = s.encode(to.bytes, x.cfg)
	number, fresh := x.visited.add(digestOf(to.bytes[from:]))
	if !fresh {
		to.bytes = to.bytes[:from]
		return
	}
	to.numbers = append(to.numbers, uint32(number))
	x.parents, x.by = append(x.parents, parent), append(x.by, uint16(by))
}

// expand makes all moves of a state.
func (x *search) expand(s *state, number uint32, list []move, next *level) string {
	stuck := true
	for k := range list {
		stuck = stuck && list[k].spend != free
		x.report.Transitions++
		to := s.clone()
		if objection, _ := x.w.apply(to, &list[k]); objection != "" {
			x.tell(number, &list[k])
			return objection
		}
		x.push(next, to, number, k)
	}
	if !stuck {
		return ""
	}
	x.report.Ends++
	if objection := x.ends.complete(s.clone()); objection != "" {
		x.tell(number, nil)
		x.report.Story = append(x.report.Story, "… and from here on nothing more goes wrong, and still:", objection)
		return objection
	}
	return ""
}

// tell writes the story of the way to a state, and of one move more.
func (x *search) tell(number uint32, last *move) {
	var way []int
	for at := number; at != 0; at = x.parents[at] {
		way = append(way, int(x.by[at]))
	}
	s, err := x.beginning()
	if err != nil {
		return
	}
	line := 0
	say := func(m *move) {
		line++
		x.report.Story = append(x.report.Story, fmt.Sprintf("%4d  %s", line, strings.TrimSpace(x.w.describe(s, m))))
	}
	var list []move
	for i := len(way) - 1; i >= 0; i-- {
		list = x.w.moves(s, list[:0])
		say(&list[way[i]])
		x.w.apply(s, &list[way[i]])
	}
	if last != nil {
		say(last)
	}
}
