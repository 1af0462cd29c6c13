package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// Spared are transitions that were left out because another order of the
	// same steps is looked at.
	Spared  int     `json:"spared"`
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
	return newSearch(&cfg).report(ctx)
}

func newSearch(cfg *Config) *search {
	if cfg.MaxStates == 0 {
		cfg.MaxStates = DefaultMaxStates
	}
	x := &search{w: &world{cfg, newSites(cfg)}, cfg: cfg, visited: newTable()}
	x.ends = &completions{w: x.w, good: make(map[digest]bool)}
	return x
}

// report runs the search.
func (x *search) report(ctx context.Context) (*Report, error) {
	began := time.Now()
	err := x.run(ctx)
	r := &x.found
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
	roots   int // states in which the search begins
	ends    *completions
	// ended learns of the states in which only time can bring anything about;
	// nil if it does not matter.
	ended func(s *state)
	found Report
}

// level is the states of one depth, one after another.
type level struct {
	bytes   []byte
	numbers []uint32
}

func (x *search) run(ctx context.Context) error {
	first, objection := x.beginning()
	if objection != "" {
		x.found.Violation, x.found.Story = objection, []string{"in the beginning, before anything went wrong"}
		return nil
	}
	now, next := &level{}, &level{}
	x.begin(now, first)
	var s state
	var list []move
	for depth := 0; len(now.numbers) > 0; depth++ {
		x.found.Depth = depth
		if x.cfg.Progress != nil {
			x.cfg.Progress(len(x.visited.keys), depth)
		}
		rest := now.bytes
		for _, number := range now.numbers {
			rest = rest[s.decode(rest, x.cfg):]
			list = x.w.moves(&s, list[:0])
			if violation := x.expand(&s, number, list, next); violation != "" {
				x.found.Violation = violation
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
// It returns what is violated before anything could go wrong, if anything is.
func (x *search) beginning() (*state, string) {
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
	objection := x.settle(s)
	if x.cfg.Busy && objection == "" {
		busy := &move{kind: atSite, step: step{kind: submitJob, job: blockerJob, cut: whole}}
		if objection = x.w.apply(s, busy); objection == "" {
			objection = x.settle(s)
		}
	}
	if (x.cfg.Replicas > 0 || x.cfg.Deadline > 0) && objection == "" {
		objection = x.lead(s)
	}
	for spend, n := range map[spending]int{
		aCrash: x.cfg.Crashes, aReboot: x.cfg.Reboots, aLoss: x.cfg.Losses, aDuplicate: x.cfg.Duplicates,
		aCut: x.cfg.Cuts, aTimeout: x.cfg.Timeouts, aWait: x.cfg.Waits, aCancel: x.cfg.Cancels, aFail: x.cfg.Fails, aRevoke: x.cfg.Revokes,
		aDemotion: x.cfg.Demotions, anAsk: x.cfg.Asks,
	} {
		s.left[spend] = uint8(n) // bounded by Validate
	}
	return s, objection
}

// settle lets everything happen but submissions and ends of jobs.
func (x *search) settle(s *state) string {
	var list []move
	for {
		list = x.w.moves(s, list[:0])
		k := slices.IndexFunc(list, func(m move) bool { return m.step.kind != submitJob && m.step.kind != processEnd })
		if k < 0 {
			return ""
		}
		if objection := x.w.apply(s, &list[k]); objection != "" {
			return objection
		}
	}
}

// begin pushes the first states. Where one daemon may die, which one it will
// be is decided in the beginning: the others are then known to live, and
// more steps commute.
func (x *search) begin(to *level, first *state) {
	first.doomed = anySite
	if x.cfg.Full || x.cfg.Crashes != 1 {
		x.push(to, first, 0, 0)
		return
	}
	for i := range x.cfg.Sites {
		first.doomed = uint8(i) // few
		x.push(to, first, uint32(i), 0)
	}
	x.roots = x.cfg.Sites
}

// push adds a state to a level if it is new, and returns its number.
func (x *search) push(to *level, s *state, parent uint32, by int) uint32 {
	from := len(to.bytes)
	to.bytes = s.encode(to.bytes, x.cfg)
	number, fresh := x.visited.add(digestOf(to.bytes[from:]))
	if !fresh {
		to.bytes = to.bytes[:from]
		return uint32(number)
	}
	to.numbers = append(to.numbers, uint32(number))
	x.parents, x.by = append(x.parents, parent), append(x.by, uint16(by))
	return uint32(number)
}

// expand makes the moves of a state, or enough of them.
func (x *search) expand(s *state, number uint32, list []move, next *level) string {
	site := -1
	if !x.cfg.Full {
		site = x.w.enough(s, list)
	}
	stuck := true
	make := func(k int) (ahead bool, objection string) {
		m := &list[k]
		stuck = stuck && m.spend != free
		x.found.Transitions++
		to := s.clone()
		if objection := x.w.apply(to, m); objection != "" {
			x.tell(number, m)
			return false, objection
		}
		return x.push(next, to, number, k) > number, ""
	}
	ahead := false
	for k := range list {
		if site >= 0 && int(list[k].site) != site {
			continue
		}
		fresh, objection := make(k)
		if objection != "" {
			return objection
		}
		ahead = ahead || fresh
	}
	if site >= 0 && ahead {
		x.found.Spared += len(list) - x.w.at(site, list)
		return ""
	}
	for k := range list {
		if site < 0 || int(list[k].site) == site {
			continue
		}
		if _, objection := make(k); objection != "" {
			return objection
		}
	}
	if !stuck {
		return ""
	}
	x.found.Ends++
	if x.ended != nil {
		x.ended(s)
	}
	if objection := x.ends.complete(s.clone()); objection != "" {
		x.tell(number, nil)
		x.found.Story = append(x.found.Story, "… and from here on nothing more goes wrong, and still:", objection)
		return objection
	}
	return ""
}

// tell writes the story of the way to a state, and of one move more.
func (x *search) tell(number uint32, last *move) {
	var way []int
	at := number
	for ; x.parents[at] != at; at = x.parents[at] {
		way = append(way, int(x.by[at]))
	}
	s, _ := x.beginning()
	if s.doomed = anySite; x.roots > 1 {
		s.doomed = uint8(at)
	}
	line := 0
	say := func(m *move) {
		line++
		x.found.Story = append(x.found.Story, fmt.Sprintf("%4d  %s", line, strings.TrimSpace(x.w.describe(s, m))))
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
