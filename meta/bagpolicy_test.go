package meta_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	"kith/meta/policy"
	"kith/store"
)

// texts makes policies of pairs of a policy and its text.
func texts(pairs map[bags.Text]string) (p store.BagPolicies) {
	for t, text := range pairs {
		p.Texts[t] = text
	}
	return p
}

// ask has a site take a request, and returns how that failed.
func (p *place) ask(ev meta.Event) (err error) {
	var others []meta.Effect
	for _, f := range p.engine.Step(p.w.now, ev) {
		if r, ok := f.(meta.Reply); ok {
			err = r.Err
		} else {
			others = append(others, f)
		}
	}
	p.carry(others)
	p.feed(meta.Tick{})
	return err
}

func withPolicies(c *meta.Config) { c.Policies = policy.New() }

// stating submits a bag of tasks with policies at the first site.
func (w *world) stating(n uint32, name string, pairs map[bags.Text]string) job.ID {
	return w.sites[0].submit(meta.SubmitBag{
		Token: 1, Request: job.Request{User: "ada", Name: name, Processors: 1, Walltime: time.Minute}, Indices: tasks(n), Policies: texts(pairs),
	})
}

func (w *world) doneAt(id job.ID) map[job.SiteID]uint64 {
	at := map[job.SiteID]uint64{}
	for _, s := range w.sites[0].state.Bag(id).Sums.Sites {
		at[s.Site] = s.Done
	}
	return at
}

// A bag runs at the sites that its policies allow, also after its origin has started again.
func TestPoliciesSayWhere(t *testing.T) {
	for name, pairs := range map[string]map[bags.Text]string{
		"sites":                        {bags.Sites: "site.name == 'beta'"},
		"requirements of the site":     {bags.Requirements: "site.name == 'beta' && bag.tasks > 10"},
		"requirements of the host":     {bags.Requirements: "host.site == 'beta' && host.places > 0"},
		"both":                         {bags.Sites: "!site.home", bags.Requirements: "host.site != 'gamma'"},
		"UNDEFINED, where it is wrong": {bags.Requirements: "host.site == 'beta' || host.turnaround > 1 && 1 / bag.failed > 1"},
	} {
		w := newWorld(t, 5, withPolicies, 4, 8, 3)
		id := w.stating(200, "x", pairs)
		w.run(4 * time.Second)
		w.sites[0].stop(false, time.Second)
		if !w.run(time.Hour) {
			w.story()
			t.Fatalf("%s: the bag has not ended: %v", name, w.twice)
		}
		if at := w.doneAt(id); at["beta"] != 200 {
			t.Errorf("%s: ran at %v", name, at)
		}
	}
}

// A bag that matches nothing waits, and the reason is shown; one that is given others goes
// on with the next ask, without a start (spec 002, acceptance 14).
func TestPoliciesAreReplaced(t *testing.T) {
	w := newWorld(t, 6, withPolicies, 4, 8)
	alpha := w.sites[0]
	id := w.stating(100, "x", map[bags.Text]string{bags.Requirements: "host.places > 0 && host.error_rate > 2"})
	if w.run(5 * time.Minute) {
		t.Fatal("a bag that matches nothing has run")
	}
	views, _, err := alpha.engine.Views().CheckPolicies(w.now, id, nil)
	if err != nil || len(views) < 2 {
		t.Fatal(views, err)
	}
	for _, v := range views {
		if len(v.Given) != 1 || v.Given[0].Value != "false" || v.Given[0].Part != "host.error_rate > 2" {
			t.Errorf("%+v", v)
		}
	}
	set := func(version uint32, pairs map[bags.Text]string) error {
		return alpha.ask(meta.SetPolicies{Token: 9, Bag: id, Texts: texts(pairs).Texts, Version: version, Actor: "ada"})
	}
	before := alpha.state.Bag(id).Policies
	if err := set(3, nil); !errors.Is(err, meta.ErrStalePolicies) {
		t.Errorf("stale: %v", err)
	}
	if err := set(0, map[bags.Text]string{bags.Rank: "host.site"}); !errors.Is(err, meta.ErrInvalid) || !strings.Contains(err.Error(), "policies.rank: line 1 column 5: this is a string") {
		t.Errorf("wrong: %v", err)
	}
	if alpha.state.Bag(id).Policies != before {
		t.Error("a request that failed has changed something")
	}
	if err := set(0, map[bags.Text]string{bags.Requirements: "host.site == 'beta'"}); err != nil {
		t.Fatal(err)
	}
	if !w.run(2*time.Minute) || w.doneAt(id)["beta"] != 100 {
		w.story()
		t.Fatalf("the bag has run at %v", w.doneAt(id))
	}
	if p := alpha.state.Bag(id).Policies; p.Version != 1 {
		t.Errorf("version %d", p.Version)
	}
	if err := set(1, nil); !errors.Is(err, meta.ErrBagEnded) {
		t.Errorf("ended: %v", err)
	}
}

// The policies of a bag that is being cancelled stay.
func TestPoliciesOfACancelledBag(t *testing.T) {
	w := newWorld(t, 7, withPolicies, 4)
	w.takes = func(job.TaskID) outcome { return outcome{run: 30 * time.Second} }
	alpha := w.sites[0]
	id := w.stating(100, "x", nil)
	w.run(5 * time.Second)
	if err := alpha.ask(meta.CancelBag{Token: 2, Bag: id}); err != nil {
		t.Fatal(err)
	}
	err := alpha.ask(meta.SetPolicies{Token: 3, Bag: id, Texts: texts(map[bags.Text]string{bags.Rank: "1"}).Texts})
	if !errors.Is(err, meta.ErrBagCancelling) && !errors.Is(err, meta.ErrBagEnded) {
		t.Error(err)
	}
}

// A site that has no compiler refuses policies.
func TestPoliciesNeedACompiler(t *testing.T) {
	w := newWorld(t, 8, nil, 4)
	err := w.sites[0].ask(meta.SubmitBag{
		Token: 1, Request: job.Request{User: "ada", Processors: 1, Walltime: time.Minute}, Indices: tasks(4), Policies: texts(map[bags.Text]string{bags.Rank: "1"}),
	})
	if !errors.Is(err, meta.ErrInvalid) {
		t.Error(err)
	}
}

// Rank decides between the bags of a user.
func TestRank(t *testing.T) {
	w := newWorld(t, 9, withPolicies, 1, 8)
	w.takes = func(job.TaskID) outcome { return outcome{run: 20 * time.Second} }
	low := w.stating(40, "low", map[bags.Text]string{bags.Sites: "!site.home"})
	high := w.stating(40, "high", map[bags.Text]string{bags.Sites: "!site.home", bags.Rank: "bag.name == 'high' ? 5 : 0"})
	if !w.run(time.Hour) {
		t.Fatal("a bag has not ended")
	}
	if a, b := w.sites[0].state.Bag(high), w.sites[0].state.Bag(low); a.Closed >= b.Closed {
		t.Errorf("the one that is ranked higher ended at %v, the other at %v", a.Closed, b.Closed)
	}
}

// Concurrency decides how many tasks a host has at once, in a stock or running.
func TestConcurrency(t *testing.T) {
	for text, fits := range map[string]func(most int) bool{
		"":  func(most int) bool { return most >= 8 }, // all of its processors
		"3": func(most int) bool { return most == 3 },
	} {
		w := newWorld(t, 9, withPolicies, 1, 8)
		w.takes = func(job.TaskID) outcome { return outcome{run: 20 * time.Second} }
		id := w.stating(20, "x", map[bags.Text]string{bags.Sites: "!site.home", bags.Concurrency: text})
		b, most := w.sites[0].state.Bag(id), 0
		for !w.run(time.Second) && w.now < job.Time(4*time.Hour) {
			most = max(most, b.Given())
		}
		if b.State != job.BagCompleted || !fits(most) {
			t.Errorf("concurrency %q: %v, %d tasks at once", text, b.State, most)
		}
	}
}

// A host that has as many tasks as it may, and processors beside, asks again when the origin
// has recorded that one has ended: it is not idle for the rest of a wait that has grown.
func TestConcurrencyLeavesNoHostIdle(t *testing.T) {
	for _, run := range []time.Duration{time.Second, 15 * time.Second} {
		const tasks = 40
		w := newWorld(t, 12, withPolicies, 1, 2)
		w.takes = func(job.TaskID) outcome { return outcome{run: run} }
		id := w.stating(tasks, "x", map[bags.Text]string{bags.Sites: "!site.home", bags.Concurrency: "1"})
		if !w.run(time.Hour) {
			t.Fatal("the bag has not ended")
		}
		b := w.sites[0].state.Bag(id)
		if took, least := b.Closed.Sub(b.Submitted), tasks*run; took > least*12/10+5*time.Second {
			t.Errorf("tasks of %v, one after another: %v for %v", run, took, least)
		}
	}
}

// In the tail a bag's own policy says which tasks are given to one more site.
func TestReplicateIsStated(t *testing.T) {
	for text, want := range map[string]bool{
		"false": false, "1 / bag.failed > 0": false, "task.replicas > 1": false, "replicas[0].site == 'nowhere'": false,
		"task.replicas < 2 && replicas[0].age > 30 && task.index < 3": true,
	} {
		w := newWorld(t, 10, withPolicies, 2, 2)
		w.takes = func(job.TaskID) outcome { return outcome{run: 10 * time.Minute} }
		id := w.sites[0].submit(meta.SubmitBag{
			Token: 1, Request: job.Request{User: "ada", Processors: 1, Walltime: time.Hour}, Indices: tasks(3), MaxReplicas: 1,
			Policies: texts(map[bags.Text]string{bags.Replicate: text}),
		})
		seen := false
		for range 300 {
			w.run(time.Second)
			b := w.sites[0].state.Bag(id)
			seen = seen || b.Runs() > b.Given()
		}
		if seen != want {
			t.Errorf("%s: replicas: %v", text, seen)
		}
	}
}

// What all policies together may take is bounded, also after a start: who states too much is
// told, and there is room again when bags end or state less.
func TestPoliciesAreBoundedTogether(t *testing.T) {
	w := newWorld(t, 11, withPolicies, 4)
	alpha := w.sites[0]
	costly := map[bags.Text]string{
		bags.Sites: "false", bags.Rank: "bag.name.matches('(a|b|c|d|e|f|g|h|i|j|k|l|m|n)*(o|p|q)') ? 1 : 0",
	}
	state := func() error {
		return alpha.ask(meta.SubmitBag{
			Token: 1, Request: job.Request{User: "ada", Name: "x", Processors: 1, Walltime: time.Minute}, Indices: tasks(4), Policies: texts(costly),
		})
	}
	taken, err := 0, error(nil)
	for ; taken < 1000; taken++ {
		if err = state(); err != nil {
			break
		}
	}
	if full, ok := errors.AsType[*meta.PolicyStepsError](err); taken < 20 || !ok || !errors.Is(err, meta.ErrFull) || full.Others+full.Steps <= 500_000 || full.Others > 500_000 {
		t.Fatalf("%d bags, then %v", taken, err)
	}
	w.stating(1, "none", nil) // one without policies is taken
	alpha.stop(false, time.Second)
	w.run(2 * time.Second)
	if err := state(); !errors.Is(err, meta.ErrFull) {
		t.Errorf("after a start: %v", err)
	}
	first := job.ID{}
	for b := range alpha.state.Bags {
		if first == (job.ID{}) && b.Policies.Stated() {
			first = b.ID
		}
	}
	set := func(pairs map[bags.Text]string) error {
		return alpha.ask(meta.SetPolicies{Token: 9, Bag: first, Texts: texts(pairs).Texts, Version: alpha.state.Bag(first).Policies.Version, Actor: "ada"})
	}
	if err := set(costly); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if err := set(map[bags.Text]string{bags.Rank: costly[bags.Rank], bags.Requirements: "1 > 2 && " + costly[bags.Rank] + " > 2"}); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("wrong ones: %v", err)
	}
	if err := set(map[bags.Text]string{bags.Rank: costly[bags.Rank], bags.Concurrency: costly[bags.Rank]}); !errors.Is(err, meta.ErrFull) {
		t.Errorf("more for one bag: %v", err)
	}
	if err := set(map[bags.Text]string{bags.Sites: "false"}); err != nil {
		t.Errorf("less for one bag: %v", err)
	}
	if err := state(); err != nil {
		t.Errorf("a bag in the room of another: %v", err)
	}
	if err := alpha.ask(meta.CancelBag{Token: 2, Bag: first}); err != nil {
		t.Fatal(err)
	}
}

// queue.unsent is what all bags have that wait, whatever has happened to them.
func TestUnsentIsCounted(t *testing.T) {
	w := newWorld(t, 12, withPolicies, 2, 3)
	w.takes = func(job.TaskID) outcome { return outcome{run: 5 * time.Second} }
	alpha := w.sites[0]
	check := func(when string) {
		t.Helper()
		want := 0
		for b := range alpha.state.Bags {
			if !b.State.Terminal() {
				want += b.Waiting()
			}
		}
		p := texts(map[bags.Text]string{bags.Rank: fmt.Sprintf("queue.unsent == %d ? 1 : 0", want)})
		views, _, err := alpha.engine.Views().CheckPolicies(w.now, job.ID{}, &p)
		if err != nil || views[0].Given[0].Value != "1" {
			t.Errorf("%s: %v %v, %d tasks wait", when, views, err, want)
		}
	}
	check("nothing")
	a, b := w.stating(40, "a", nil), w.stating(30, "b", map[bags.Text]string{bags.Rank: "queue.unsent"})
	w.stating(20, "c", map[bags.Text]string{bags.Sites: "false"})
	check("three bags")
	for range 5 {
		w.run(3 * time.Second)
		check("some run")
	}
	if err := alpha.ask(meta.CancelBag{Token: 2, Bag: a}); err != nil {
		t.Fatal(err)
	}
	check("one is cancelled")
	alpha.stop(false, time.Second)
	w.run(2 * time.Second)
	check("a start")
	w.run(10 * time.Minute)
	if !alpha.state.Bag(b).State.Terminal() {
		t.Error("a bag has not ended")
	}
	check("two have ended")
}

// A dry run explains a bounded number of hosts, fewer of policies that take long, and says how
// many are left out.
func TestHostsExplainedAreBounded(t *testing.T) {
	w := newWorld(t, 13, withPolicies, 4, 4, 4, 4, 4)
	check := func(texts store.BagPolicies) (shown, leftOut int) {
		t.Helper()
		views, leftOut, err := w.sites[0].engine.Views().CheckPolicies(w.now, job.ID{}, &texts)
		if err != nil {
			t.Fatal(err)
		}
		return len(views), leftOut
	}
	if shown, leftOut := check(texts(map[bags.Text]string{bags.Rank: "1"})); shown != 5 || leftOut != 0 {
		t.Errorf("%d shown, %d left out", shown, leftOut)
	}
	costly := strings.Repeat("bag.name.matches('(a|b|c|d|e|f|g|h|i|j|k|l|m|n)*(o|p|q)') || ", 7) + "false"
	number := costly + " ? 1 : 0"
	shown, leftOut := check(texts(map[bags.Text]string{bags.Requirements: costly, bags.Sites: costly, bags.Replicate: costly, bags.Rank: number, bags.Concurrency: number}))
	if shown < 1 || shown > 4 || shown+leftOut != 5 {
		t.Errorf("%d shown, %d left out", shown, leftOut)
	}
}
