package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// How often the leader of a site of three is killed, and paused.
const (
	leaderKills  = 5
	leaderPauses = 3
)

// leastForSnapshots is how many jobs must be queued for snapshots to be looked at: until one is made, 8,192 entries
// are written, which takes minutes on a busy machine.
const leastForSnapshots = 10_000

// members measures a site that three machines keep: what clients notice of a new leader, how fast it takes jobs
// and grants claims, and with a long queue what a snapshot holds up and how long a machine takes to come back.
func (b *bench) members(ctx context.Context) error {
	if b.insecure {
		return errors.New("machines of one site prove themselves with keys: leave --insecure-loopback out")
	}
	b.observe("members: claims")
	if err := b.membersClaims(ctx); err != nil {
		return err
	}
	f, stop, err := b.federation(ctx, nil)
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // what was measured counts
	m, err := f.StartMembers(ctx, "alpha", func(c *config.Config) {
		withRoomFor(c, b.opt.Queued)
		c.Scheduler.Processors = 2
	})
	if err != nil {
		return err
	}
	defer m.Close() //nolint:errcheck // likewise
	blocker, err := blocked(ctx, m)
	if err != nil {
		return err
	}
	defer cancelAt(ctx, m, blocker)
	b.observe("members: new leaders")
	if err := b.failovers(ctx, m); err != nil {
		return err
	}
	leader, err := m.Leader(ctx)
	if err != nil {
		return err
	}
	b.observe("members: submissions")
	began := time.Now()
	if err := fill(ctx, leader, b.opt.Queued, 1); err != nil {
		return err
	}
	b.addTarget(fmt.Sprintf("submissions answered by a site of three, %d in flight, %d jobs", fillers, b.opt.Queued), float64(b.opt.Queued)/time.Since(began).Seconds(), "jobs/s", 1000, false)
	if b.opt.Queued >= leastForSnapshots {
		b.observe("members: snapshots")
		if err := b.snapshots(ctx, m); err != nil {
			return err
		}
	}
	b.observe("members: machines that come back")
	return b.comebacks(ctx, m)
}

// blocked has a job take the processors of a site of three, once its machine for that answers.
func blocked(ctx context.Context, m *local.Members) (id string, err error) {
	leader, err := m.Leader(ctx)
	if err != nil {
		return "", err
	}
	for until := time.Now().Add(time.Minute); ; {
		if id, err = block(ctx, leader); err == nil || time.Now().After(until) || !pause.For(ctx, 50*time.Millisecond) {
			return id, err
		}
	}
}

// cancelAt ends a job that would outlive its site.
func cancelAt(ctx context.Context, m *local.Members, id string) {
	if leader, err := m.Leader(ctx); err == nil {
		leader.Jobs.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: id}) //nolint:errcheck // it ends with its walltime
		for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
			if r, err := leader.Jobs.GetJob(ctx, &kithv1.GetJobRequest{JobId: id}); err == nil && r.GetJob().GetStatus().GetState() >= kithv1.JobStatus_STATE_COMPLETED {
				return
			}
		}
	}
}

// membersClaims is what claims measures, of an origin that three machines keep.
func (b *bench) membersClaims(ctx context.Context) error {
	f, stop, err := b.federation(ctx, []local.Site{{Name: "hosta"}, {Name: "hostb"}})
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // what was measured counts
	m, err := f.StartMembers(ctx, "origin", func(c *config.Config) { withRoomFor(c, b.opt.Claims) })
	if err != nil {
		return err
	}
	defer m.Close() //nolint:errcheck // likewise
	leader, err := m.Leader(ctx)
	if err != nil {
		return err
	}
	rate, err := b.claimed(ctx, leader, f.Nodes())
	if err != nil {
		return err
	}
	b.addTarget(fmt.Sprintf("claims granted durably by an origin of three machines, %d in flight", b.opt.InFlight), rate, "claims/s", 2000, false)
	return nil
}

// failovers kills and pauses the machine that leads, and takes the time until a submission at another one is answered.
func (b *bench) failovers(ctx context.Context, m *local.Members) error {
	for _, how := range []struct {
		what  string
		times int
		down  syscall.Signal
	}{{"killed", leaderKills, syscall.SIGKILL}, {"paused", leaderPauses, syscall.SIGSTOP}} {
		var gaps []time.Duration
		for i := range how.times {
			gap, err := failover(ctx, m, how.down, fmt.Sprintf("%s-%d", how.what, i))
			if err != nil {
				return err
			}
			gaps = append(gaps, gap)
		}
		slices.Sort(gaps)
		b.add(fmt.Sprintf("leader %s to the answer to a submission, median of %d", how.what, how.times), median(gaps).Seconds(), "s")
		b.addTarget("the longest of them", gaps[len(gaps)-1].Seconds(), "s", 3, true)
	}
	return nil
}

func failover(ctx context.Context, m *local.Members, down syscall.Signal, name string) (time.Duration, error) {
	leader, err := m.Leader(ctx)
	if err != nil {
		return 0, err
	}
	var by *local.Node
	for _, n := range m.Nodes {
		if n != leader {
			by = n
		}
	}
	if err := insist(ctx, by, name+"-before"); err != nil { // its way to the leader is there
		return 0, err
	}
	began := time.Now()
	if err := leader.Signal(down); err != nil {
		return 0, err
	}
	if err := insist(ctx, by, name); err != nil {
		return 0, err
	}
	gap := time.Since(began)
	if down == syscall.SIGSTOP {
		return gap, leader.Signal(syscall.SIGCONT)
	}
	leader.Kill()
	return gap, leader.Start(ctx)
}

// insist submits a job until that is answered, under one name, as a client does.
func insist(ctx context.Context, n *local.Node, name string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r := &kithv1.SubmitJobRequest{RequestId: name, Job: &kithv1.Job{
		Name: name, Command: []string{"/bin/true"}, Processors: 1, Walltime: durationpb.New(time.Minute),
	}}
	for {
		one, done := context.WithTimeout(ctx, 5*time.Second)
		_, err := n.Jobs.SubmitJob(one, r)
		done()
		switch status.Code(err) {
		case codes.OK:
			return nil
		case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Canceled, codes.Aborted:
		default:
			return err
		}
		if !pause.For(ctx, 10*time.Millisecond) {
			return fmt.Errorf("job %s is not taken: %w", name, err)
		}
	}
}

// mostEntries is after how many submissions of each of four clients a snapshot must have been made: one is
// made after 8,192 entries of the log.
const mostEntries = 20_000

// snapshots submits until the leader makes a snapshot of its facts, and compares how long
// questions to its engine take meanwhile and otherwise.
func (b *bench) snapshots(ctx context.Context, m *local.Members) error {
	leader, err := m.Leader(ctx)
	if err != nil {
		return err
	}
	folder := filepath.Join(leader.Config.Data, config.MembersFolder, "snapshots")
	var mu sync.Mutex
	var with, without []time.Duration
	asking, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for pause.For(asking, 2*time.Millisecond) {
			before, began := beingWritten(folder), time.Now()
			_, err := leader.Sites.GetSite(asking, &kithv1.GetSiteRequest{})
			took := time.Since(began)
			if err != nil {
				continue
			}
			mu.Lock()
			if before || beingWritten(folder) {
				with = append(with, took)
			} else {
				without = append(without, took)
			}
			mu.Unlock()
		}
	})
	seen := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(with)
	}
	errs := make([]error, 4)
	var submitters sync.WaitGroup
	for i := range errs {
		submitters.Go(func() {
			for k := 0; errs[i] == nil && ctx.Err() == nil && (seen() < 20 || beingWritten(folder)); k++ {
				if k > mostEntries {
					errs[i] = errors.New("no snapshot is made")
					return
				}
				errs[i] = insist(ctx, leader, fmt.Sprintf("snapshot-%d-%d", i, k))
			}
		})
	}
	submitters.Wait()
	cancel()
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	slices.Sort(with)
	slices.Sort(without)
	b.addTarget(fmt.Sprintf("longest answer to a question while a snapshot of %d jobs is written, of %d", b.opt.Queued, len(with)), milliseconds(with[len(with)-1]), "ms", 50, true)
	if len(without) > 0 {
		b.add(fmt.Sprintf("the same without a snapshot, 99 of 100; the longest of %d is %.0f ms", len(without), milliseconds(without[len(without)-1])), milliseconds(quantile(without, 0.99)), "ms")
	}
	return nil
}

// beingWritten reports whether there is a snapshot in a folder of them that is not whole yet.
func beingWritten(folder string) bool {
	entries, err := os.ReadDir(folder)
	return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".tmp") })
}

// comebacks takes the time until a machine that was away has what the others have: one that starts again, and one
// with an empty disk.
func (b *bench) comebacks(ctx context.Context, m *local.Members) error {
	leader, err := m.Leader(ctx)
	if err != nil {
		return err
	}
	var others []*local.Node
	for _, n := range m.Nodes {
		if n != leader {
			others = append(others, n)
		}
	}
	back, third := others[0], others[1]
	back.Kill()
	for i := range 100 {
		if err := insist(ctx, leader, fmt.Sprintf("meanwhile-%d", i)); err != nil {
			return err
		}
	}
	// Without the third machine nothing stands but what the one that comes back has, too.
	third.Kill()
	began := time.Now()
	if err := back.Start(ctx); err != nil {
		return err
	}
	opened := time.Since(began)
	if err := insist(ctx, back, "together"); err != nil {
		return err
	}
	b.addTarget(fmt.Sprintf("a machine with %d jobs starts again → a submission that stands with it and one more alone", b.opt.Queued), time.Since(began).Seconds(), "s", 10, true)
	b.add("of which until it takes connections", opened.Seconds(), "s")
	if err := third.Start(ctx); err != nil {
		return err
	}
	if leader, err = m.Leader(ctx); err != nil {
		return err
	}
	if third == leader {
		third = back
	}
	third.Kill()
	if err := m.Remove(ctx, third); err != nil {
		return err
	}
	if err := third.Empty(); err != nil {
		return err
	}
	began = time.Now()
	if err := third.Start(ctx); err != nil {
		return err
	}
	if err := m.Add(ctx, third); err != nil {
		return err
	}
	b.addTarget("a machine with an empty disk starts → it has all that the others have", time.Since(began).Seconds(), "s", 10, true)
	return nil
}
