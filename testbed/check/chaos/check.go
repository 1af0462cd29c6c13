package chaos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// checker compares what is known of a run: the users' notes, what the origins
// say at the end, the ledger, and what was done to the sites.
type checker struct {
	result *Result
	ledger *ledger
	secret string // sum of the file that no job may bring home
	// shims that were killed, by number; lost attempts with their shims.
	killed map[int]bool
	lost   map[string]int
	// unguarded jobs had for a moment nothing that could have ended them with
	// their lease.
	unguarded map[job.ID]bool
	// diskSite had a full disk at times.
	diskSite string
	full     []window
	// severed is when sites did not trust each other.
	severed []severed
	// apart is the site whose jobs run at a machine of their own, silent when that was away for
	// longer than the site waits for it.
	apart  string
	silent []window
	// signed reads what a job that counts has signed.
	signed func(id string) (io.ReadCloser, error)
}

func (c *checker) problem(count *int, format string, args ...any) {
	*count++
	if len(c.result.Problems) < maxProblems {
		c.result.Problems = append(c.result.Problems, fmt.Sprintf(format, args...))
	}
}

// check looks at one job. now is what its origin says at the end, nil if it
// does not know it. content reads an output.
func (c *checker) check(j *submitted, now *kithv1.Job, content func(path string) (string, error)) {
	r := c.result
	if j.id == "" {
		if j.refused {
			r.Jobs.Refused++
		} else {
			c.problem(&r.OtherProblems, "submission %s was never answered", j.request)
		}
		return
	}
	r.Jobs.Acknowledged++
	id, err := job.ParseID(j.id)
	switch {
	case err != nil:
		c.problem(&r.OtherProblems, "submission %s: %v", j.request, err)
		return
	case j.lost != "" || now == nil:
		c.problem(&r.LostJobs, "job %s: %s", j.id, j.lost)
	case !ended(now):
		c.problem(&r.LostJobs, "job %s has not ended: %v, %s", j.id, now.GetStatus().GetState(), now.GetStatus().GetReason())
	case j.vandal:
		c.vandal(j, now, content)
	default:
		c.outcome(j, id, now, content)
	}
	c.history(j, id, now)
	c.demotions(j, id, now)
}

// history checks what the ledger says of a job (C2, C3).
func (c *checker) history(j *submitted, id job.ID, now *kithv1.Job) {
	r := c.result
	runs := c.ledger.runs(id)
	r.Jobs.Attempts += len(runs)
	if len(runs) > 1 {
		r.Jobs.RanAgain++
	}
	for _, text := range c.ledger.doubleStarts(id) {
		c.problem(&r.DoubleStarts, "%s", text)
	}
	if still := undemoted(runs, now); still > 1 && j.policy == kithv1.Job_ON_SITE_LOST_WAIT {
		c.problem(&r.DoubleStarts, "job %s, which waits for lost sites, ran in %d attempts that were not demoted", j.id, still)
	}
	overlaps := c.ledger.overlaps(id)
	switch {
	case j.policy == kithv1.Job_ON_SITE_LOST_RACE:
	case j.policy == kithv1.Job_ON_SITE_LOST_RERUN && c.unguarded[id] && len(overlaps) > 0:
		r.Unguarded++
	default:
		for _, text := range overlaps {
			c.problem(&r.Overlaps, "%s", text)
		}
	}
	if now != nil && ended(now) {
		for _, text := range c.ledger.startsAfter(id, uint32(now.GetStatus().GetAttempt())) {
			// Under race a later attempt may have begun before an earlier one won.
			if j.policy != kithv1.Job_ON_SITE_LOST_RACE {
				c.problem(&r.DoubleStarts, "%s", text)
			}
		}
	}
}

// outcome checks how a job ended (C1, C4, C5).
func (c *checker) outcome(j *submitted, id job.ID, now *kithv1.Job, content func(string) (string, error)) {
	r, st := c.result, now.GetStatus()
	if j.ended != nil && !sameEnd(j.ended.GetStatus(), st) {
		c.problem(&r.ChangedOutcomes, "job %s: ended as %s, and later as %s", j.id, brief(j.ended.GetStatus()), brief(st))
		return
	}
	granted := make(map[int32]string)
	for _, e := range st.GetClaimEvents() {
		if e.GetKind() != kithv1.ClaimEvent_KIND_GRANTED {
			continue
		}
		if other, twice := granted[e.GetAttempt()]; twice && other != e.GetSiteId() {
			c.problem(&r.DoubleStarts, "attempt %d of job %s was granted to %s and to %s", e.GetAttempt(), j.id, other, e.GetSiteId())
		}
		granted[e.GetAttempt()] = e.GetSiteId()
	}
	ran := c.ledger.runs(id)[uint32(st.GetAttempt())]
	switch st.GetState() {
	case kithv1.JobStatus_STATE_COMPLETED, kithv1.JobStatus_STATE_FAILED:
		c.finished(j, id, st, ran, content)
	case kithv1.JobStatus_STATE_TIMEOUT:
		if c.stranded(j, id, st) {
			r.Jobs.LostWithTrust++
		} else if r.Jobs.TimedOut++; !j.runsOut {
			c.problem(&r.OtherProblems, "job %s ran out of time, of which it had plenty: %s", j.id, brief(st))
		}
	case kithv1.JobStatus_STATE_CANCELLED:
		if j.cancel == 0 && c.stranded(j, id, st) {
			r.Jobs.LostWithTrust++
		} else if r.Jobs.Cancelled++; j.cancel == 0 {
			c.problem(&r.OtherProblems, "job %s is cancelled, and its user did not cancel it: %s", j.id, brief(st))
		}
	case kithv1.JobStatus_STATE_LOST:
		c.wasLost(j, id, st)
	}
}

// finished checks a job whose program ended by itself.
func (c *checker) finished(j *submitted, id job.ID, st *kithv1.JobStatus, ran run, content func(string) (string, error)) {
	r := c.result
	spoilt := st.GetHostSiteId() == c.diskSite && c.wasFull(st)
	code := st.GetOutcome().GetExitCode()
	if st.GetOutcome().GetSignal() != 0 || code != j.code || j.runsOut {
		if spoilt && code != 97 {
			r.Jobs.SpoiltByDisk++
		} else {
			c.problem(&r.OtherProblems, "job %s ended as %s, expected exit code %d", j.id, brief(st), j.code)
		}
		return
	}
	if ran.starts == 0 || ran.ends == 0 || ran.site != st.GetHostSiteId() {
		c.problem(&r.LostJobs, "job %s ended as %s, but the ledger has %d starts and %d ends of that attempt, at %q", j.id, brief(st), ran.starts, ran.ends, ran.site)
		return
	}
	if code == 0 {
		r.Jobs.Completed++
	} else {
		r.Jobs.Failed++
	}
	said := "done " + j.id + "\n"
	if j.counts != nil {
		said += j.counts.sum()
	}
	want := map[string]string{"stdout": sum([]byte(said))}
	for path, s := range j.outputs {
		want[path] = s
	}
	for path, s := range want {
		got, err := content(path)
		switch {
		case err == nil && got == s:
		case spoilt:
			r.Jobs.SpoiltByDisk++
			return
		case err != nil && c.cutWhile(id, st):
			r.Jobs.LostWithTrust++
			return
		case err != nil && j.cancel != 0 && st.GetOutcome().GetOutputLost():
			r.Jobs.Cancelled++ // while its output was on its way: it ends as it ended, without that
			return
		case err != nil:
			c.problem(&r.DamagedOutputs, "job %s at %s: output %s: %v; %s", j.id, st.GetHostSiteId(), path, err, st.GetReason())
		default:
			c.problem(&r.DamagedOutputs, "job %s at %s: output %s has other bytes than were written", j.id, st.GetHostSiteId(), path)
		}
	}
}

// wasFull reports whether the disk was full while a job ran or its output was
// collected, which is tried for ten seconds.
func (c *checker) wasFull(st *kithv1.JobStatus) bool {
	from := st.GetSubmitTime().AsTime()
	if st.GetStartTime() != nil {
		from = st.GetStartTime().AsTime()
	}
	for _, w := range c.full {
		if w.meets(from, st.GetEndTime().AsTime().Add(10*time.Second)) {
			return true
		}
	}
	return false
}

// cutWhile reports whether trust between the origin of a job and its host was not whole
// while it ran or its output was collected.
func (c *checker) cutWhile(id job.ID, st *kithv1.JobStatus) bool {
	from, to := life(st)
	return c.cut(string(id.Origin), st.GetHostSiteId(), from, to)
}

// life is when a job was under way, and ten seconds more.
func life(st *kithv1.JobStatus) (from, to time.Time) {
	return st.GetSubmitTime().AsTime(), st.GetEndTime().AsTime().Add(10 * time.Second)
}

// wasLost checks that a job had a right to be lost (C5).
func (c *checker) wasLost(j *submitted, id job.ID, st *kithv1.JobStatus) {
	r := c.result
	from, to := life(st)
	if j.policy == kithv1.Job_ON_SITE_LOST_WAIT && c.cutWhile(id, st) || c.gaveUp(string(id.Origin), st.GetHostSiteId(), from, to) {
		r.Jobs.LostWithTrust++
		return
	}
	if c.lostWithNode(j, st) {
		r.Jobs.LostWithNode++
		return
	}
	attempt := job.AttemptID{Job: id, Number: uint32(st.GetAttempt())}
	pid, told := c.lost[attempt.String()]
	if !told || !c.killed[pid] || j.policy != kithv1.Job_ON_SITE_LOST_WAIT {
		c.problem(&r.LostJobs, "job %s is lost, and no killed shim explains it: %s", j.id, brief(st))
		return
	}
	r.Jobs.LostWithShim++
}

func sameEnd(a, b *kithv1.JobStatus) bool {
	x, y := a.GetOutcome(), b.GetOutcome()
	return a.GetState() == b.GetState() && a.GetAttempt() == b.GetAttempt() && a.GetHostSiteId() == b.GetHostSiteId() &&
		a.GetEndTime().AsTime().Equal(b.GetEndTime().AsTime()) && x.GetExitCode() == y.GetExitCode() && x.GetSignal() == y.GetSignal()
}

func brief(st *kithv1.JobStatus) string {
	text := fmt.Sprintf("%s at %s in attempt %d", strings.TrimPrefix(st.GetState().String(), "STATE_"), st.GetHostSiteId(), st.GetAttempt())
	if st.GetReason() != "" {
		text += ": " + st.GetReason()
	}
	return text
}

// output reads an output of a job and returns its sum.
func output(ctx context.Context, s *site, id, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*callTimeout)
	defer cancel()
	g, err := s.Jobs.GetJobOutput(ctx, &kithv1.GetJobOutputRequest{JobId: id, Path: path})
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for {
		r, err := g.Recv()
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
		h.Write(r.GetData())
	}
}

// leftOver checks that no site holds anything any more (C6).
func (c *checker) leftOver(ctx context.Context, b *bed) {
	r := c.result
	for _, s := range b.sites {
		jobs, copies, err := listJobs(ctx, s, false)
		if err != nil {
			c.problem(&r.OtherProblems, "%v", err)
			continue
		}
		for _, h := range copies {
			c.problem(&r.StrayCopies, "site %s still holds attempt %d of %s, %s", s.Name, h.GetAttempt(), h.GetJobId(), h.GetState())
		}
		g, err := s.Sites.GetSite(ctx, &kithv1.GetSiteRequest{})
		if err != nil {
			c.problem(&r.OtherProblems, "site %s: %v", s.Name, err)
			continue
		}
		if l := g.GetSite(); len(jobs) == 0 && (l.GetRunningAttempts() != 0 || l.GetQueuedCopies() != 0 || l.GetFreeProcessors() != l.GetProcessors()) {
			c.problem(&r.StrayCopies, "site %s is idle and counts %d running, %d queued, %d of %d processors free",
				s.Name, l.GetRunningAttempts(), l.GetQueuedCopies(), l.GetFreeProcessors(), l.GetProcessors())
		}
		for _, x := range runningAt(s.Config.Data) {
			c.problem(&r.StrayCopies, "site %s still runs %s", s.Name, x.attempt)
		}
	}
}

// submissions checks that every submission made one job, no more (C1).
func (c *checker) submissions(ctx context.Context, u *user) {
	r := c.result
	jobs, _, err := listJobs(ctx, u.site, true)
	if err != nil {
		c.problem(&r.OtherProblems, "%v", err)
		return
	}
	made := make(map[string]string) // request → job, by the job's name
	for _, j := range jobs {
		if other, twice := made[j.GetName()]; twice {
			c.problem(&r.OtherProblems, "submission %s made two jobs, %s and %s", j.GetName(), other, j.GetId())
		}
		made[j.GetName()] = j.GetId()
	}
	for _, j := range u.all() {
		if id, ok := made[j.request]; j.id != "" && (!ok || id != j.id) {
			c.problem(&r.LostJobs, "submission %s was acknowledged as job %s, and its origin lists %q", j.request, j.id, id)
		}
	}
}
