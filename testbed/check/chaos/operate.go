package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/check/wan"
)

// Faults that are what operators, users and jobs do to a site: nothing fails, and
// still nothing may be lost, run twice or stand still.

// drainSite drains a site and resumes it.
func (in *injector) drainSite(ctx context.Context, f *Fault, s *site) string {
	err := retry(ctx, func(ctx context.Context) error {
		_, err := s.Sites.DrainSite(ctx, &kithv1.DrainSiteRequest{Reason: "chaos"})
		return err
	})
	if err != nil {
		return err.Error()
	}
	pause.For(ctx, f.For)
	in.resume(context.WithoutCancel(ctx), s)
	return ""
}

// resume resumes a site, whether or not it drains.
func (in *injector) resume(ctx context.Context, s *site) {
	ctx, cancel := context.WithTimeout(ctx, 2*longest)
	defer cancel()
	err := retry(ctx, func(ctx context.Context) error {
		_, err := s.Sites.ResumeSite(ctx, &kithv1.ResumeSiteRequest{})
		return err
	})
	if err != nil {
		in.logs.problem("site %s does not resume: %v", s.Name, err)
	}
}

// forget cuts a site off from another one, which gives it up, and heals the link: it comes back
// with what it held.
func (in *injector) forget(ctx context.Context, f *Fault, s, other *site) (target, missed string) {
	target = s.Name + " gives up " + other.Name
	scope, from := wan.Between(s.Name, other.Name), time.Now()
	if err := in.net.Cut(scope, wan.Reset); err != nil {
		return target, err.Error()
	}
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var err error
	for { // it is refused until the site has noticed that the stream is gone
		err = retry(limited, func(ctx context.Context) error {
			_, err := s.Sites.ForgetSite(ctx, &kithv1.ForgetSiteRequest{SiteId: other.Name})
			return err
		})
		if status.Code(err) != codes.FailedPrecondition || !pause.For(limited, retryPause) {
			break
		}
	}
	if err == nil {
		pause.For(ctx, f.For)
	}
	missed = in.heal(scope)
	// An answer that did not come may have been yes.
	in.mu.Lock()
	in.severed = append(in.severed, severed{window{from, time.Now().Add(antiEntropy)}, s.Name, other.Name, true})
	in.mu.Unlock()
	if err != nil {
		return target, err.Error()
	}
	return target, missed
}

// mostHeld bounds the jobs that one fault holds.
const mostHeld = 30

// holdJobs holds some waiting jobs of a site and releases them.
func (in *injector) holdJobs(ctx context.Context, f *Fault, s *site) (target, missed string) {
	jobs, _, err := listJobs(ctx, s, false)
	if err != nil {
		return s.Name, err.Error()
	}
	rng := rand.New(rand.NewPCG(f.Pick, 4))
	var held []string
	for _, j := range jobs {
		waits := j.GetStatus().GetState() == kithv1.JobStatus_STATE_QUEUED || j.GetStatus().GetState() == kithv1.JobStatus_STATE_PENDING
		if !waits || rng.IntN(2) == 0 || len(held) == mostHeld {
			continue
		}
		_, err := s.Jobs.HoldJob(ctx, &kithv1.HoldJobRequest{JobId: j.GetId()})
		if code := status.Code(err); code != codes.FailedPrecondition && code != codes.NotFound {
			held = append(held, j.GetId()) // an answer that did not come may have been yes
		} // else it has started or ended meanwhile
	}
	target = fmt.Sprintf("%d jobs of %s", len(held), s.Name)
	if len(held) == 0 {
		return target, "none waits there"
	}
	pause.For(ctx, f.For)
	after := context.WithoutCancel(ctx)
	for _, id := range held {
		limited, cancel := context.WithTimeout(after, 2*longest)
		retry(limited, func(ctx context.Context) error { //nolint:errcheck // its user may have cancelled it; one that is held for good is seen at the end
			_, err := s.Jobs.ReleaseJob(ctx, &kithv1.ReleaseJobRequest{JobId: id})
			return err
		})
		cancel()
	}
	return target, ""
}

// reconfigure restarts a site with fewer processors, another K and limits that are
// soon met, and later as it was.
func (in *injector) reconfigure(ctx context.Context, f *Fault, s *site) (target, missed string) {
	was := s.Config
	rng := rand.New(rand.NewPCG(f.Pick, 5))
	s.Stop()
	c := &s.Config
	c.Scheduler.Processors = max(1, was.Scheduler.Processors-1-rng.Int32N(was.Scheduler.Processors))
	c.Placement.Copies = 1 + rng.Int32N(4)
	c.Limits.CopiesPerOrigin, c.Limits.Copies = 1+rng.IntN(5), 2+rng.IntN(6)
	target = fmt.Sprintf("%s with %d processors, K=%d, %d copies of an origin and %d in all", s.Name,
		c.Scheduler.Processors, c.Placement.Copies, c.Limits.CopiesPerOrigin, c.Limits.Copies)
	from := time.Now()
	in.up(context.WithoutCancel(ctx), s)
	in.idled(s, from)
	pause.For(ctx, f.For)
	from = time.Now()
	s.Stop()
	address := s.Config.Listen.Address
	s.Config = was
	s.Config.Listen.Address = address
	in.up(context.WithoutCancel(ctx), s)
	in.idled(s, from)
	return target, ""
}

// takeFiles leaves a daemon next to no descriptors.
func (in *injector) takeFiles(ctx context.Context, f *Fault, s *site) string {
	pid := s.PID()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return err.Error()
	}
	var was unix.Rlimit
	few := unix.Rlimit{Cur: uint64(len(open)) + f.Pick%8, Max: 0}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		return err.Error()
	}
	few.Max = was.Max
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		return err.Error()
	}
	pause.For(ctx, f.For)
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &was, nil); err != nil && !errors.Is(err, unix.ESRCH) { // it was ended meanwhile
		return err.Error()
	}
	return ""
}

// hangDisk makes the disk of a site hang. Its daemon is not at work meanwhile, but for
// what needs no disk.
func (in *injector) hangDisk(ctx context.Context, f *Fault, s *site) string {
	if s.hanging == nil {
		return "it has no disk that can hang"
	}
	from := time.Now()
	if err := s.hanging.hang(); err != nil {
		return err.Error()
	}
	pause.For(ctx, f.For)
	if err := s.hanging.release(); err != nil {
		in.logs.problem("the disk of site %s hangs for good: %v", s.Name, err)
	}
	in.idled(s, from)
	return ""
}

// hideShim takes the program of the shims away from all sites that share it, as an
// upgrade by hand does for a moment.
func (in *injector) hideShim(ctx context.Context, f *Fault) (target, missed string) {
	path := filepath.Join(filepath.Dir(in.shimBeside), shimProgram)
	away := path + ".away"
	if err := os.Rename(path, away); err != nil {
		return path, err.Error()
	}
	pause.For(ctx, f.For)
	if err := os.Rename(away, path); err != nil {
		in.logs.problem("%s does not come back: %v", path, err)
	}
	return path, ""
}

// hog fills the disk of a site with a job, which is cancelled after a while. That
// must succeed, and make room, without anybody else's doing.
func (in *injector) hog(ctx context.Context, f *Fault, s *site) string {
	if s.disk == nil {
		return "it has no disk of its own"
	}
	from := time.Now()
	most := diskBytes(in.opt.Duration) >> 20
	var id string
	err := retry(ctx, func(ctx context.Context) error {
		r, err := s.Jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{RequestId: fmt.Sprintf("hog-%d", f.Pick), Job: &kithv1.Job{
			Name: fmt.Sprintf("hog-%d", f.Pick), Processors: 1, Copies: 1, Walltime: durationpb.New(time.Hour),
			Command: []string{"/bin/sh", "-c", fmt.Sprintf("head -c %dM /dev/zero >fill; exec sleep 3600", most)},
		}})
		id = r.GetJobId()
		return err
	})
	if err != nil {
		return err.Error()
	}
	pause.For(ctx, f.For)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*longest)
	defer cancel()
	err = retry(after, func(ctx context.Context) error {
		_, err := s.Jobs.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: id})
		return err
	})
	for err == nil {
		j, e := getJob(after, s, id)
		if e == nil && ended(j) {
			break
		}
		if !pause.For(after, retryPause) {
			err = fmt.Errorf("it is %v a minute after its cancellation: %s", j.GetStatus().GetState(), j.GetStatus().GetReason())
		}
	}
	if err != nil {
		in.logs.problem("site %s: the job %s that fills its disk cannot be cancelled: %v", s.Name, id, err)
	}
	in.mu.Lock()
	in.full = append(in.full, window{from, time.Now()})
	in.mu.Unlock()
	return ""
}
