package raftstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"kith/internal/job"
	"kith/meta/commit"
	"kith/store"
	"kith/store/storetest"
)

// A claim is what clients do: they ask for the one grant of a job for a site, or who has it.
type claim struct {
	job  uint64
	site job.SiteID // empty to ask only
}

// claims is the claim of a job as it should be: the first site that asks gets it, for ever. The
// state is its holder. An answer is the holder, or unknown.
var claims = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := make(map[uint64][]porcupine.Operation)
		for _, o := range history {
			by[o.Input.(claim).job] = append(by[o.Input.(claim).job], o) //nolint:forcetypeassert // of this model
		}
		var parts [][]porcupine.Operation
		for _, p := range by {
			parts = append(parts, p)
		}
		return parts
	},
	Init: func() any { return job.SiteID("") },
	Step: func(state, input, output any) (bool, any) {
		holder, in, out := state.(job.SiteID), input.(claim), output.(answered) //nolint:forcetypeassert // of this model
		if holder == "" {
			holder = in.site
		}
		return !out.known || out.holder == holder, holder
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%v → %v", input, output) },
}

// hosts are the sites that claim.
var hosts = storetest.Sites()

type answered struct {
	holder job.SiteID
	known  bool
}

// ask is a claim on its way to whoever leads.
type ask struct {
	claim
	reply chan answered
}

// serve is what a daemon does while its member leads: it applies claims to the facts in memory and
// answers behind the barrier, as any driver does. It ends when the lead is over or ctx is.
func serve(ctx context.Context, lead *Lead, asks <-chan ask) {
	facts, err := lead.Load()
	if err != nil {
		panic(err)
	}
	barrier := commit.New(facts, lead, nil)
	type done struct{ err error }
	committed := make(chan done, 1)
	var unanswered []ask // told nothing if this lead ends
	under := false
	defer func() {
		if under {
			<-committed
		}
		for _, a := range unanswered {
			select {
			case a.reply <- answered{}:
			default: // it has its answer
			}
		}
	}()
	for {
		select {
		case a := <-asks:
			unanswered = append(unanswered, a)
			id := job.ID{Origin: "alpha", Generation: facts.Site().Generation, Seq: a.job}
			if a.site != "" && facts.Job(id) != nil && facts.Job(id).Holder == "" {
				if err := facts.Apply(store.GrantClaim{Attempt: job.AttemptID{Job: id, Number: 1}, Site: a.site}); err != nil {
					panic(err)
				}
			}
			var holder job.SiteID
			if j := facts.Job(id); j != nil {
				holder = j.Holder
			}
			barrier.Wait(func() { a.reply <- answered{holder, true} })
		case d := <-committed:
			under = false
			if d.err != nil {
				return
			}
			barrier.Done()
		case <-lead.Over():
			return
		case <-ctx.Done():
			return
		}
		if ready, ok := barrier.Next(); ok {
			under = true
			go func() {
				_, err := ready.Commit()
				for err != nil && !store.Void(err) {
					time.Sleep(10 * time.Millisecond)
					_, err = ready.Commit()
				}
				if err == nil {
					for _, f := range ready.Waiting() {
						f()
					}
				}
				committed <- done{err}
			}()
		}
	}
}

// history lets clients claim jobs through whoever they take for the leader, while members are
// killed, cut off, frozen out and brought back, and returns what the clients saw.
func history(t *testing.T, seed uint64, length time.Duration) []porcupine.Operation {
	const clients, window = 6, 30 // jobs that are claimed at a time; it moves on by five a second
	jobs := window + 5*int(length/time.Second)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := newSite(t, 3, func(c *Config) { c.SnapshotEntries, c.TrailingEntries = 40, 5 })
	lead := s.lead()
	state := load(t, lead)
	for range jobs {
		id := submit(t, state, 10)
		if err := state.Apply(store.OpenAttempt{Attempt: job.AttemptID{Job: id, Number: 1}, Sites: hosts}); err != nil {
			t.Fatal(err)
		}
	}
	if err := lead.Seal(state).Commit(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	slow := rand.New(rand.NewPCG(seed, 1000))
	s.net.mu.Lock()
	s.net.delay = func() time.Duration { return time.Duration(slow.IntN(20)) * time.Millisecond }
	s.net.mu.Unlock()

	var mu sync.Mutex
	desks := make(map[string]chan ask) // of the members that run
	var drivers sync.WaitGroup
	drive := func(m *Member, desk chan ask) {
		for {
			lead, err := m.Lead(ctx)
			if err != nil {
				return // closed, or it is time
			}
			serve(ctx, lead, desk)
		}
	}
	start := func(m *Member) {
		desk := make(chan ask)
		mu.Lock()
		desks[m.cfg.Name] = desk
		mu.Unlock()
		drivers.Go(func() { drive(m, desk) })
	}
	for _, name := range s.names() {
		start(s.members[name])
	}

	begin := time.Now()
	var operations []porcupine.Operation
	var wait sync.WaitGroup
	for client := range clients {
		own := rand.New(rand.NewPCG(seed, uint64(client)+1))
		wait.Go(func() {
			for ctx.Err() == nil {
				c := claim{job: 1 + uint64(5*time.Since(begin)/time.Second) + own.Uint64N(window)}
				if own.IntN(3) > 0 {
					c.site = hosts[own.IntN(len(hosts))]
				}
				mu.Lock()
				desk := desks[string(rune('a'+own.IntN(3)))]
				mu.Unlock()
				a := ask{c, make(chan answered, 1)}
				call := time.Since(begin)
				out := answered{}
				select {
				case desk <- a:
					select {
					case out = <-a.reply:
					case <-ctx.Done():
					}
				case <-time.After(time.Duration(own.IntN(50)) * time.Millisecond):
					continue // nobody has heard it
				}
				end := time.Since(begin)
				if !out.known { // it may take effect at any later time
					end = 1000 * time.Hour
				}
				mu.Lock()
				operations = append(operations, porcupine.Operation{ClientId: client, Input: c, Call: int64(call), Output: out, Return: int64(end)})
				mu.Unlock()
				time.Sleep(time.Duration(own.IntN(100)) * time.Millisecond)
			}
		})
	}
	for ctx.Err() == nil {
		time.Sleep(time.Duration(500+rng.IntN(4000)) * time.Millisecond)
		name := string(rune('a' + rng.IntN(3)))
		for n, m := range s.members {
			if rng.IntN(3) > 0 && m.leads() == nil {
				name = n
			}
		}
		switch rng.IntN(6) {
		case 0, 1:
			s.net.cut(peer(name).Address)
		case 2:
			s.net.heal()
		case 3: // closed in order
			s.shut(name)
			start(s.open(peer(name)))
		case 4: // killed, and away for a while
			s.kill(name)
			time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
			start(s.open(peer(name)))
		case 5:
			if m := s.members[name]; m.leads() == nil {
				m.Transfer() //nolint:errcheck // it may have lost the lead since
			}
		}
	}
	wait.Wait()
	drivers.Wait()
	s.net.mu.Lock()
	s.net.delay = nil
	s.net.mu.Unlock()
	time.Sleep(time.Second) // what was being written is
	s.net.heal()
	s.same(s.lead())
	return operations
}

// Whatever happens to members and network, what clients see of claims is as if one after the other
// had been decided in one place.
func TestClaimsAreLinearizable(t *testing.T) {
	seeds, length := uint64(6), time.Minute
	if os.Getenv("KITH_THOROUGH") != "" {
		seeds = 40
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			operations := history(t, seed, length)
			known, granted := 0, 0
			for _, o := range operations {
				if out := o.Output.(answered); out.known { //nolint:forcetypeassert // of this model
					known++
					if out.holder != "" {
						granted++
					}
				}
			}
			result, info := porcupine.CheckOperationsVerbose(claims, operations, 0)
			if result != porcupine.Ok {
				t.Errorf("seed %d: a history of %d claims is %v", seed, len(operations), result)
				if path := os.Getenv("KITH_HISTORY"); path != "" {
					if err := porcupine.VisualizePath(claims, info, path); err != nil {
						t.Error(err)
					}
				}
			}
			if known < 50 || granted == 0 {
				t.Errorf("seed %d: only %d of %d claims were answered, %d with a holder", seed, known, len(operations), granted)
			}
			t.Logf("seed %d: %d claims, %d answered", seed, len(operations), known)
		})
	}
}

// The check finds a history that is none: two sites with one grant.
func TestClaimsThatAreNotLinearizable(t *testing.T) {
	operations := []porcupine.Operation{
		{ClientId: 0, Input: claim{1, "alpha"}, Call: 0, Output: answered{"alpha", true}, Return: 10},
		{ClientId: 1, Input: claim{1, "beta"}, Call: 5, Output: answered{"beta", true}, Return: 15},
	}
	if porcupine.CheckOperations(claims, operations) {
		t.Error("two sites have the same grant")
	}
}
