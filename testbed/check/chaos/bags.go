package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
)

// bag is a bag of the workload with what should become of it and what its submitter
// knows of it.
type bag struct {
	request string // its request_id
	bag     *kithv1.Bag
	tasks   int32
	fails   int32 // tasks whose index leaves 1 when divided by it are to fail; 0: none
	act     bagAct
	after   time.Duration // from its acknowledgement to the act
	again   bool          // submitted once more with the same request_id

	id      string // once it is acknowledged
	refused bool
	ended   *kithv1.BagStatus // as first seen at its end
	lost    string            // why the origin does not know it
}

// bagAct is what a submitter does to a bag later.
type bagAct uint8

const (
	leaveBag bagAct = iota
	holdBag         // and release it
	cancelTasks
	cancelBag
)

// Bounds and figures of bags.
const (
	maxOpenBags = 3 // of a user
	// Indices begin at another number than ordinals do, so that none can be taken for the
	// other.
	firstTask   = 5
	cancelEvery = 3 // of the tasks, each so-manieth is cancelled
	failingCode = 3
	taskOutput  = "out.txt"
)

// signTask is what every task does first, as [sign] is for jobs. A run is named by its
// site and its attempt.
const signTask = `#!/bin/sh
echo "start $KITH_JOB_ID $KITH_ATTEMPT $KITH_SITE" >>"$CHAOS_LEDGER"
exec 9>>"$CHAOS_LOCKS/$KITH_JOB_ID"
if ! flock -n 9; then
	echo "overlap $KITH_JOB_ID $KITH_ATTEMPT $KITH_SITE" >>"$CHAOS_LEDGER"
	exit 97
fi
`

// nextBag makes the next bag of a user.
func (u *bagUser) nextBag() *bag {
	r := u.rng
	u.made++
	b := &bag{request: fmt.Sprintf("bag-%d-%d", u.site.index, u.made), tasks: 20 + r.Int32N(40), again: r.IntN(4) == 0}
	policy := kithv1.Job_ON_SITE_LOST_RERUN
	if r.IntN(3) == 0 {
		policy = kithv1.Job_ON_SITE_LOST_WAIT
	}
	if r.IntN(2) == 0 {
		b.fails = 8
	}
	switch n := r.IntN(10); {
	case n < 3:
		b.act = holdBag
	case n < 5:
		b.act = cancelTasks
	case n < 6:
		b.act = cancelBag
	}
	b.after = time.Duration(r.IntN(4000)) * time.Millisecond
	script := signTask
	var lengths []string
	for range 7 {
		length := 0.05 + 0.3*r.Float64()
		if r.IntN(6) == 0 {
			length = 1 + r.Float64()
		}
		lengths = append(lengths, fmt.Sprintf("%.2f", length))
	}
	script += fmt.Sprintf("set -- %s\nshift $((KITH_TASK_INDEX %% 7))\nsleep $1\n", strings.Join(lengths, " "))
	job := &kithv1.Job{
		Name: b.request, Processors: 1, Walltime: durationpb.New(time.Minute), OnSiteLost: policy,
		Environment: map[string]string{"CHAOS_LEDGER": u.folders.taskLedger, "CHAOS_LOCKS": u.folders.locks},
	}
	if r.IntN(3) == 0 {
		job.Outputs = []*kithv1.OutputFile{{Path: taskOutput}}
		script += "echo \"left $KITH_JOB_ID\" >" + taskOutput + "\n"
	}
	script += "echo \"done $KITH_JOB_ID\"\necho \"end $KITH_JOB_ID $KITH_ATTEMPT $KITH_SITE\" >>\"$CHAOS_LEDGER\"\n"
	if b.fails > 0 {
		script += fmt.Sprintf("[ $((KITH_TASK_INDEX %% %d)) -ne 1 ] || exit %d\n", b.fails, failingCode)
	}
	job.Script = script + "exit 0\n"
	b.bag = &kithv1.Bag{Job: job, Indices: fmt.Sprintf("%d-%d", firstTask, firstTask+b.tasks-1), Retries: r.Int32N(2)}
	return b
}

// code is what a task is to end with.
func (b *bag) code(index int32) int32 {
	if b.fails > 0 && index%b.fails == 1 {
		return failingCode
	}
	return 0
}

// cancels reports whether the submitter cancels a task.
func (b *bag) cancels(index int32) bool {
	return b.act == cancelBag || b.act == cancelTasks && (index-firstTask)%cancelEvery == 0
}

func (b *bag) indicesToCancel() string {
	if b.act == cancelBag {
		return ""
	}
	return fmt.Sprintf("%s:%d", b.bag.GetIndices(), cancelEvery)
}

// bagUser submits bags at one origin, as patiently as [user] does jobs.
type bagUser struct {
	site    *site
	rng     *rand.Rand
	folders folders
	logs    *logs
	made    int
	seeing  sync.WaitGroup

	mu   sync.Mutex
	bags []*bag
	last time.Time // a bag was seen to end
}

func newBagUser(opt *Options, s *site, f folders, l *logs) *bagUser {
	return &bagUser{site: s, rng: rand.New(rand.NewPCG(opt.Seed, 300+uint64(s.index))), folders: f, logs: l}
}

// submit submits a bag every ten seconds or so until working is done. What was begun goes
// on until all is done.
func (u *bagUser) submit(working, all context.Context) {
	open := make(chan struct{}, maxOpenBags)
	gap := time.Duration(u.rng.IntN(2000)) * time.Millisecond
	for pause.For(working, gap) {
		select {
		case open <- struct{}{}:
		case <-working.Done():
			return
		}
		b := u.nextBag()
		u.mu.Lock()
		u.bags = append(u.bags, b)
		u.mu.Unlock()
		u.seeing.Go(func() {
			u.see(all, b)
			<-open
		})
		gap = time.Duration(6000+u.rng.IntN(8000)) * time.Millisecond
	}
}

// see brings a bag to its site, does with it what it says, and follows it to its end.
func (u *bagUser) see(ctx context.Context, b *bag) {
	id, err := u.ask(ctx, b)
	u.mu.Lock()
	b.id, b.refused = id, err != nil && ctx.Err() == nil
	u.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			u.logs.problem("bag %s refused by %s: %v", b.request, u.site.Name, err)
		}
		return
	}
	if b.again {
		if twice, err := u.ask(ctx, b); err == nil && twice != id {
			u.logs.problem("bag %s: repeated, its submission is bag %s, before it was %s", b.request, twice, id)
		}
	}
	if b.act != leaveBag && pause.For(ctx, b.after) {
		u.do(ctx, b)
	}
	for pause.For(ctx, pollPause) {
		if u.note(ctx, b) {
			return
		}
	}
}

// ask submits a bag until it is acknowledged or refused for good.
func (u *bagUser) ask(ctx context.Context, b *bag) (id string, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		r, err := u.site.Bags.SubmitBag(ctx, &kithv1.SubmitBagRequest{RequestId: b.request, Bag: b.bag})
		id = r.GetBagId()
		return err
	})
	return id, err
}

// do does to a bag what was drawn.
func (u *bagUser) do(ctx context.Context, b *bag) {
	var err error
	switch b.act {
	case holdBag:
		err = retry(ctx, func(ctx context.Context) error {
			_, err := u.site.Bags.HoldBag(ctx, &kithv1.HoldBagRequest{BagId: b.id})
			return err
		})
		pause.For(ctx, b.after)
	case cancelTasks, cancelBag:
		err = retry(ctx, func(ctx context.Context) error {
			_, err := u.site.Bags.CancelBag(ctx, &kithv1.CancelBagRequest{BagId: b.id, Indices: b.indicesToCancel()})
			return err
		})
	}
	if err != nil && ctx.Err() == nil && status.Code(err) != codes.FailedPrecondition { // it may have ended
		u.logs.problem("bag %s, act %d: %v", b.id, b.act, err)
	}
}

// note looks at a bag, and reports whether there is no more to see. A bag that is held is
// released, whether its submitter held it or its origin, as no task went well.
func (u *bagUser) note(ctx context.Context, b *bag) bool {
	now, err := getBag(ctx, u.site, b.id)
	st := now.GetStatus()
	if err == nil && st.GetState() == kithv1.BagStatus_STATE_HELD {
		one, cancel := context.WithTimeout(ctx, callTimeout)
		u.site.Bags.ReleaseBag(one, &kithv1.ReleaseBagRequest{BagId: b.id}) //nolint:errcheck // the next look tries again
		cancel()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case status.Code(err) == codes.NotFound:
		b.lost = "its origin does not know it"
	case err != nil || !bagEnded(st):
		return false
	default:
		b.ended, u.last = st, time.Now()
	}
	return true
}

// unsettled counts bags that were neither refused nor seen to end.
func (u *bagUser) unsettled() int {
	n := 0
	for _, b := range u.all() {
		if !b.refused && b.ended == nil && b.lost == "" {
			n++
		}
	}
	return n
}

// all returns the bags so far as they are now.
func (u *bagUser) all() []bag {
	u.mu.Lock()
	defer u.mu.Unlock()
	var list []bag
	for _, b := range u.bags {
		list = append(list, *b)
	}
	return list
}

func bagEnded(st *kithv1.BagStatus) bool { return st.GetState() >= kithv1.BagStatus_STATE_COMPLETED }

func getBag(ctx context.Context, s *site, id string) (*kithv1.Bag, error) {
	one, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := s.Bags.GetBag(one, &kithv1.GetBagRequest{BagId: id})
	return r.GetBag(), err
}
