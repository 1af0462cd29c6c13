package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kith/internal/job"
	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store/boltstore"
)

// bagChecker compares what is known of the bags of a run.
type bagChecker struct {
	*checker
	stories map[taskName]*taskStory
}

// checkBags checks the bags of all origins.
func (c *campaign) checkBags(ctx context.Context, k *checker) error {
	file, err := os.Open(c.folders.taskLedger)
	if errors.Is(err, fs.ErrNotExist) { // no task ran
		file, err = os.Open(os.DevNull)
	}
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	b := &bagChecker{checker: k}
	if b.stories, err = readTaskLedger(file); err != nil {
		return err
	}
	for _, u := range c.bags {
		b.submissions(ctx, u)
		for _, one := range u.all() {
			var now *kithv1.Bag
			var tasks []*kithv1.Task
			if one.id != "" {
				if now, err = getBag(ctx, u.site, one.id); err == nil {
					tasks, err = listTasks(ctx, u.site, one.id)
				}
				if err != nil {
					k.problem(&k.result.OtherProblems, "bag %s: %v", one.id, err)
				}
			}
			b.check(&one, now, tasks, func(index int32, path string) (string, error) { return readTask(ctx, u.site, one.id, index, path) })
		}
		// Hosts that came late with results are yet to be told that the origin has them.
		pause.For(ctx, time.Until(u.last.Add(2*antiEntropy)))
	}
	return nil
}

// checkHeld looks at what a site has on disk after its end.
func (c *campaign) checkHeld(r *Result, s *site) {
	left, err := heldBundles(s)
	if err != nil {
		c.logs.problem("site %s: %v", s.Name, err)
	}
	r.StrayCopies += len(left)
	r.Problems = append(r.Problems, left...)
}

// taskContent reads an output of a task.
type taskContent func(index int32, path string) (string, error)

// check looks at one bag. now is what its origin says at the end, nil if it does not know
// it, and tasks are all that it lists.
func (c *bagChecker) check(b *bag, now *kithv1.Bag, tasks []*kithv1.Task, content taskContent) {
	r := c.result
	if b.id == "" {
		if !b.refused { // which is told already
			c.problem(&r.OtherProblems, "submission %s was never answered", b.request)
		}
		return
	}
	r.Bags.Acknowledged++
	r.Bags.Tasks += int(b.tasks)
	id, err := job.ParseID(b.id)
	st := now.GetStatus()
	switch {
	case err != nil:
		c.problem(&r.OtherProblems, "submission %s: %v", b.request, err)
		return
	case now == nil:
		c.problem(&r.LostTasks, "bag %s: %s", b.id, b.lost)
	case !bagEnded(st):
		c.problem(&r.LostTasks, "bag %s has not ended: %v, %v, %s", b.id, st.GetState(), st.GetTasks(), st.GetReason())
	case b.ended != nil && !sameBagEnd(b.ended, st):
		c.problem(&r.ChangedOutcomes, "bag %s: ended with %v, and later with %v", b.id, b.ended.GetTasks(), st.GetTasks())
	}
	if st.GetTasks().GetAtSite() != 0 && bagEnded(st) {
		c.problem(&r.StrayCopies, "bag %s has ended, and sites have %d tasks of it", b.id, st.GetTasks().GetAtSite())
	}
	listed := make(map[int32]*kithv1.Task)
	for _, t := range tasks {
		listed[t.GetIndex()] = t
	}
	if len(tasks) != int(b.tasks) || len(listed) != len(tasks) {
		c.problem(&r.LostTasks, "bag %s has %d tasks, and its origin lists %d, of which %d differ", b.id, b.tasks, len(tasks), len(listed))
	}
	for index := int32(firstTask); index < firstTask+b.tasks; index++ {
		t := taskAtEnd{bag: b, id: id, now: st, task: listed[index], story: c.stories[taskName{id, index}], name: fmt.Sprintf("%s_%d", b.id, index)}
		c.history(&t)
		if t.task != nil && bagEnded(st) {
			c.outcome(&t, content)
		}
	}
}

// taskAtEnd is what is known of a task at the end of a run.
type taskAtEnd struct {
	bag   *bag
	id    job.ID
	now   *kithv1.BagStatus
	task  *kithv1.Task
	story *taskStory // nil if it never signed
	name  string
}

// history checks what the ledger says of a task (C2, C3).
func (c *bagChecker) history(t *taskAtEnd) {
	if t.story == nil {
		return
	}
	r, runs := c.result, len(t.story.runs)
	r.Bags.Runs += runs
	if runs > 1 {
		r.Bags.RanAgain++
	}
	for _, text := range t.story.doubles {
		c.problem(&r.DoubleStarts, "%s", text)
	}
	meant := 1
	if t.bag.code(t.task.GetIndex()) != 0 || c.diskWasFull(t) { // it may have failed
		meant += int(t.bag.bag.GetRetries())
	}
	waits := t.bag.bag.GetJob().GetOnSiteLost() == kithv1.Job_ON_SITE_LOST_WAIT
	switch counted := int(t.task.GetRunCount()); {
	case waits && runs > meant:
		c.problem(&r.DoubleStarts, "task %s, which waits for lost sites, ran %d times", t.name, runs)
	case !waits && runs > 1 && t.task.GetState() >= kithv1.Task_STATE_COMPLETED && t.task.GetState() != kithv1.Task_STATE_CANCELLED && runs > counted+int(t.now.GetWastedRunCount()):
		c.problem(&r.DoubleStarts, "task %s ran %d times, and its origin knows of %d", t.name, runs, counted)
	}
	for _, run := range t.story.runs {
		if len(t.story.overlaps) > 0 && !waits && c.unguarded[run.attempt.Job] {
			r.Unguarded++
			return
		}
	}
	for _, text := range t.story.overlaps {
		c.problem(&r.Overlaps, "%s", text)
	}
}

// outcome checks how a task ended (C1, C4, C5).
func (c *bagChecker) outcome(t *taskAtEnd, content taskContent) {
	r, now := c.result, t.task
	code := t.bag.code(now.GetIndex())
	switch {
	case now.GetState() == kithv1.Task_STATE_CANCELLED:
		if r.Bags.Cancelled++; !t.bag.cancels(now.GetIndex()) {
			c.problem(&r.OtherProblems, "task %s is cancelled, and its user did not cancel it", t.name)
		}
	case now.GetState() == kithv1.Task_STATE_COMPLETED && code == 0:
		if c.signed(t) {
			r.Bags.Completed++
			c.outputs(t, content)
		}
	case now.GetState() == kithv1.Task_STATE_FAILED && now.GetEnding() == kithv1.Task_ENDING_FAILURE && now.GetSignal() == 0 && now.GetExitCode() == code && code != 0:
		if c.signed(t) {
			r.Bags.Failed++
		}
	case now.GetState() == kithv1.Task_STATE_FAILED && now.GetEnding() == kithv1.Task_ENDING_LOSS:
		c.wasLost(t)
	case now.GetState() == kithv1.Task_STATE_FAILED && c.spoilt(t):
		r.Bags.SpoiltByDisk++
	case now.GetState() < kithv1.Task_STATE_COMPLETED:
		c.problem(&r.LostTasks, "task %s of a bag that has ended is %v", t.name, now.GetState())
	default:
		c.problem(&r.OtherProblems, "task %s ended as %s, expected exit code %d", t.name, briefTask(now), code)
	}
}

// signed checks that a task ran to its end where it is said to.
func (c *bagChecker) signed(t *taskAtEnd) bool {
	if t.story.ranAt(t.task.GetSiteId()) == nil {
		c.problem(&c.result.LostTasks, "task %s ended as %s, but the ledger has no start and end there", t.name, briefTask(t.task))
		return false
	}
	return true
}

// sampled is of how many tasks the output of one is read.
const sampled = 5

// outputs checks what some tasks wrote.
func (c *bagChecker) outputs(t *taskAtEnd, content taskContent) {
	if t.task.GetIndex()%sampled != 0 {
		return
	}
	want := map[string]string{"stdout": "done " + t.name + "\n"}
	for _, o := range t.bag.bag.GetJob().GetOutputs() {
		want[o.GetPath()] = "left " + t.name + "\n"
	}
	for path, text := range want {
		got, err := content(t.task.GetIndex(), path)
		switch {
		case err == nil && got == text:
			c.result.Bags.OutputsRead++
		case c.spoilt(t):
			c.result.Bags.SpoiltByDisk++
			return
		case err != nil && c.cutWhile(t):
			c.result.Bags.LostWithTrust++
			return
		default:
			c.problem(&c.result.DamagedOutputs, "task %s at %s: output %s has %q, expected %q: %v", t.name, t.task.GetSiteId(), path, got, text, err)
		}
	}
}

// wasLost checks that a task had a right to be lost: as a job has (C5).
func (c *bagChecker) wasLost(t *taskAtEnd) {
	r := c.result
	from, to := t.life()
	switch waits := t.bag.bag.GetJob().GetOnSiteLost() == kithv1.Job_ON_SITE_LOST_WAIT; {
	case waits && c.cutWhile(t), c.gaveUp(string(t.id.Origin), t.task.GetSiteId(), from, to):
		r.Bags.LostWithTrust++
	case waits && c.shimKilled(t):
		r.Bags.LostWithShim++
	default:
		c.problem(&r.LostTasks, "task %s is lost, and no killed shim explains it: %s", t.name, briefTask(t.task))
	}
}

// shimKilled reports whether the shim of a run was killed that may be one of the task: it
// need not have come to signing.
func (c *bagChecker) shimKilled(t *taskAtEnd) bool {
	for name, pid := range c.lost {
		a, err := job.ParseAttemptID(name)
		if err == nil && c.killed[pid] && a.Job.Generation == 0 && a.Job.Origin == t.id.Origin && a.Number == uint32(t.task.GetIndex()-firstTask+1) {
			return true
		}
	}
	return false
}

// life is when a bag was under way, and ten seconds more.
func (t *taskAtEnd) life() (from, to time.Time) {
	return t.now.GetSubmitTime().AsTime(), t.now.GetEndTime().AsTime().Add(10 * time.Second)
}

// spoilt reports whether a task ended at the site with the small disk, which was full
// while the bag was under way.
func (c *bagChecker) spoilt(t *taskAtEnd) bool {
	return t.task.GetSiteId() == c.diskSite && c.diskWasFull(t)
}

func (c *bagChecker) diskWasFull(t *taskAtEnd) bool {
	from, to := t.life()
	for _, w := range c.full {
		if w.meets(from, to) {
			return true
		}
	}
	return false
}

func (c *bagChecker) cutWhile(t *taskAtEnd) bool {
	from, to := t.life()
	return c.cut(string(t.id.Origin), t.task.GetSiteId(), from, to)
}

func sameBagEnd(a, b *kithv1.BagStatus) bool {
	x, y := a.GetTasks(), b.GetTasks()
	return a.GetState() == b.GetState() && a.GetEndTime().AsTime().Equal(b.GetEndTime().AsTime()) &&
		x.GetCompleted() == y.GetCompleted() && x.GetFailed() == y.GetFailed() && x.GetCancelled() == y.GetCancelled()
}

func briefTask(t *kithv1.Task) string {
	return fmt.Sprintf("%s, %s, code %d, signal %d at %s after %d runs", strings.TrimPrefix(t.GetState().String(), "STATE_"),
		strings.TrimPrefix(t.GetEnding().String(), "ENDING_"), t.GetExitCode(), t.GetSignal(), t.GetSiteId(), t.GetRunCount())
}

// listTasks returns all tasks of a bag.
func listTasks(ctx context.Context, s *site, id string) ([]*kithv1.Task, error) {
	var tasks []*kithv1.Task
	for token := ""; ; {
		one, cancel := context.WithTimeout(ctx, 5*callTimeout)
		r, err := s.Bags.ListTasks(one, &kithv1.ListTasksRequest{BagId: id, PageSize: 1000, PageToken: token})
		cancel()
		if err != nil {
			return nil, fmt.Errorf("list tasks of bag %s: %w", id, err)
		}
		tasks = append(tasks, r.GetTasks()...)
		if token = r.GetNextPageToken(); token == "" {
			return tasks, nil
		}
	}
}

// readTask reads an output of a task.
func readTask(ctx context.Context, s *site, id string, index int32, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*callTimeout)
	defer cancel()
	g, err := s.Bags.GetTaskOutput(ctx, &kithv1.GetTaskOutputRequest{BagId: id, Indices: fmt.Sprint(index), Path: path})
	if err != nil {
		return "", err
	}
	var text []byte
	for {
		r, err := g.Recv()
		if errors.Is(err, io.EOF) {
			return string(text), nil
		}
		if err != nil {
			return "", err
		}
		text = append(text, r.GetData()...)
	}
}

// submissions notes submissions that made two bags, or none (C1).
func (c *bagChecker) submissions(ctx context.Context, u *bagUser) {
	made := make(map[string]string) // request → bag, by the name of its job
	for token := ""; ; {
		one, cancel := context.WithTimeout(ctx, callTimeout)
		r, err := u.site.Bags.ListBags(one, &kithv1.ListBagsRequest{PageSize: 1000, PageToken: token, AllStates: true})
		cancel()
		if err != nil {
			c.problem(&c.result.OtherProblems, "list bags of %s: %v", u.site.Name, err)
			return
		}
		for _, b := range r.GetBags() {
			name := b.GetJob().GetName()
			if other, twice := made[name]; twice {
				c.problem(&c.result.OtherProblems, "submission %s made two bags, %s and %s", name, other, b.GetId())
			}
			made[name] = b.GetId()
		}
		if token = r.GetNextPageToken(); token == "" {
			break
		}
	}
	for _, b := range u.all() {
		if b.id != "" && made[b.request] != b.id {
			c.problem(&c.result.LostTasks, "submission %s was acknowledged as bag %s, and its origin lists %q", b.request, b.id, made[b.request])
		}
	}
}

// heldBundles describes what a site that is down has on disk of bundles, which is
// nothing once all bags have ended (C6).
func heldBundles(s *site) (left []string, err error) {
	b, err := boltstore.Open(filepath.Join(s.Config.Data, boltstore.FileName), job.SiteID(s.Name))
	if err != nil {
		return nil, err
	}
	defer b.Close() //nolint:errcheck // nothing was written
	state, err := b.Load()
	if err != nil {
		return nil, err
	}
	for _, h := range state.HeldBundles() {
		left = append(left, fmt.Sprintf("site %s still holds bundle %v with %d tasks and %d batches of results", s.Name, h.ID, h.Tasks.Count(), len(h.Unacked)))
	}
	for bag := range state.Bags {
		for i := range bag.Live {
			if live := bag.Live[i]; !live.Late {
				left = append(left, fmt.Sprintf("site %s still expects bundle %d of bag %v at %s", s.Name, live.Number, bag.ID, live.Site))
			}
		}
	}
	return left, nil
}
