package raftstore

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta/commit"
	"kith/store"
)

// benchSite is members over TCP on loopback with the times that are the default.
type benchSite struct {
	b       *testing.B
	dir     string
	peers   []Peer
	members map[string]*Member
}

func (s *benchSite) config(p Peer) Config {
	return Config{
		Site: "alpha", Cluster: cluster, Peer: p, Folder: filepath.Join(s.dir, p.Name),
		Dial: func(ctx context.Context, to string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", to)
		},
	}
}

func newBenchSite(b *testing.B, members int) *benchSite {
	s := &benchSite{b: b, dir: b.TempDir(), members: make(map[string]*Member)}
	for i := range members {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		s.peers = append(s.peers, Peer{string(rune('a' + i)), l.Addr().String()})
		l.Close() // its port is taken again at once
	}
	for _, p := range s.peers {
		if err := Found(s.config(p), s.peers); err != nil {
			b.Fatal(err)
		}
		s.open(p)
	}
	b.Cleanup(func() {
		for _, m := range s.members {
			if err := m.Close(); err != nil {
				b.Error(err)
			}
		}
	})
	return s
}

func (s *benchSite) open(p Peer) *Member {
	cfg := s.config(p)
	var err error
	if cfg.Listener, err = net.Listen("tcp", p.Address); err != nil {
		s.b.Fatal(err)
	}
	m, err := Open(cfg)
	if err != nil {
		s.b.Fatal(err)
	}
	s.members[p.Name] = m
	return m
}

func (s *benchSite) lead() *Lead {
	inMemory := &site{t: s.b, members: s.members}
	return inMemory.lead()
}

// submitted is a job as a user submits it: a script of some lines.
func submitted(id job.ID, at job.Time) store.SubmitJob {
	return store.SubmitJob{
		ID: id, Request: job.Request{Name: "bench", User: "ada", Processors: 4, MemoryBytes: 1 << 30, Walltime: time.Hour, Directory: "/home/ada/work"},
		Payload: make([]byte, 300), Time: at,
	}
}

// fill records jobs, a thousand in a batch.
func fill(b *testing.B, lead *Lead, facts *store.State, jobs int) {
	for i := range jobs {
		if err := store.Record(facts, submitted(facts.NextID(), job.Time(i+1))); err != nil {
			b.Fatal(err)
		}
		if i%1000 == 999 || i == jobs-1 {
			committed(b, lead, facts)
		}
	}
}

// BenchmarkSubmits is 64 callers, each of whom submits a job, waits for the answer behind the barrier,
// and submits the next.
func BenchmarkSubmits(b *testing.B) {
	for _, members := range []int{1, 3} {
		b.Run(string(rune('0'+members)), func(b *testing.B) {
			s := newBenchSite(b, members)
			lead := s.lead()
			facts := load(b, lead)
			barrier := commit.New(facts, lead, nil)
			submits, done := make(chan chan struct{}), make(chan error, 1)
			stop := make(chan struct{})
			var loop, callers sync.WaitGroup
			batches := 0
			loop.Go(func() {
				take := func(answer chan struct{}) {
					if err := store.Record(facts, submitted(facts.NextID(), 1)); err != nil {
						b.Error(err)
					}
					barrier.Wait(func() { answer <- struct{}{} })
				}
				for {
					select {
					case answer := <-submits:
						take(answer)
					case err := <-done:
						if err != nil {
							b.Error(err)
							return
						}
						barrier.Done()
					case <-stop:
						return
					}
					if ready, ok := barrier.Next(); ok {
						batches++
						go func() {
							_, err := ready.Commit()
							for _, f := range ready.Waiting() {
								f()
							}
							done <- err
						}()
					}
				}
			})
			b.ResetTimer()
			each := b.N/64 + 1
			for range 64 {
				callers.Go(func() {
					answer := make(chan struct{}, 1)
					for range each {
						submits <- answer
						<-answer
					}
				})
			}
			callers.Wait()
			b.StopTimer()
			b.ReportMetric(float64(64*each)/b.Elapsed().Seconds(), "submits/s")
			b.ReportMetric(float64(64*each)/float64(batches), "submits/batch")
			close(stop)
			loop.Wait()
			for barrier.UnderWay() {
				if err := <-done; err != nil {
					b.Error(err)
				}
				barrier.Done()
			}
		})
	}
}

// BenchmarkSnapshot makes snapshots of 100,000 jobs while others are committed. What the engine waits
// for is nothing; pause-ms is how long raft's goroutine that writes facts is held up, commit-ms how
// long the slowest commit took meanwhile, and alone-ms the slowest one without a snapshot.
func BenchmarkSnapshot(b *testing.B) {
	s := newBenchSite(b, 1)
	lead := s.lead()
	facts := load(b, lead)
	fill(b, lead, facts, 100_000)
	slowest := func(until <-chan struct{}) time.Duration {
		var times []time.Duration
		for {
			select {
			case <-until:
				if len(times) == 0 {
					return 0
				}
				return slices.Max(times)
			default:
			}
			begin := time.Now()
			fill(b, lead, facts, 10)
			times = append(times, time.Since(begin))
		}
	}
	var pause, during, alone, took time.Duration
	var size int64
	for b.Loop() {
		begin := time.Now()
		snap, err := lead.m.machine.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		pause = max(pause, time.Since(begin))
		size = snap.(*snapshot).image.Size() //nolint:forcetypeassert // it is ours
		snap.Release()
		until := make(chan struct{})
		time.AfterFunc(2*time.Second, func() { close(until) })
		alone = max(alone, slowest(until))
		until = make(chan struct{})
		go func() {
			begin := time.Now()
			if err := lead.m.Snapshot(); err != nil {
				b.Error(err)
			}
			took = time.Since(begin)
			close(until)
		}()
		during = max(during, slowest(until))
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(pause), "pause-ms")
	b.ReportMetric(ms(during), "commit-ms")
	b.ReportMetric(ms(alone), "alone-ms")
	b.ReportMetric(ms(took), "snapshot-ms")
	b.ReportMetric(float64(size)/1e6, "MB")
}

// BenchmarkRestart closes a member of three with 100,000 jobs that does not lead and starts it again,
// from the log alone and from a snapshot: open-s until raft runs, sync-s until it has what the leader
// has. load-s is what a leader needs to load the facts.
func BenchmarkRestart(b *testing.B) {
	for _, from := range []string{"log", "snapshot"} {
		b.Run(from, func(b *testing.B) {
			s := newBenchSite(b, 3)
			lead := s.lead()
			facts := load(b, lead)
			fill(b, lead, facts, 100_000)
			other := s.peers[0]
			if other == lead.m.cfg.Peer {
				other = s.peers[1]
			}
			if from == "snapshot" {
				caughtUp(b, s.members[other.Name], lead)
				if err := s.members[other.Name].Snapshot(); err != nil {
					b.Fatal(err)
				}
			}
			var opened, synced, loaded time.Duration
			for b.Loop() {
				if err := s.members[other.Name].Close(); err != nil {
					b.Fatal(err)
				}
				fill(b, lead, facts, 100)
				begin := time.Now()
				m := s.open(other)
				opened = time.Since(begin)
				caughtUp(b, m, lead)
				synced = time.Since(begin)
				begin = time.Now()
				if n := load(b, lead).JobCount(); n < 100_000 {
					b.Fatalf("%d jobs", n)
				}
				loaded = time.Since(begin)
			}
			b.ReportMetric(opened.Seconds(), "open-s")
			b.ReportMetric(synced.Seconds(), "sync-s")
			b.ReportMetric(loaded.Seconds(), "load-s")
		})
	}
}
