package explore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kith/internal/hashed"
	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// small are worlds that are looked at in no time.
func small() map[string]Config {
	return map[string]Config{
		"quiet":              {Sites: 3, Jobs: 1, Copies: 3, Busy: true},
		"idle":               {Sites: 3, Jobs: 1, Copies: 2, Crashes: 1},
		"crash":              {Sites: 2, Jobs: 1, Copies: 2, Crashes: 1, Busy: true},
		"loss":               {Sites: 3, Jobs: 1, Copies: 3, Losses: 1, Busy: true},
		"duplicate":          {Sites: 2, Jobs: 1, Copies: 2, Duplicates: 1, Losses: 1, Busy: true},
		"timeouts":           {Sites: 2, Jobs: 1, Copies: 2, Timeouts: 2, Losses: 1, Busy: true},
		"cut":                {Sites: 2, Jobs: 1, Copies: 2, Cuts: 1, Timeouts: 1, Busy: true},
		"reboot":             {Sites: 2, Jobs: 1, Copies: 2, Reboots: 1, Busy: true},
		"cancel":             {Sites: 2, Jobs: 1, Copies: 2, Cancels: 1, Losses: 1, Busy: true},
		"cancel, crash":      {Sites: 2, Jobs: 1, Copies: 2, Cancels: 1, Crashes: 1, Busy: true},
		"staging":            {Sites: 2, Jobs: 1, Copies: 2, Crashes: 1, Losses: 1, Cancels: 1, Waits: 2, Busy: true, Staging: true},
		"output":             {Sites: 2, Jobs: 1, Copies: 2, Crashes: 1, Busy: true, Output: true},
		"two origins":        {Sites: 2, Jobs: 2, Copies: 2, Losses: 1, Busy: true},
		"failing start":      {Sites: 2, Jobs: 1, Copies: 2, Fails: 2, Losses: 1, Waits: 1, Busy: true},
		"fails, crash":       {Sites: 2, Jobs: 1, Copies: 2, Fails: 1, Crashes: 1, Busy: true},
		"collecting":         {Sites: 2, Jobs: 2, Copies: 2, Crashes: 1, Collecting: true},
		"collecting, output": {Sites: 2, Jobs: 1, Copies: 2, Losses: 1, Cancels: 1, Collecting: true, Output: true, Busy: true},
		"shrinking":          {Sites: 2, Jobs: 2, Copies: 2, Crashes: 1, Shrink: true},
		"bag":                {Sites: 2, Tasks: 2, Copies: 1, Losses: 1, Busy: true},
		"bag, output":        {Sites: 2, Tasks: 2, Copies: 1, Duplicates: 1, Busy: true, Output: true},
		"bag, timeout":       {Sites: 2, Tasks: 2, Copies: 1, Timeouts: 1, Busy: true},
		"bag, crash":         {Sites: 2, Tasks: 2, Copies: 1, Crashes: 1, Busy: true},
		"bag, cancel":        {Sites: 2, Tasks: 2, Copies: 1, Cancels: 1, Losses: 1, Busy: true},
		"bag, reboot":        {Sites: 2, Tasks: 2, Copies: 1, Reboots: 1, Busy: true},
		"bag, race":          {Sites: 2, Tasks: 2, Copies: 1, Losses: 1, Cuts: 1, Busy: true, Race: true},
		"replica, crash":     {Sites: 2, Tasks: 1, Copies: 1, Replicas: 1, Timeouts: 1, Crashes: 1},
		"replica, loss":      {Sites: 2, Tasks: 1, Copies: 1, Replicas: 1, Timeouts: 1, Losses: 1, Duplicates: 1},
		"replica, policies":  {Sites: 3, Tasks: 1, Copies: 1, Replicas: 1, Timeouts: 1, Losses: 1, Busy: true, Policies: true},
		"deadline, crash":    {Sites: 2, Tasks: 1, Copies: 1, Deadline: 5, Timeouts: 1, Crashes: 1, Busy: true},
		"deadline, loss":     {Sites: 2, Tasks: 2, Copies: 1, Deadline: 5, Timeouts: 1, Losses: 1, Duplicates: 1, Busy: true},
		"deadline, race":     {Sites: 2, Tasks: 1, Copies: 1, Deadline: 5, Timeouts: 1, Losses: 1, Busy: true, Race: true},
		"revoked":            {Sites: 3, Tasks: 1, Copies: 1, Revokes: 1, Losses: 1, Busy: true, Policies: true},
		"revoked, crash":     {Sites: 2, Tasks: 1, Copies: 1, Revokes: 1, Crashes: 1, Busy: true, Policies: true},
		"demotion":           {Sites: 2, Jobs: 1, Copies: 2, Demotions: 2, Losses: 1, Busy: true},
		"demotion, crash":    {Sites: 2, Jobs: 1, Copies: 2, Demotions: 1, Crashes: 1, Busy: true},
		"demotion, cancel":   {Sites: 2, Jobs: 1, Copies: 2, Demotions: 1, Cancels: 1, Duplicates: 1, Busy: true},
		"asked":              {Sites: 2, Jobs: 1, Copies: 2, Asks: 1, Losses: 1, Busy: true},
		"asked, crash":       {Sites: 2, Jobs: 1, Copies: 2, Asks: 1, Crashes: 1, Busy: true},
		"race":               {Sites: 2, Jobs: 1, Copies: 2, Crashes: 1, Busy: true, Race: true},
	}
}

// explore runs a search and returns the states in which only time can bring
// anything about, without what is left of the bounds. Searches that share sites
// number their states in the same way.
func explore(t *testing.T, cfg Config, shared *sites) (*Report, map[digest]bool) {
	t.Helper()
	ends := make(map[digest]bool)
	x := newSearch(&cfg)
	if shared != nil {
		x.w.sites = shared
	}
	met := make(map[string]bool)
	x.ended = func(s *state) {
		x.note(s, met)
		end := s.clone()
		end.left, end.doomed = [spendings]uint8{}, 0
		ends[digestOf(end.encode(nil, &cfg))] = true
	}
	r, err := x.report(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if r.Violation != "" {
		t.Fatalf("%s\n%s", r.Violation, strings.Join(r.Story, "\n"))
	}
	for what, want := range map[string]bool{"a replica": cfg.Replicas > 0, "a missed deadline": cfg.Deadline > 0, "a revocation": cfg.Revokes > 0} {
		if want && !met[what] {
			t.Errorf("%s is never met", what)
		}
	}
	return r, ends
}

// note notes what an end tells of having come about.
func (x *search) note(s *state, met map[string]bool) {
	for k := range x.cfg.Tasks {
		task := &s.tasks[k]
		if task.at&(task.at-1) != 0 {
			met["a replica"] = true
		}
	}
	origin := x.w.local(s, 0)
	if origin.bag.missed > 0 {
		met["a missed deadline"] = true
	}
	if origin.revoked != 0 {
		met["a revocation"] = true
	}
}

// TestWorlds looks at small worlds twice: all orders of steps, and those that
// are enough. Both must come to the same ends, and nothing may be violated.
func TestWorlds(t *testing.T) {
	for name, cfg := range small() {
		t.Run(name, func(t *testing.T) {
			cfg.MaxStates = 1 << 20
			shared := newSites(&cfg)
			spare, spareEnds := explore(t, cfg, shared)
			cfg.Full = true
			full, fullEnds := explore(t, cfg, shared)
			if !maps.Equal(spareEnds, fullEnds) {
				t.Errorf("%d ends, %d if all orders are looked at", len(spareEnds), len(fullEnds))
			}
			if len(fullEnds) < 2 && name != "idle" || spare.Transitions > full.Transitions+full.Transitions/10 {
				t.Errorf("%d ends, %d transitions of %d", len(fullEnds), spare.Transitions, full.Transitions)
			}
			t.Logf("%d states of %d, %d transitions of %d, depth %d", spare.States, full.States, spare.Transitions, full.Transitions, full.Depth)
		})
	}
}

func TestSameWorldSameReport(t *testing.T) {
	first, _ := explore(t, small()["cancel"], nil)
	again, _ := explore(t, small()["cancel"], nil)
	if again.Seconds = first.Seconds; !reflect.DeepEqual(again, first) {
		t.Errorf("two runs differ: %+v and %+v", first, again)
	}
}

// TestRevive plays the history of every state of a site again: it must lead to
// the state that it was remembered for.
func TestRevive(t *testing.T) {
	cfg := small()["crash"]
	x := newSearch(&cfg)
	x.cfg.MaxStates = DefaultMaxStates
	if _, err := x.report(context.Background()); err != nil {
		t.Fatal(err)
	}
	sites := x.w.sites
	byKey := make(map[*local]string, len(sites.locals))
	for key, l := range sites.locals {
		byKey[l] = key
	}
	for _, l := range sites.byID {
		if got := string(sites.revive(l).key()); got != byKey[l] {
			t.Fatalf("state %d of site %d is another one when its history is played again", l.id, l.site)
		}
	}
}

// TestLeftOut sees to it that the fields that do not count exist.
func TestLeftOut(t *testing.T) {
	found := make(map[string][]string)
	var walk func(t reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(typ.Elem())
		case reflect.Map:
			walk(typ.Key())
			walk(typ.Elem())
		case reflect.Struct:
			name, _, _ := strings.Cut(typ.String(), "[")
			if _, seen := found[name]; seen && !strings.Contains(typ.String(), "[") {
				return
			}
			if slices.Contains(found[typ.String()], "") {
				return
			}
			found[typ.String()] = append(found[typ.String()], "")
			for i := range typ.NumField() {
				found[name] = append(found[name], typ.Field(i).Name)
				walk(typ.Field(i).Type)
			}
		}
	}
	n := newNode(&Config{Sites: 2, Jobs: 1, Copies: 1}, 0)
	walk(reflect.TypeFor[meta.Engine]())
	walk(reflect.TypeOf(n.sched))
	for name, fields := range leftOut {
		for _, f := range fields {
			if !slices.Contains(found[name], f) {
				t.Errorf("%s has no field %s", name, f)
			}
		}
	}
}

func TestEncoding(t *testing.T) {
	cfg := Config{Sites: 3, Jobs: 2, Copies: 3, Tasks: maxTasks}
	rng := rand.New(rand.NewPCG(1, 2))
	messages := func() (list []int32) {
		for range rng.IntN(4) {
			list = append(list, rng.Int32N(1000))
		}
		return list
	}
	for range 2000 {
		s := &state{}
		for i := range cfg.Sites {
			s.locals[i], s.attached[i] = rng.Int32N(1<<20), uint8(rng.IntN(8))
			for j := range cfg.Sites {
				if cfg.linked(i, j) {
					s.streams[i][j] = stream{old: messages(), new: messages(), mark: mark(rng.IntN(3))}
				}
			}
		}
		for range rng.IntN(3) {
			s.addGhost(ghost{uint8(rng.IntN(3)), uint8(rng.IntN(3)), rng.Int32N(50)})
		}
		for i := range s.left[1:] {
			s.left[1+i] = uint8(rng.IntN(3))
		}
		if s.left[aCrash] > 0 {
			s.doomed = uint8(rng.IntN(3))
		}
		s.acked = uint8(rng.IntN(4))
		for k := range rng.IntN(4) {
			a := testAttempt(uint32(k + 1))
			s.seen = append(s.seen, seenAttempt{a, int8(rng.IntN(3)), rng.IntN(2) == 0, rng.IntN(2) == 0})
		}
		for k := range s.tasks {
			s.tasks[k] = seenTask{uint8(rng.IntN(16)), rng.IntN(2) == 0, taskEnd(rng.IntN(4))}
		}
		b := s.encode(nil, &cfg)
		var got state
		if n := got.decode(append(slices.Clone(b), 1, 2, 3), &cfg); n != len(b) {
			t.Fatalf("%d bytes read of %d", n, len(b))
		}
		if again := got.encode(nil, &cfg); !slices.Equal(again, b) {
			t.Fatalf("%+v was read as %+v", s, got)
		}
	}
}

func TestTable(t *testing.T) {
	x, want := newTable(), make(map[digest]int)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200_000 {
		d := digestOf(fmt.Append(nil, rng.IntN(120_000)))
		n, known := want[d]
		if !known {
			n = len(want)
			want[d] = n
		}
		if got, fresh := x.add(d); got != n || fresh == known {
			t.Fatalf("%x is number %d, new %v, should be %d, %v", d, got, fresh, n, !known)
		}
	}
}

func TestBounds(t *testing.T) {
	if _, err := Run(context.Background(), Config{Sites: 2, Jobs: 1, Copies: 1, Tasks: 5}); err == nil || !strings.Contains(err.Error(), "tasks 5") || !strings.Contains(err.Error(), "jobs 1") {
		t.Errorf("%v, should name the tasks, and the jobs beside them", err)
	}
	_, err := Run(context.Background(), Config{Sites: 9, Jobs: 3, Copies: 0, Crashes: -1})
	for _, want := range []string{"sites 9", "jobs 3", "copies 0", "crashes -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, should name %q", err, want)
		}
	}
	cfg := small()["crash"]
	cfg.MaxStates = 100
	if r, err := Run(context.Background(), cfg); !errors.Is(err, ErrTooLarge) || r.States < 100 {
		t.Errorf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, small()["crash"]); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func testAttempt(number uint32) job.AttemptID {
	return job.AttemptID{Job: job.ID{Origin: "s0", Generation: 1, Seq: 2}, Number: number}
}

// TestFingerprintOfATable: what a table holds counts, not how it came in.
func TestFingerprintOfATable(t *testing.T) {
	of := func(names ...hashed.Text) string {
		x := store.NewIndex(func(n *hashed.Text) hashed.Text { return *n })
		for _, n := range names {
			x.Put(&n)
		}
		x.Delete(names[0])
		var f fingerprint
		f.value(reflect.ValueOf(&x))
		return string(f.b)
	}
	if of("9", "1", "2", "3") != of("8", "3", "1", "2") {
		t.Error("the same records, put in another order, look different")
	}
	if of("9", "1", "2", "3") == of("9", "1", "2", "4") {
		t.Error("other records look the same")
	}
}
