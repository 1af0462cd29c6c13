package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/local"
)

// moving is a job that is moved from site to site. Each attempt writes when it began and when it may
// be asked; asked, it says when it began to save and when it was about to be done. %d is the size of what it saves in bytes, which
// its first attempt makes up; no later one changes it.
const moving = `cd "$KITH_CHECKPOINT_DIR" || exit 9
date +%%s.%%N
n=${KITH_CHECKPOINT_SEQUENCE:-0}
[ -e state ] || head -c %d /dev/urandom >state
save() { date +%%s.%%N; echo $((n + 1)) >DONE.new; date +%%s.%%N; mv DONE.new DONE; exit 85; }
trap save USR1
date +%%s.%%N
sleep 1000 &
wait`

// largeMoves is how often the large checkpoint is moved: the first two times its chunks travel to both
// hosts.
const largeMoves = 4

// checkpoint measures how long a job that is asked to save and go on stands still, and what of a
// checkpoint that did not change travels again. It goes to and fro between two sites, as a job of
// where it was has its processors at once.
func (b *bench) checkpoint(ctx context.Context) error {
	host := func(c *config.Config) {
		c.Scheduler.Processors, c.Placement.Scheme = 2, meta.Independent // its own jobs stay there
	}
	f, stop, err := b.federation(ctx, []local.Site{{Name: "alpha", Tune: func(c *config.Config) { c.Scheduler.Processors = 1 }}, {Name: "beta", Tune: host}, {Name: "gamma", Tune: host}})
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // what was measured counts
	small, err := b.moved(ctx, f, 1<<20, b.opt.Moves)
	if err != nil {
		return err
	}
	still := make([]time.Duration, len(small))
	for i := range small {
		still[i] = small[i].still
	}
	slices.Sort(still)
	b.addTarget("asked to its next attempt running elsewhere, without the job's own time, 1 MiB, median", milliseconds(median(still)), "ms", 100, true)
	b.add("90 of 100", milliseconds(quantile(still, 0.9)), "ms")
	size := int64(b.opt.LargeMiB) << 20
	large, err := b.moved(ctx, f, size, largeMoves)
	if err != nil {
		return err
	}
	first, last := large[0], large[len(large)-1]
	b.add(fmt.Sprintf("the same, %d MiB, the first time", b.opt.LargeMiB), milliseconds(first.still), "ms")
	b.add(fmt.Sprintf("the same, %d MiB that did not change, the last time", b.opt.LargeMiB), milliseconds(last.still), "ms")
	if first.wire > 0 { // loopback is counted here
		b.add("bytes over loopback, the first time, as a part of the checkpoint", 100*float64(first.wire)/float64(size), "%")
		b.addTarget("bytes over loopback, when it did not change, as a part of the checkpoint", 100*float64(last.wire)/float64(size), "%", 1, true)
	}
	return nil
}

// move is what one move of a job took: for how long the job stood still beside its own time, and how
// many bytes went over loopback, 0 if the system does not count them.
type move struct {
	still time.Duration
	wire  int64
}

// moved has a job of two processors go to and fro.
func (b *bench) moved(ctx context.Context, f *local.Federation, size int64, times int) ([]move, error) {
	alpha := f.Nodes()[0]
	r, err := alpha.Jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{Job: &kithv1.Job{
		Name: "moving", Command: []string{"/bin/sh", "-c", fmt.Sprintf(moving, size)}, Processors: 2, Tasks: 1, Walltime: durationpb.New(time.Hour),
		Checkpoint: &kithv1.Checkpoint{Paths: []string{"state"}},
	}})
	if err != nil {
		return nil, err
	}
	id := r.GetJobId()
	var list []move
	for n := int32(1); n <= int32(times); n++ {
		m, err := b.moveOnce(ctx, f, id, n)
		if err != nil {
			return nil, fmt.Errorf("job %s, attempt %d: %w", id, n, err)
		}
		list = append(list, m)
	}
	_, err = alpha.Jobs.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: id})
	return list, err
}

// moveOnce asks the n-th attempt of a job to save, with a job in line at its host that takes its
// processors, and waits for the next one.
func (b *bench) moveOnce(ctx context.Context, f *local.Federation, id string, n int32) (move, error) {
	alpha := f.Nodes()[0]
	host, err := running(ctx, alpha, id, n)
	if err != nil {
		return move{}, err
	}
	i := slices.IndexFunc(f.Nodes(), func(x *local.Node) bool { return x.Name == host })
	there := f.Nodes()[i]
	next, err := there.Jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{Job: &kithv1.Job{
		Name: "next", Command: []string{"/bin/sleep", "1000"}, Processors: 2, Tasks: 1, Walltime: durationpb.New(time.Hour), Copies: 1,
	}})
	if err != nil {
		return move{}, err
	}
	before := loopback()
	asked := time.Now()
	if _, err := alpha.Jobs.CheckpointJob(ctx, &kithv1.CheckpointJobRequest{JobId: id}); err != nil {
		return move{}, err
	}
	to, err := running(ctx, alpha, id, n+1)
	if err != nil {
		return move{}, err
	}
	wire := loopback() - before
	if to == host {
		return move{}, fmt.Errorf("it went on at %s, where it had been", host)
	}
	times, err := said(ctx, alpha, id, n, 4)
	if err != nil {
		return move{}, err
	}
	again, err := said(ctx, alpha, id, n+1, 1)
	if err != nil {
		return move{}, err
	}
	_, err = there.Jobs.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: next.GetJobId()})
	return move{still: again[0].Sub(asked) - times[3].Sub(times[2]), wire: wire}, err
}

// running waits until the n-th attempt of a job runs and has said so, and returns its host.
func running(ctx context.Context, at *local.Node, id string, n int32) (host string, err error) {
	for {
		r, err := at.Jobs.GetJob(ctx, &kithv1.GetJobRequest{JobId: id})
		if err != nil {
			return "", err
		}
		s := r.GetJob().GetStatus()
		if s.GetState() >= kithv1.JobStatus_STATE_COMPLETED && s.GetState() != kithv1.JobStatus_STATE_BLOCKED {
			return "", fmt.Errorf("it is %v: %s", s.GetState(), s.GetReason())
		}
		if s.GetAttempt() == n && s.GetState() == kithv1.JobStatus_STATE_RUNNING {
			if _, err := said(ctx, at, id, n, 2); err == nil {
				return s.GetHostSiteId(), nil
			}
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

var errUnsaid = errors.New("it has not said all of it yet")

// said returns the times that an attempt of a job wrote, which are to be at least most.
func said(ctx context.Context, at *local.Node, id string, attempt int32, least int) ([]time.Time, error) {
	stream, err := at.Jobs.GetJobOutput(ctx, &kithv1.GetJobOutputRequest{JobId: id, Path: "stdout", Attempt: attempt})
	if err != nil {
		return nil, err
	}
	text, err := gather(stream, (*kithv1.GetJobOutputResponse).GetData)
	if err != nil {
		return nil, err
	}
	var times []time.Time
	for _, line := range strings.Fields(text) {
		t, err := parseDate(line)
		if err != nil {
			return nil, err
		}
		times = append(times, t)
	}
	if len(times) < least {
		return nil, errUnsaid
	}
	return times, nil
}

// loopback returns how many bytes went over the loopback of this machine since it began, whoever
// sent them; 0 if the system does not say.
func loopback() int64 {
	b, err := os.ReadFile("/proc/net/dev")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if name, rest, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "lo" {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}
