package bags_test

import (
	"math"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta/bags"
)

// seen is a host as its origin sees it.
type seen struct {
	bags.Host
	bags.Standing
}

func host(site job.SiteID, places int) *seen {
	h := &seen{Host: bags.Host{Site: site}}
	h.Places(places)
	return h
}

// end has a task end at a host, which has had it as long as it ran.
func (h *seen) end(b *bags.Blame, failed bool, run time.Duration, now job.Time) {
	h.Result(b.Result(h.Host, failed, run, run, false), now)
}

const noon = job.Time(12 * time.Hour)

// A host at which everything fails is held back after a few tasks: at once if the bag does
// well elsewhere, and later if nothing has ended there yet. It comes back by doing tasks well.
func TestHeldBack(t *testing.T) {
	for name, c := range map[string]struct {
		elsewhere int // tasks that were done well there
		most      int // tasks that it may spoil
	}{"nothing known of others": {0, 12}, "others do well": {50, 5}} {
		var b bags.Blame
		good, bad := host("good", 1), host("bad", 1)
		for range c.elsewhere {
			good.end(&b, false, time.Minute, noon)
		}
		n, now := 0, noon
		for ; !bad.Held(now) && n < 100; n++ {
			now = now.Add(time.Second)
			bad.end(&b, true, time.Second, now)
		}
		if n > c.most || n < 3 {
			t.Errorf("%s: held back after %d failures", name, n)
		}
		if more, _ := bad.May(0, now); more > 1 {
			t.Errorf("%s: may have %d tasks", name, more)
		}
		for probes := 0; bad.Held(now); probes++ {
			if more, until := bad.May(0, now); more == 0 {
				now = until
				continue
			} else if more > 4 || probes > 20 {
				t.Fatalf("%s: %d tasks at probe %d", name, more, probes)
			}
			bad.Probed(now)
			now = now.Add(time.Minute)
			bad.end(&b, false, time.Minute, now)
		}
		if now.Sub(noon) > time.Hour {
			t.Errorf("%s: it came back after %v", name, now.Sub(noon))
		}
	}
}

// A host that fails again and again at its probes gets fewer and fewer.
func TestProbesBecomeRare(t *testing.T) {
	var b bags.Blame
	good, bad := host("good", 1), host("bad", 1)
	for range 100 {
		good.end(&b, false, time.Minute, noon)
	}
	n, now := 0, noon
	for ; now < noon.Add(24*time.Hour); now = now.Add(time.Second) {
		if more, _ := bad.May(0, now); !bad.Held(now) || more > 0 {
			bad.Probed(now)
			bad.end(&b, true, time.Second, now)
			n++
		}
	}
	if n > 60 {
		t.Errorf("got %d tasks in a day and spoilt them all", n)
	}
}

// What fails everywhere is no host's fault: none is held back for long, whichever came first.
func TestBagToBlame(t *testing.T) {
	var b bags.Blame
	first, others := host("first", 1), []*seen{host("b", 1), host("c", 1), host("d", 1)}
	for range 15 {
		first.end(&b, true, time.Second, noon)
	}
	if !first.Held(noon) {
		t.Fatal("who fails alone is not held back")
	}
	for i := range 60 {
		h := others[i%3]
		h.end(&b, true, time.Second, noon)
		if h.Held(noon) {
			t.Fatalf("%s is held back for what fails everywhere", h.Site)
		}
	}
	first.Charge(b.Settle(first.Host), noon)
	if first.Held(noon) {
		t.Errorf("the first one is still held back, with a quota of %v", first.Quota())
	}
}

// Hosts at which as much fails as elsewhere are not held back, also if that is much.
func TestBlameIsRelative(t *testing.T) {
	var b bags.Blame
	hosts := []*seen{host("a", 8), host("b", 8), host("c", 8)}
	held, now := 0, noon
	for i := range 9000 {
		now = now.Add(time.Second)
		h := hosts[i%3]
		h.end(&b, (i*7919+i/3)%10 < 4, time.Minute, now)
		if h.Held(now) {
			held++
		}
	}
	if held > 90 {
		t.Errorf("%d of 9000 times a host was held back that fails as all do", held)
	}
}

// A failure in a fraction of the usual time counts double, by the origin's clock: a host that
// says that it ran for long had the task for a second all the same.
func TestQuickFailuresCountDouble(t *testing.T) {
	charge := func(run, held time.Duration) float64 {
		var b bags.Blame
		good := host("good", 1)
		for range 100 {
			good.end(&b, false, time.Minute, noon)
		}
		return b.Result(bags.Host{Site: "bad"}, true, run, held, false).Charge
	}
	slow := charge(time.Minute, time.Minute)
	if quick := charge(time.Second, 2*time.Second); math.Abs(quick-slow-1) > 1e-9 {
		t.Errorf("a quick failure costs %v, a slow one %v", quick, slow)
	}
	if forged := charge(time.Hour, 2*time.Second); math.Abs(forged-slow-1) > 1e-9 {
		t.Errorf("a quick failure that is said to have run for an hour costs %v, a slow one %v", forged, slow)
	}
}

// Blame goes to the host that failed, not to the other.
func TestBlameFindsTheHost(t *testing.T) {
	var b bags.Blame
	good, bad := host("good", 2), host("bad", 2)
	bad.Node = "n1"
	for i := range 200 {
		now := noon.Add(time.Duration(i) * time.Second)
		good.end(&b, false, time.Minute, now)
		if i%3 == 0 {
			bad.end(&b, true, time.Minute, now)
		}
	}
	if good.ErrorRate() > 0.01 || bad.ErrorRate() < 0.9 || good.Quota() != 8 || bad.Quota() >= 1 {
		t.Errorf("good: error rate %v quota %v, bad: %v %v", good.ErrorRate(), good.Quota(), bad.ErrorRate(), bad.Quota())
	}
}

// More places do not bring a quota back that was lost; forgetting does.
func TestPlacesBringNoQuota(t *testing.T) {
	var b bags.Blame
	good, bad := host("good", 1), host("bad", 1)
	for range 50 {
		good.end(&b, false, time.Minute, noon)
		bad.end(&b, true, time.Minute, noon)
	}
	lost := bad.Quota()
	if bad.Places(1 << 16); bad.Quota() != lost || lost >= 1 {
		t.Errorf("a quota of %v became %v with more places", lost, bad.Quota())
	}
	b.Trust(bad.Host)
	if more := b.Settle(bad.Host); more != 0 {
		t.Errorf("a trusted host owes %v", more)
	}
}

// A host that nobody can be compared with is not to blame, and does not regain trust by
// failing.
func TestAlone(t *testing.T) {
	var b bags.Blame
	only := host("only", 1)
	for range 100 {
		only.Result(b.Result(only.Host, true, time.Second, time.Second, true), noon)
	}
	if only.Held(noon) || only.ErrorRate() != 0 {
		t.Errorf("held back with an error rate of %v", only.ErrorRate())
	}
	good := host("good", 1)
	for range 50 {
		good.end(&b, false, time.Minute, noon)
		only.end(&b, true, time.Minute, noon)
	}
	was := only.ErrorRate()
	for range 100 {
		only.Result(b.Result(only.Host, true, time.Second, time.Second, true), noon)
	}
	if only.ErrorRate() < was {
		t.Errorf("an error rate of %v became %v by failures", was, only.ErrorRate())
	}
}

// What is known of a bag is bounded, and of recent results only.
func TestBlameForgets(t *testing.T) {
	var b bags.Blame
	good, other := host("good", 1), host("other", 1)
	for i := range 100_000 {
		h := bags.Host{Site: "s", Node: string(rune('a'+i%20)) + time.Duration(i%9000).String()}
		b.Result(h, false, time.Minute, time.Minute, false)
	}
	for range 400 { // from here on it fails everywhere
		good.end(&b, true, time.Minute, noon)
		other.end(&b, true, time.Minute, noon)
	}
	good.Charge(b.Settle(good.Host), noon)
	if good.Held(noon) {
		t.Errorf("held back with an error rate of %v and a quota of %v for what fails everywhere of late", good.ErrorRate(), good.Quota())
	}
}
