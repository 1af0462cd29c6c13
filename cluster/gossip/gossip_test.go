package gossip

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/job"
)

// federation starts n sites that all trust each other.
func federation(n *network, count int) []*site {
	all := make([]*site, count)
	for i := range all {
		all[i] = n.member(job.SiteID(fmt.Sprintf("s%03d", i)))
	}
	trust(all...)
	for _, s := range all {
		s.begin()
	}
	return all
}

// behind counts the pairs of which the first has not heard the latest of the second.
func behind(all []*site) (pairs int) {
	for _, a := range all {
		for _, b := range all {
			if a != b && a.of(b.name).Sequence < b.seq {
				pairs++
			}
		}
	}
	return pairs
}

func allAlive(all []*site) func() bool {
	return func() bool {
		return !slices.ContainsFunc(all, func(s *site) bool { return len(s.Members()) != len(all)-1 })
	}
}

// Twenty sites know each other soon, and what one says is known to all within two
// seconds, in every round.
func TestTwentySites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.end()
		all := federation(n, 20)
		t.Log("members after", until(t, 10*time.Second, "all members of all", allAlive(all)))
		for range 8 {
			for _, s := range all {
				s.advertise()
			}
			t.Log("all have heard all after", until(t, 2*time.Second, "all heard", func() bool { return behind(all) == 0 }))
			time.Sleep(3 * time.Second)
		}
		for _, s := range all[:5] {
			s.advertise()
			t.Log("all have heard one after", until(t, 2*time.Second, "all heard", func() bool { return behind(all) == 0 }))
			time.Sleep(time.Second)
		}
		for _, s := range all {
			if s.refused.Load() != 0 || s.transport.refused.Load() != 0 {
				t.Errorf("%s refused %d notes and %d messages of honest sites", s.name, s.refused.Load(), s.transport.refused.Load())
			}
		}
	})
}

// Sites that crash, come back, leave, and are cut off are seen as that.
func TestSitesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.end()
		all := federation(n, 8)
		until(t, 10*time.Second, "all members of all", allAlive(all))

		all[3].crash()
		rest := slices.Concat(all[:3], all[4:])
		t.Log("a crash is known after", until(t, time.Minute, "a crash known to all", allAlive(rest)))
		time.Sleep(20 * time.Second)
		all[3].begin()
		t.Log("its return after", until(t, time.Minute, "its return known to all", allAlive(all)))
		all[3].advertise()
		until(t, 5*time.Second, "what it says in its new life is heard", func() bool { return behind(all) == 0 })

		// One site is cut off from all but one. What it says reaches all over that one.
		for _, o := range all[2:] {
			n.sever("s000", o.name)
		}
		before := all[0].seq
		for range 24 { // s000 has none of their keys yet
			for _, s := range all {
				s.advertise()
			}
			time.Sleep(5 * time.Second)
		}
		for _, o := range all[2:] {
			if all[0].of(o.name).Sequence <= before || o.of("s000").Sequence <= before {
				t.Errorf("%s and s000 do not hear each other through s001", o.name)
			}
		}
		n.sever("s000", "s001")
		t.Log("a cut is known after", until(t, 2*time.Minute, "a cut known to all", allAlive(all[1:])))
		until(t, 5*time.Minute, "known to who is cut off", func() bool { return len(all[0].Members()) == 0 })
		time.Sleep(10 * time.Minute)
		for _, o := range all[1:] {
			n.heal("s000", o.name)
		}
		t.Log("a healed cut after", until(t, 2*time.Minute, "a healed cut known to all", allAlive(all)))
		if err := all[5].Close(); err != nil {
			t.Error(err)
		}
		t.Log("a leave after", until(t, time.Minute, "a leave known to all", allAlive(slices.Concat(all[:5], all[6:]))))
	})
}

// A site that nobody can dial is a member like others, by the lanes that it opens.
func TestOutboundOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.end()
		a, b, c := n.member("a"), n.member("b"), n.member("c")
		trust(a, b, c)
		a.serve = false
		for _, s := range []*site{a, b, c} {
			s.begin()
		}
		all := []*site{a, b, c}
		until(t, 10*time.Second, "all members", allAlive(all))
		for range 10 {
			for _, s := range all {
				s.advertise()
			}
			time.Sleep(10 * time.Second)
			if behind(all) != 0 || !allAlive(all)() {
				t.Fatal("it is not heard, or does not hear, or does not count as alive")
			}
		}
	})
}

// A and B, B and C trust each other, A and C do not: each pair works, nobody hears of
// whom it does not trust, and nobody is called dead for it.
func TestTriangle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.end()
		a, b, c := n.member("a"), n.member("b"), n.member("c")
		trust(a, b)
		trust(b, c)
		for _, s := range []*site{a, b, c} {
			s.begin()
		}
		pairs := func() bool { return len(a.Members()) == 1 && len(b.Members()) == 2 && len(c.Members()) == 1 }
		until(t, 10*time.Second, "the pairs members", pairs)
		for range 30 {
			for _, s := range []*site{a, b, c} {
				s.advertise()
			}
			time.Sleep(10 * time.Second)
			if !pairs() {
				t.Fatalf("members are %v, %v, %v", a.Members(), b.Members(), c.Members())
			}
			if behind([]*site{a, b})+behind([]*site{b, c}) != 0 {
				t.Fatal("a pair does not hear each other")
			}
		}
		if a.of("c").Sequence+c.of("a").Sequence != 0 {
			t.Error("a site heard of one that it does not trust")
		}
		if n := a.refused.Load() + b.refused.Load() + c.refused.Load(); n != 0 {
			t.Errorf("%d notes of honest sites were refused", n)
		}
		if n.dials["a"]+n.dials["c"] > 4 {
			t.Errorf("dialled: %v", n.dials)
		}

		// C is out of B's reach for a while. A, whom B asks, cannot ping C: that is no
		// reason for B to call it dead any sooner, nor to leave it so.
		n.sever("b", "c")
		until(t, time.Minute, "b's own finding", func() bool { return slices.Equal(b.Members(), []job.SiteID{"a"}) })
		n.heal("b", "c")
		until(t, time.Minute, "members again", pairs)
		if n.dials["c"] > 20 {
			t.Errorf("dialled: %v", n.dials)
		}
	})
}

// B cannot reach C, but both reach D: what D finds for B counts.
func TestAFriendFindsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.end()
		b, c, d := n.member("b"), n.member("c"), n.member("d")
		trust(b, c, d)
		all := []*site{b, c, d}
		for _, s := range all {
			s.begin()
		}
		until(t, 10*time.Second, "all members", allAlive(all))
		n.sever("b", "c")
		time.Sleep(3 * time.Minute)
		if !allAlive(all)() {
			t.Errorf("members are %v, %v, %v", b.Members(), c.Members(), d.Members())
		}
		b.advertise()
		c.advertise()
		until(t, 2*time.Second, "heard through the friend", func() bool { return behind(all) == 0 })
	})
}

// Trust that ends, ends at once: lanes, membership and digests.
func TestTrustEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.end()
		a, b, c := n.member("a"), n.member("b"), n.member("c")
		trust(a, b, c)
		all := []*site{a, b, c}
		for _, s := range all {
			s.begin()
		}
		until(t, 10*time.Second, "all members", allAlive(all))
		b.advertise()
		until(t, 2*time.Second, "heard", func() bool { return a.of("b").Sequence == 1 })
		a.mu.Lock()
		delete(a.trusts, "b")
		a.mu.Unlock()
		a.TrustChanged()
		if a.Up("b") || a.digests.of["b"] != nil {
			t.Error("the lane or the digest is still there")
		}
		for range 5 {
			b.advertise()
			c.advertise()
			time.Sleep(10 * time.Second)
		}
		if a.of("b").Sequence != 1 || a.of("c").Sequence != 5 || c.of("b").Sequence != b.seq {
			t.Errorf("a heard b %d and c %d, c heard b %d", a.of("b").Sequence, a.of("c").Sequence, c.of("b").Sequence)
		}
		if got := a.Members(); !slices.Equal(got, []job.SiteID{"c"}) {
			t.Errorf("members are %v", got)
		}
	})
}

// The queue of memberlist loses notes of equal length; this one does not.
func TestQueueKeepsAll(t *testing.T) {
	q := queue{members: func() int { return 20 }}
	counts := make(map[string]int)
	for round := range 50 {
		for i := range 20 {
			q.add(fmt.Sprint("site ", i), fmt.Appendf(nil, "%03d %03d", round, i))
			if i%3 == 0 {
				for _, b := range q.take(2, 20) {
					counts[string(b)]++
				}
			}
		}
		for q.len() > 0 {
			for _, b := range q.take(2, 20) {
				counts[string(b)]++
			}
		}
	}
	for round := range 50 {
		for i := range 20 {
			if got := counts[fmt.Sprintf("%03d %03d", round, i)]; got != 2*retransmits {
				t.Fatalf("note %d of round %d was sent %d times, want %d", i, round, got, 2*retransmits)
			}
		}
	}
}

// len is how many notes wait.
func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}
