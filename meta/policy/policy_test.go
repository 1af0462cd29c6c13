package policy

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// scene is a host with half its places in use, at a site of the federation, and a bag in its tail.
func scene() *bags.Scene {
	s := &bags.Scene{
		Host: bags.NewScope(bags.RootHost), Site: bags.NewScope(bags.RootSite), Bag: bags.NewScope(bags.RootBag),
		Queue: bags.NewScope(bags.RootQueue), Task: bags.NewScope(bags.RootTask),
		Submitted: job.Time(time.Hour), Now: job.Time(26*time.Hour + 30*time.Minute),
	}
	h := s.Host
	h.Text(bags.HostSite, "uni-a")
	h.Text(bags.HostNode, "n7")
	h.Number(bags.HostPlaces, 8)
	h.Number(bags.HostRunning, 4)
	h.Number(bags.HostStock, 0)
	h.Number(bags.HostErrorRate, 0.25)
	h.Number(bags.HostDone, 30)
	h.Number(bags.HostFailed, 10)
	p := s.Site
	p.Text(bags.SiteName, "uni-a")
	p.Truth(bags.SiteHome, false)
	p.Number(bags.SiteProcessors, 64)
	p.Number(bags.SiteSpeed, 1.5)
	p.Number(bags.SiteLoad, 0.75)
	p.Truth(bags.SiteDraining, false)
	b := s.Bag
	b.Text(bags.BagName, "fold")
	b.Text(bags.BagUser, "ann")
	b.Number(bags.BagPriority, -2)
	b.Number(bags.BagTasks, 1000)
	b.Number(bags.BagLeft, 40)
	b.Number(bags.BagDone, 960)
	b.Number(bags.BagFailed, 0)
	b.Number(bags.BagUnsent, 3)
	b.Truth(bags.BagTail, true)
	b.Number(bags.BagMeanRun, math.NaN())
	s.Queue.Number(bags.QueueBags, 2)
	s.Task.Number(bags.TaskReplicas, 2)
	s.Task.Number(bags.TaskFailures, 1)
	s.Split = func() (in, known bool) { return true, true }
	s.Replicas = []bags.Replica{{Site: "uni-a", Age: 100, ErrorRate: 0.2, Turnaround: math.NaN()}, {Site: "uni-b", Node: "x", Age: 2000, ErrorRate: 0, Turnaround: 50}}
	return s
}

func compile(t testing.TB, c *Compiler, text bags.Text, source string) bags.Judge {
	t.Helper()
	j, err := c.Compile(with(text, source))
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return j
}

func with(text bags.Text, source string) *store.BagPolicies {
	p := &store.BagPolicies{}
	p.Texts[text] = source
	return p
}

// given evaluates a text of any policy that may read all its variables.
func given(t *testing.T, c *Compiler, text bags.Text, source string, s *bags.Scene) string {
	t.Helper()
	g := compile(t, c, text, source).Explain(s)
	if len(g) != 1 || g[0].Text != text {
		t.Fatalf("%s: explained as %+v", source, g)
	}
	return g[0].Value
}

// Expressions and their values (spec 002, acceptance 1). An error on the way is UNDEFINED,
// and && and || take no notice of it where the other side decides.
func TestValues(t *testing.T) {
	const undefined = "UNDEFINED"
	c := New()
	for _, v := range []struct {
		text         bags.Text
		source, want string
	}{
		{bags.Rank, "1", "1"}, {bags.Rank, "1.5", "1.5"}, {bags.Rank, "-3", "-3"}, {bags.Rank, "2 * host.places", "16"},
		{bags.Rank, "host.places * 2", "16"}, {bags.Rank, "host.places / 3", "2.66667"}, {bags.Rank, "7 / 2", "3.5"}, {bags.Rank, "1e3", "1000"},
		{bags.Rank, "host.places - host.running", "4"}, {bags.Rank, "-host.places", "-8"}, {bags.Rank, "host.places + site.speed", "9.5"},
		{bags.Rank, "mod(7, 3)", "1"}, {bags.Rank, "mod(-1, 24)", "23"}, {bags.Rank, "mod(hour + 3, 24)", "5"}, {bags.Rank, "min(3, host.places)", "3"},
		{bags.Rank, "max(3, host.places)", "8"}, {bags.Rank, "floor(2.9)", "2"}, {bags.Rank, "floor(-2.1)", "-3"}, {bags.Rank, "size(host.site)", "5"},
		{bags.Rank, "host.site.size() * 2", "10"}, {bags.Rank, "bag.tail ? 1 : 2", "1"}, {bags.Rank, "bag.tail ? host.recent_done : 1", "30"},
		{bags.Rank, "bag.age", "91800"}, {bags.Rank, "hour", "2"}, {bags.Requirements, "[7].exists(hour, .hour == 2 && hour == 7)", "true"}, {bags.Rank, "bag.priority * 10 + queue.bags", "-18"}, {bags.Rank, "double('3')", "3"},
		{bags.Rank, "9223372036854775807", "9.22337e+18"}, {bags.Rank, "host.recent_done / (host.recent_done + host.recent_failed)", "0.75"},
		{bags.Rank, "1 / bag.failed", undefined}, {bags.Rank, "mod(1, bag.failed)", undefined}, {bags.Rank, "bag.mean_run", undefined}, {bags.Rank, "host.turnaround + 1", undefined},
		{bags.Rank, "1e308 * host.places", undefined}, {bags.Rank, "site.free", undefined}, {bags.Rank, "bag.tail ? 1 : site.free", "1"},
		{bags.Requirements, "true", "true"}, {bags.Requirements, "!true", "false"}, {bags.Requirements, "host.places >= 8", "true"},
		{bags.Requirements, "host.places > 8 || bag.tail", "true"}, {bags.Requirements, "1 < 2", "true"}, {bags.Requirements, "1 == 1.0", "true"},
		{bags.Requirements, "host.site == 'uni-a'", "true"}, {bags.Requirements, "host.site != \"uni-a\"", "false"}, {bags.Requirements, "host.site in ['uni-b', 'uni-a']", "true"},
		{bags.Requirements, "host.places in [1, 8]", "true"}, {bags.Requirements, "host.site.matches('^uni-[a-c]$')", "true"}, {bags.Requirements, "matches(host.site, 'b')", "false"},
		{bags.Requirements, "host.site.startsWith('uni') && host.site.endsWith('a') && host.site.contains('i-')", "true"}, {bags.Requirements, "host.site < 'v'", "true"},
		{bags.Requirements, "bag.tail && site.home", "false"}, {bags.Requirements, "host.error_rate < 0.1", "false"}, {bags.Requirements, "!bag.tail ? true : host.error_rate < 0.1", "false"},
		{bags.Requirements, "site.free > 1", undefined}, {bags.Requirements, "site.free > 1 && false", "false"}, {bags.Requirements, "false && site.free > 1", "false"},
		{bags.Requirements, "site.free > 1 || true", "true"}, {bags.Requirements, "true || site.free > 1", "true"}, {bags.Requirements, "site.free > 1 && true", undefined},
		{bags.Requirements, "site.free > 1 || false", undefined}, {bags.Requirements, "!(site.free > 1)", undefined}, {bags.Requirements, "site.free > 1 ? true : false", undefined},
		{bags.Requirements, "bag.done / bag.failed > 2", undefined}, {bags.Requirements, "bag.failed == 0 || bag.done / bag.failed > 2", "true"},
		{bags.Requirements, "bag.mean_run < 60 || bag.done > 900", "true"}, {bags.Requirements, "[1, 2, 3].exists(n, n == host.running - 1)", "true"},
		{bags.Requirements, "[1, 2, 3].all(n, n < host.running)", "true"}, {bags.Requirements, "double(host.site) > 1", undefined},
		{bags.Replicate, "task.replicas < 3 && replicas[0].error_rate > 0.1", "true"}, {bags.Replicate, "replicas[1].error_rate > 0.1", "false"},
		{bags.Replicate, "replicas[2].error_rate > 0.1", undefined}, {bags.Replicate, "task.replicas < 2 && replicas[2].error_rate > 0.1", "false"},
		{bags.Replicate, "replicas.exists(r, r.error_rate > 0.01 || r.age > 1800)", "true"}, {bags.Replicate, "replicas.all(r, r.age > 1800)", "false"},
		{bags.Replicate, "size(replicas) < 3", "true"}, {bags.Replicate, "replicas[0].turnaround > 1", undefined}, {bags.Replicate, "replicas[1].turnaround == 50", "true"},
		{bags.Replicate, "has(replicas[0].site) && replicas[0].site == 'uni-a'", "true"}, {bags.Replicate, "replicas[0] == replicas[1]", "false"},
		{bags.Deadline, "max(600, 6 * host.places)", "600"}, {bags.Sites, "site.name != 'uni-a' || site.load < 1", "true"}, {bags.Concurrency, "2 * host.places", "16"},
	} {
		got := given(t, c, v.text, v.source, scene())
		if v.want == undefined {
			got = strings.SplitN(got, ":", 2)[0]
		}
		if got != v.want {
			t.Errorf("%s: %s gives %q, want %q", v.text, v.source, got, v.want)
		}
	}
}

// The policies of the source's Figure 3, with the values worked out by hand.
var figure3 = store.BagPolicies{Texts: [store.PolicyCount]string{
	bags.Requirements: `!bag.tail ? true : host.site.matches("myhost") && host.error_rate < 0.1`,
	bags.Rank:         `!bag.tail ? 1 : host.recent_done`,
	bags.Concurrency:  `2 * host.places`,
	bags.Deadline:     `2 * host.places * 2000`,
	bags.Replicate:    `task.replicas < 3 && replicas[0].error_rate > 0.1`,
}}

func TestFigure3(t *testing.T) {
	j, err := New().Compile(&figure3)
	if err != nil {
		t.Fatal(err)
	}
	s := scene()
	s.Bag.Truth(bags.BagTail, false)
	if v := j.Verdict(s); v != (bags.Verdict{Yes: true, Rank: 1, Most: 16}) {
		t.Errorf("before the tail: %+v", v)
	}
	s.Bag.Truth(bags.BagTail, true)
	if v := j.Verdict(s); v.Yes {
		t.Errorf("another host in the tail: %+v", v)
	}
	s.Host.Text(bags.HostSite, "myhost-3")
	if v := j.Verdict(s); v.Yes {
		t.Errorf("an unreliable host in the tail: %+v", v)
	}
	s.Host.Number(bags.HostErrorRate, 0.05)
	if v := j.Verdict(s); v != (bags.Verdict{Yes: true, Rank: 30, Most: 16}) {
		t.Errorf("in the tail: %+v", v)
	}
	if g := j.Explain(s)[bags.Deadline]; g.Text != bags.Deadline || g.Value != "32000" {
		t.Errorf("a deadline of %+v", g)
	}
	if !j.Replicate(s) {
		t.Error("no replica beside one at an unreliable host")
	}
	s.Replicas[0].ErrorRate = 0.1
	if j.Replicate(s) {
		t.Error("a replica beside one at a reliable host")
	}
}

// UNDEFINED is no match, rank 0, and otherwise as if the text were not there (spec 002
// section 2.1).
func TestUndefinedFallsBack(t *testing.T) {
	c, s := New(), scene()
	j, err := c.Compile(&store.BagPolicies{Texts: [store.PolicyCount]string{bags.Rank: "site.free", bags.Concurrency: "1 / bag.failed", bags.Replicate: "bag.failed > 1 / bag.failed"}})
	if err == nil {
		if v := j.Verdict(s); v != bags.Unbounded() {
			t.Errorf("%+v", v)
		}
		if j.Replicate(s) {
			t.Error("a replica")
		}
	} else {
		var wrong *bags.TextsError
		if !errors.As(err, &wrong) {
			t.Fatal(err)
		}
		t.Fatal(err)
	}
	if v := compile(t, c, bags.Requirements, "site.free > 1").Verdict(s); v.Yes {
		t.Error("UNDEFINED requirements match")
	}
	if compile(t, c, bags.Sites, "site.free > 1").Offer(s) {
		t.Error("a site is offered work where sites is UNDEFINED")
	}
}

// Mistakes name the policy, the line and the column, show the place, and say what would do.
func TestMistakes(t *testing.T) {
	c := New()
	deep := strings.Repeat("(", 1000) + "true" + strings.Repeat(")", 1000)
	for _, m := range []struct {
		text   bags.Text
		source string
		want   []string
	}{
		{bags.Requirements, "host.error_rat < 0.1", []string{"policies.requirements: line 1 column 5: undeclared reference to 'host.error_rat'", "did you mean 'host.error_rate'?", "host.error_rat < 0.1\n        ^"}},
		{bags.Requirements, "true &&\n  host.places >", []string{"line 2 column", "host.places >"}},
		{bags.Requirements, "host.places", []string{"this is a number: requirements must be a bool (true or false)"}},
		{bags.Rank, "bag.tail", []string{"this is a bool (true or false): rank must be a number"}},
		{bags.Rank, "host.site", []string{"this is a string: rank must be a number"}},
		{bags.Requirements, "host.site < 3", []string{"found no matching overload for '_<_' applied to '(string, number)'"}},
		{bags.Rank, "host.site / 3", []string{"'_/_' applied to '(string, number)'"}},
		{bags.Rank, "host.places / 0", []string{"line 1 column 15: division by zero"}},
		{bags.Rank, "7 % 2", []string{"line 1 column 3", "_%_"}},
		{bags.Requirements, "host.site.matches(bag.name)", []string{"matches() wants a pattern in quotes"}},
		{bags.Requirements, "host.site.matches('[')", []string{"missing closing ]"}},
		{bags.Requirements, "host.site.matches('(a{100}){10}')", []string{"at most 256 are allowed"}},
		{bags.Requirements, "timestamp('2026-01-01T00:00:00Z') < timestamp('2027-01-01T00:00:00Z')", []string{"undeclared reference to 'timestamp'"}},
		{bags.Requirements, "[1, 2].map(n, n) == [1]", []string{"undeclared reference"}},
		{bags.Requirements, "[1, 2].exists_one(n, n == 1)", []string{"undeclared reference"}},
		{bags.Sites, "host.places > 1", []string{"sites does not know host.places: only requirements, rank, concurrency, deadline do"}},
		{bags.Requirements, "replicas.exists(r, r.age > 1)", []string{"requirements does not know replicas: only replicate does"}},
		{bags.Requirements, "task.failures > 1", []string{"requirements does not know task.failures: only replicate does"}},
		{bags.Replicate, "replicas[0].error_rat > 0.1", []string{"undefined field 'error_rat'"}},
		{bags.Replicate, "replicas.all(a, replicas.all(b, replicas.all(c, replicas.all(d, replicas.all(e, a.age + b.age + c.age + d.age + e.age > 1)))))", []string{"steps: at most 10000 are allowed"}},
		{bags.Requirements, strings.Repeat("x", 64<<10), []string{"a text of 65536 bytes: give at most 4096"}},
		{bags.Requirements, deep, []string{"nests too deep: at most 64"}},
		{bags.Requirements, strings.Repeat("[", 1000) + strings.Repeat("]", 1000), []string{"policies.requirements: "}},
		{bags.Requirements, strings.Repeat("true?true:", 300) + "true", []string{"nests too deep: at most 64"}},
		{bags.Requirements, "double('x') > 1", []string{"type conversion error"}},
		{bags.Requirements, "\xff", []string{"the text is not UTF-8"}},
		{bags.Requirements, " ", []string{"policies.requirements: "}},
		{bags.Requirements, "true // yes", nil},
	} {
		_, err := c.Compile(with(m.text, m.source))
		if m.want == nil {
			if err != nil {
				t.Errorf("%.60q: %v", m.source, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%.60q is taken", m.source)
			continue
		}
		if len(err.Error()) > 4000 {
			t.Errorf("%.60q: an error of %d bytes", m.source, len(err.Error()))
		}
		for _, want := range m.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%.60q: %v\nwant %q", m.source, err, want)
			}
		}
	}
	_, err := c.Compile(&store.BagPolicies{Texts: [store.PolicyCount]string{bags.Requirements: "1", bags.Sites: "2"}})
	var wrong *bags.TextsError
	if !errors.As(err, &wrong) || len(wrong.Mistakes) != 2 {
		t.Errorf("two mistakes: %v", err)
	}
}

// An explanation names the smallest part that decided.
func TestTheDecisivePart(t *testing.T) {
	c := New()
	for source, want := range map[string]string{
		"host.places > 1 && host.error_rate < 0.1 && bag.tail": "host.error_rate < 0.1",
		"host.places > 1 && (bag.tail && host.running > 7)":    "host.running > 7",
		"host.places > 10 || host.running > 7":                 "", // both

		"host.places > 10 || host.running > 3":     "host.running > 3",
		"bag.tail ? host.error_rate < 0.1 : true":  "host.error_rate < 0.1",
		"!bag.tail ? host.error_rate < 0.1 : true": "!bag.tail",
		"host.places > 1 && site.free > 2":         "site.free > 2",
		"host.error_rate < 2 / 20":                 "",
		"host.places > 1 && host.running > 1":      "",
		"[1, 2].all(n, n < 5) && host.site == 'x'": `host.site == "x"`,
		"bag.tail && [1, 2].exists(n, n == 5)":     "[1, 2].exists(n, n == 5)",
	} {
		g := compile(t, c, bags.Requirements, source).Explain(scene())[0]
		if g.Part != want {
			t.Errorf("%s: decided by %q, want %q (%+v)", source, g.Part, want, g)
		}
	}
	if g := compile(t, c, bags.Requirements, "site.free > 2").Explain(scene())[0]; g.Value != "UNDEFINED: site.free is not known" || !g.Undefined {
		t.Errorf("%+v", g)
	}
}

// Every variable that the table names is known to the policies that may read it.
func TestVariablesAreKnown(t *testing.T) {
	c := New()
	for v, d := range bags.Vars {
		for text := range bags.TextCount {
			source := map[bags.Type]string{bags.Number: d.Name + " > 0", bags.String: d.Name + " == ''", bags.Bool: d.Name}[d.Type]
			if !bags.Texts[text].Truth {
				source += " ? 1 : 0"
			}
			_, err := c.Compile(with(text, source))
			if (err == nil) != mayRead(text, bags.Var(v)) {
				t.Errorf("%s of %s: %v", d.Name, text, err)
			}
			if err == nil {
				if reads := compile(t, c, text, source).(*judge).programs[text].reads; !reads.Has(bags.Var(v)) {
					t.Errorf("%s of %s is not among what is read", d.Name, text)
				}
			}
		}
		if d.Sentence == "" || strings.Contains(d.Name, " ") {
			t.Errorf("%+v", d)
		}
	}
	if fmt.Sprint(bags.Sites, bags.Requirements) != "sites requirements" {
		t.Error(bags.Sites, bags.Requirements)
	}
}

// What explains a text is made once, not for each host.
func TestExplanationsAreMadeOnce(t *testing.T) {
	j, s := compile(t, New(), bags.Requirements, "host.places > 1 && (bag.tail && host.site.matches('^x'))"), scene()
	first := j.Explain(s)[0]
	if first.Part != `host.site.matches("^x")` {
		t.Errorf("%+v", first)
	}
	allocated := testing.AllocsPerRun(20, func() {
		if g := j.Explain(s)[0]; g != first {
			t.Errorf("%+v, first %+v", g, first)
		}
	})
	if allocated > 100 { // parsing anew takes thousands
		t.Errorf("%v allocations each time", allocated)
	}
}
