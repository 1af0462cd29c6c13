package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kith/cmd/kithd/config"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched"
	"kith/sitesched/batch"
	"kith/sitesched/work"
)

// passes is what a scheduler proposed; a test can hold a pass until it says so.
type passes struct {
	mu       sync.Mutex
	proposed map[string]bool // jobs
	hold     chan struct{}   // nil unless a pass that proposes something is to wait
}

func (p *passes) passed(ids []job.AttemptID) []job.AttemptID {
	if len(ids) == 0 {
		return nil
	}
	p.mu.Lock()
	for _, id := range ids {
		p.proposed[id.Job.String()] = true
	}
	hold := p.hold
	p.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return ids
}

func (p *passes) has(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proposed[id]
}

// stop holds passes until the function it returns is called, which may be twice.
func (p *passes) stop() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	hold := make(chan struct{})
	p.hold = hold
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.hold = nil
		close(hold)
	})
}

type watchedSite struct {
	meta.Site
	*passes
}

func (s watchedSite) Pass(now job.Time) []job.AttemptID { return s.passed(s.Site.Pass(now)) }

type watchedBatch struct {
	meta.Batch
	*passes
}

func (s watchedBatch) Pass(now job.Time) []job.AttemptID { return s.passed(s.Batch.Pass(now)) }

// toyTest is alpha, a site of Kith's own, and beta, whose jobs a toy batch system
// queues and runs.
type toyTest struct {
	t      *testing.T
	a, b   *testSite
	dir    string // of the toy
	home   *passes
	away   *passes
	ledger ledger
}

func newToyTest(t *testing.T) *toyTest {
	t.Helper()
	x := &toyTest{
		t: t, dir: startToy(t), ledger: newLedger(t),
		home: &passes{proposed: make(map[string]bool)}, away: &passes{proposed: make(map[string]bool)},
	}
	own := func(cfg config.Config, log *slog.Logger) Host {
		h := ownHost(cfg, log)
		h.Site = func() (meta.Site, error) {
			s, err := sitesched.New(cfg.SchedulerConfig())
			return watchedSite{s, x.home}, err
		}
		return h
	}
	toys := func(cfg config.Config, _ *slog.Logger) Host {
		return Host{
			Site:   func() (meta.Site, error) { return watchedBatch{batch.New(cfg.Scheduler.Processors), x.away}, nil },
			System: func(report func(work.Event)) (work.System, error) { return openToy(t, x.dir, report), nil },
		}
	}
	sites := federationOn(t, func(c *config.Config) {
		// A machine so slow that a claim runs out loses seconds, not the test.
		c.Timing.Retry, c.Timing.Backoff = 200*time.Millisecond, 500*time.Millisecond
		if c.Site == "beta" {
			c.Scheduler.Processors = 8
		}
	}, map[string]func(config.Config, *slog.Logger) Host{"alpha": own, "beta": toys}, "alpha", "beta")
	x.a, x.b = sites[0], sites[1]
	return x
}

// sign submits a job that signs; alpha is not wide enough for three processors.
func (x *toyTest) sign(at *testSite, text string, processors int32) string {
	x.t.Helper()
	j := x.ledger.signed(text)
	j.Processors = processors
	j.Inputs = []*kithv1.InputFile{{Path: "in", Content: &kithv1.InputFile_Data{Data: []byte(strings.Repeat("data ", 20000))}}}
	return at.submit(j)
}

// pause has the batch system start nothing until the function it returns is called.
func (x *toyTest) pause() (resume func()) {
	path := filepath.Join(x.dir, "pause")
	toyWrite(x.t, path, "")
	return func() {
		if err := os.Remove(path); err != nil {
			x.t.Error(err)
		}
	}
}

// entry returns the entry of a job in the toy's queue, "" if there is none.
func (x *toyTest) entry(id string) string {
	queue := toyQueue(x.dir)
	if i := slices.IndexFunc(queue, func(name string) bool { return strings.HasPrefix(name, id+"_") }); i >= 0 {
		return queue[i]
	}
	return ""
}

func (x *toyTest) queued(ids ...string) {
	x.t.Helper()
	for _, id := range ids {
		x.b.eventually(id+" stands in the queue", func() bool { return x.entry(id) != "" })
	}
}

func (x *toyTest) gone(ids ...string) {
	x.t.Helper()
	for _, id := range ids {
		x.b.eventually(id+" has left the queue", func() bool { return x.entry(id) == "" })
	}
}

// called waits until the turn of a job has come, and returns the process that
// waits for a word.
func (x *toyTest) called(id string) (pid int) {
	x.t.Helper()
	x.b.eventually("the turn of "+id, func() bool { return toyThere(x.dir, "entries", x.entry(id), "called") })
	n, _ := toyNumber(filepath.Join(x.dir, "entries", x.entry(id), "pid"))
	return int(n)
}

func (x *toyTest) dead(pid int) {
	x.t.Helper()
	x.b.eventually(fmt.Sprint("process ", pid, " has gone"), func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
}

func (x *toyTest) cancel(id string) {
	x.t.Helper()
	if _, err := x.a.jobs.CancelJob(x.a.ctx(), &kithv1.CancelJobRequest{JobId: id}); err != nil {
		x.t.Error(err)
	}
	x.a.waitState(id, kithv1.JobStatus_STATE_CANCELLED)
}

func (x *toyTest) denied() int64 {
	x.t.Helper()
	r, err := x.a.sites.GetSite(x.a.ctx(), &kithv1.GetSiteRequest{})
	if err != nil {
		x.t.Fatal(err)
	}
	return r.GetCounters().GetClaimsDenied()
}

// compete has both sites propose the start of one job at a time. Alpha's own
// scheduler has it first, so that the claim of beta, which is on its way, is denied.
func (x *toyTest) compete() (first, second string) {
	x.t.Helper()
	resume := x.pause()
	wait, open := barrier(x.t)
	first = x.sign(x.a, wait, 2)
	x.a.waitState(first, kithv1.JobStatus_STATE_RUNNING)
	second = x.sign(x.a, "true", 2)
	x.queued(second)
	release := x.home.stop()
	defer release()
	open()
	x.b.eventually("alpha proposes "+second, func() bool { return x.home.has(second) })
	resume()
	pid := x.called(second)
	x.b.eventually("beta proposes "+second, func() bool { return x.away.has(second) })
	release()
	x.a.waitState(first, completed)
	if host := x.a.waitState(second, completed).GetStatus().GetHostSiteId(); host != "alpha" {
		x.t.Errorf("%s ran at %s", second, host)
	}
	x.gone(first, second)
	x.dead(pid)
	if began, err := filepath.Glob(filepath.Join(x.dir, second+"_*")); err != nil || len(began) > 0 {
		x.t.Errorf("what was denied has begun at beta: %v, %v", began, err)
	}
	return first, second
}

// A batch system that Kith does not own satisfies both interfaces: its queue is
// filled and emptied by effects, and each job runs once, though its copies compete
// with those at another site.
func TestToyBatchSystem(t *testing.T) {
	t.Parallel()
	x := newToyTest(t)
	var ran []string
	for n := range 4 { // only beta is wide enough
		ran = append(ran, x.sign(x.a, fmt.Sprintf("wc -c <in; exit %d", n%2), 3))
	}
	for range 8 { // a copy at each
		ran = append(ran, x.sign(x.a, "true", 2))
	}
	for n, id := range ran {
		want := completed
		if n < 4 && n%2 == 1 {
			want = failed
		}
		x.a.waitState(id, want)
	}
	if got := strings.TrimSpace(x.a.output(ran[0], "stdout")); got != "100000" {
		t.Errorf("it read %q bytes", got)
	}
	x.gone(ran...)

	for round := 0; x.denied() == 0; round++ {
		if round == 10 {
			t.Fatal("no claim was denied")
		}
		first, second := x.compete()
		ran = append(ran, first, second)
	}

	resume := x.pause()
	unwanted := x.sign(x.a, "true", 3)
	x.queued(unwanted)
	x.cancel(unwanted)
	x.gone(unwanted)

	mine, other := x.sign(x.b, "true", 3), x.sign(x.a, "true", 3)
	x.queued(mine, other)
	if _, err := x.b.sites.DrainSite(x.b.ctx(), &kithv1.DrainSiteRequest{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	x.gone(mine, other)
	if _, err := x.b.sites.ResumeSite(x.b.ctx(), &kithv1.ResumeSiteRequest{}); err != nil {
		t.Fatal(err)
	}
	x.queued(mine)
	resume()
	x.b.waitState(mine, completed)
	x.a.waitState(other, completed)
	ran = append(ran, mine, other)

	ran = append(ran, x.restart()...)
	x.ledger.expect(ran...)
}

// restart restarts beta while jobs run and wait in the batch system, while an entry
// of an earlier life stands there, and after a job was cancelled of which it has
// not heard. It returns the jobs that have run.
func (x *toyTest) restart() (ran []string) {
	x.t.Helper()
	wait, open := barrier(x.t)
	running, endless := x.sign(x.a, "echo before; "+wait, 3), x.sign(x.a, "exec sleep 600", 3)
	for _, id := range []string{running, endless} {
		x.a.waitState(id, kithv1.JobStatus_STATE_RUNNING)
	}
	resume := x.pause()
	waiting, unwanted := x.sign(x.a, "true", 3), x.sign(x.a, "true", 3)
	x.queued(waiting, unwanted)
	d := x.b.d
	x.b.d = nil
	if err := d.Close(); err != nil {
		x.t.Fatal(err)
	}
	x.cancel(unwanted)
	const stray, waitingStray = "alpha.77.1", "alpha.77.2"
	old := &toy{t: x.t, dir: x.dir}
	var names []string
	for _, id := range []string{stray, waitingStray} {
		a, err := job.ParseAttemptID(id + "#1")
		if err != nil {
			x.t.Fatal(err)
		}
		names = append(names, old.submit(a))
	}
	queue := func(more string) {
		toyWrite(x.t, filepath.Join(x.dir, "queue"), strings.Join(append(toyQueue(x.dir), more, ""), "\n"))
	}
	queue(names[0])
	resume()
	pids := []int{x.called(stray), x.called(unwanted), x.called(waiting)}
	resume = x.pause()
	queue(names[1])
	x.b.open()
	x.gone(stray, waitingStray, unwanted)
	// What called before alpha was in reach has left, and its copy queues anew.
	resume()
	x.a.waitState(waiting, completed)
	open()
	x.a.waitState(running, completed)
	x.cancel(endless)
	x.gone(waiting, running, endless)
	for _, pid := range pids {
		x.dead(pid)
	}
	return []string{running, endless, waiting}
}
