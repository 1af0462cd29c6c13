package policy

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"kith/meta/bags"
	"kith/store"
)

// found reports whether a verdict is found anew.
func found(j bags.Judge, s *bags.Scene) bool {
	inner := j.(*judge)
	before := inner.found
	inner.Verdict(s)
	return inner.found != before
}

// A verdict is found again when something that its texts read has changed, and not before.
func TestVerdictsAreKept(t *testing.T) {
	c, s := New(), scene()
	j := compile(t, c, bags.Requirements, "host.error_rate < 0.5 && bag.tail && queue.bags < 5")
	for i, step := range []struct {
		change func()
		anew   bool
	}{
		{func() {}, true}, {func() {}, false},
		{func() { s.Host.Number(bags.HostErrorRate, 0.3) }, true},
		{func() { s.Host.Number(bags.HostErrorRate, 0.3) }, false},
		{func() { s.Host.Number(bags.HostRunning, 7); s.Site.Number(bags.SiteLoad, 9) }, false},
		{func() { s.Bag.Number(bags.BagDone, 961) }, false},
		{func() { s.Bag.Truth(bags.BagTail, false) }, true},
		{func() { s.Queue.Number(bags.QueueBags, 3) }, true},
		{func() { s.Now = s.Now.Add(time.Hour) }, false},
		{func() { s.Host = scene().Host }, true},
	} {
		step.change()
		if anew := found(j, s); anew != step.anew {
			t.Errorf("step %d: found anew %v", i, anew)
		}
	}
	other := scene().Host
	j = compile(t, c, bags.Requirements, "bag.tail || site.load > 1")
	found(j, s)
	if s.Host = other; found(j, s) {
		t.Error("what reads no host was found anew for another one of the site")
	}
	for _, source := range []string{"bag.age", "hour", ".hour", ".bag.age", "[1].exists(hour, .hour > 3) ? 1 : 0"} {
		j = compile(t, c, bags.Rank, source)
		found(j, s)
		if !found(j, s) {
			t.Errorf("%s, which reads the time, was kept", source)
		}
	}
}

// What is kept is what would be found, whatever changes.
func TestKeptIsWhatWouldBeFound(t *testing.T) {
	rng, c, s := rand.New(rand.NewPCG(3, 3)), New(), scene()
	var judges []bags.Judge
	for _, source := range []string{"host.error_rate < 0.2", "bag.tail ? site.load < 1 : host.places > 4", "bag.age < 3600 || hour > 11", "queue.bags > 1 && !site.home"} {
		judges = append(judges, compile(t, c, bags.Requirements, source))
	}
	hosts := []*bags.Scope{s.Host, scene().Host, scene().Host}
	for range 3000 {
		s.Host = hosts[rng.IntN(len(hosts))]
		switch rng.IntN(7) {
		case 0:
			s.Host.Number(bags.HostErrorRate, rng.Float64()/2)
		case 1:
			s.Host.Number(bags.HostPlaces, float64(rng.IntN(9)))
		case 2:
			s.Bag.Truth(bags.BagTail, rng.IntN(2) == 0)
		case 3:
			s.Site.Number(bags.SiteLoad, 2*rng.Float64())
		case 4:
			s.Queue.Number(bags.QueueBags, float64(rng.IntN(3)))
		case 5:
			s.Site.Truth(bags.SiteHome, rng.IntN(2) == 0)
		case 6:
			s.Now = s.Now.Add(time.Duration(rng.Int64N(int64(time.Hour))))
		}
		for i, j := range judges {
			if got, want := j.Verdict(s), j.(*judge).find(s); got != want {
				t.Fatalf("text %d: %+v is kept, %+v would be found", i, got, want)
			}
		}
	}
}

// Hosts that ask once do not fill the memory: 10,000 of them ask 20 bags.
func TestVerdictsAreBounded(t *testing.T) {
	c, s := New(), scene()
	var judges []bags.Judge
	for range 20 {
		judges = append(judges, compile(t, c, bags.Requirements, "host.error_rate < 0.2"))
	}
	for range 10_000 {
		s.Host = bags.NewScope(bags.RootHost)
		for _, j := range judges {
			j.Verdict(s)
		}
		if c.kept > maxKept {
			t.Fatalf("%d verdicts are kept", c.kept)
		}
	}
	for _, j := range judges {
		j.Forget()
	}
	if c.kept != 0 {
		t.Errorf("%d verdicts are left", c.kept)
	}
}

// Programs of texts that come again are shared, and those that are kept are bounded by the
// room that they take.
func TestProgramsAreShared(t *testing.T) {
	c := New()
	of := func(source string) *program { return compile(t, c, bags.Rank, source).(*judge).programs[bags.Rank] }
	first := of("1")
	if of("1") != first || len(c.programs) != 1 || c.bytes != first.bytes {
		t.Errorf("%d programs, %d bytes", len(c.programs), c.bytes)
	}
	c.bytes = maxKeptBytes - 1 // as if others had been there
	if next := of("2"); len(c.programs) != 1 || c.bytes != next.bytes {
		t.Errorf("%d programs and %d bytes beyond the bound", len(c.programs), c.bytes)
	}
	if of("1") == first {
		t.Error("a program is kept that had to go")
	}
	if _, err := c.Compile(&store.BagPolicies{}); err != nil {
		t.Error(err)
	}
}

// What a program is said to take is at least what it does.
func TestBytesOfPrograms(t *testing.T) {
	heap := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	for _, source := range []string{
		"host.places > %d", "host.site.matches('%d([a-z]|[a-y]|[a-x]){24}b')", `host.site.matches('%d\\pL')`,
		"%d + 1" + strings.Repeat(" + host.places", 60) + " > 1", "host.site in [" + strings.Repeat("'abcdef', ", 100) + "'%d']",
	} {
		c, said := New(), 0
		var all []*program
		before := heap()
		for i := range 50 {
			p, wrong := c.compile(bags.Requirements, sprintf(source, i))
			if len(wrong) > 0 {
				t.Fatal(wrong)
			}
			all, said = append(all, p), said+p.bytes
		}
		if took := heap() - before; took > said {
			t.Errorf("%.40s: %d programs take %d bytes, said to take %d", source, len(all), took, said)
		}
		runtime.KeepAlive(all)
	}
}

// Offers are kept as verdicts are.
func TestOffersAreKept(t *testing.T) {
	c, s := New(), scene()
	j, err := c.Compile(&store.BagPolicies{Texts: [store.PolicyCount]string{bags.Sites: "bag.left > 5 && site.load < 1", bags.Requirements: "!site.home"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		change      func()
		anew, offer bool
	}{
		{func() {}, true, true}, {func() {}, false, true},
		{func() {
			s.Bag.Number(bags.BagDone, 7)
			s.Queue.Number(bags.QueueBags, 9)
			s.Site.Number(bags.SiteFree, 3)
		}, false, true},
		{func() { s.Now = s.Now.Add(time.Hour) }, false, true},
		{func() { s.Site.Number(bags.SiteLoad, 2) }, true, false},
		{func() { s.Site.Number(bags.SiteLoad, 0) }, true, true},
		{func() { s.Site.Truth(bags.SiteHome, true) }, true, false},
		{func() { s.Site = scene().Site }, true, true},
		{func() { s.Bag.Number(bags.BagLeft, 5) }, true, false},
	} {
		step.change()
		before := j.(*judge).found
		if offer := j.Offer(s); offer != step.offer || (j.(*judge).found != before) != step.anew {
			t.Errorf("step %d: offered %v, found anew %v", i, offer, j.(*judge).found != before)
		}
	}
	if j.Forget(); c.kept != 0 {
		t.Errorf("%d offers are left", c.kept)
	}
	j = compile(t, c, bags.Sites, "bag.age > 1 && hour > 1")
	for range 2 {
		if before := j.(*judge).found; !j.Offer(s) || j.(*judge).found == before {
			t.Error("an offer that hangs on the time was kept")
		}
	}
}
