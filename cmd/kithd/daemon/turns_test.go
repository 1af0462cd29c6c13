package daemon

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"kith/internal/job"
	"kith/meta"
)

// marked is an input that can be told apart.
func marked(site job.SiteID, n int) input {
	return input{event: meta.Receive{From: site, Message: meta.WithdrawAck{Attempt: job.AttemptID{Number: uint32(n)}}}} //nolint:gosec // small
}

func markOf(in input) (job.SiteID, int) {
	r := in.event.(meta.Receive)
	return r.From, int(r.Message.(meta.WithdrawAck).Attempt.Number)
}

// Whatever is put and taken in whichever order: each lane keeps its order, nothing is lost
// or doubled, an input waits for at most one of each other lane, and no lane gives more
// than its part to an instant.
func TestLanesAreServedInTurn(t *testing.T) {
	seed := uint64(1)
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	sites := []job.SiteID{"beta", "gamma", "delta", "flood"}
	s := newLanes()
	put, taken, before := map[job.SiteID]int{}, map[job.SiteID]int{}, map[job.SiteID]int{}
	instant := map[job.SiteID]int{}
	for range 50_000 {
		if r.IntN(2) == 0 {
			site := sites[r.IntN(len(sites))]
			for range 1 + r.IntN(map[bool]int{true: 40, false: 1}[site == "flood"]) {
				if put[site] == taken[site] {
					before[site] = 0
				}
				put[site]++
				s.put(lane{peer: site}, marked(site, put[site]))
			}
			continue
		}
		in, ok := s.take()
		if !ok {
			for site := range put {
				if put[site] > taken[site] && instant[site] < mostInInstant {
					t.Fatalf("%s waits with %d and gave %d to the instant", site, put[site]-taken[site], instant[site])
				}
			}
			s.end()
			clear(instant)
			clear(before)
			continue
		}
		site, n := markOf(in)
		if taken[site]++; taken[site] != n {
			t.Fatalf("input %d of %s came as number %d", n, site, taken[site])
		}
		if instant[site]++; instant[site] > mostInInstant {
			t.Fatalf("%s gave %d inputs to an instant", site, instant[site])
		}
		before[site] = 0
		for other := range put {
			if other == site || put[other] == taken[other] || instant[other] >= mostInInstant {
				continue
			}
			if before[other]++; before[other] > 2*len(sites) {
				t.Fatalf("%s waits for %d inputs of others", other, before[other])
			}
		}
		if r.IntN(500) == 0 {
			s.end()
			clear(instant)
		}
	}
	for n := 0; n < 1_000_000 && s.waiting() > 0; n++ {
		if in, ok := s.take(); ok {
			site, _ := markOf(in)
			taken[site]++
		} else {
			s.end()
		}
	}
	s.end()
	for site := range put {
		if put[site] != taken[site] {
			t.Errorf("%s: %d of %d inputs were taken", site, taken[site], put[site])
		}
	}
	if len(s.of) != 0 {
		t.Errorf("%d empty lanes are remembered", len(s.of))
	}
}

// A peer that floods with all its places taken makes another wait for one of its inputs,
// not for all; and the loop is woken for what an instant has left.
func TestFloodInOneLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLanes()
		for n := range 10 * mostInInstant {
			s.put(lane{peer: "flood"}, marked("flood", n))
		}
		s.put(lane{peer: "beta"}, marked("beta", 1))
		for n := range 3 {
			in, ok := s.take()
			if site, _ := markOf(in); ok && site == "beta" {
				if n > 1 {
					t.Errorf("the other peer came after %d inputs of the flood", n)
				}
				break
			}
			if n == 2 {
				t.Error("the other peer waits behind the flood")
			}
		}
		<-s.wake
		for _, ok := s.take(); ok; _, ok = s.take() {
		}
		if left := s.waiting(); left != 9*mostInInstant {
			t.Errorf("%d inputs are left for later instants, want %d", left, 9*mostInInstant)
		}
		s.end()
		select {
		case <-s.wake:
		default:
			t.Error("what was left wakes nobody")
		}
	})
}

// waiting returns how many inputs wait.
func (s *lanes) waiting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.of {
		n += q.waits.Len()
	}
	return n
}
