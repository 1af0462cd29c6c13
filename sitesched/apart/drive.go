package apart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/cluster/wire"
	"kith/internal/clock"
	"kith/internal/job"
	"kith/internal/pause"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/runner"
	"kith/store/blobstore"
)

const (
	// beatEvery is how often the machine says that it is there.
	beatEvery = time.Second
	// namesAtOnce is how many attempts a message names.
	namesAtOnce = 1000
	// readsAtOnce bounds what is read for the other side at a time, and livesAtOnce of these what may wait for
	// output to come.
	readsAtOnce = 16
	livesAtOnce = 256
	// strayPause is how often it is looked whether strays are gone.
	strayPause = 50 * time.Millisecond
)

// drive is a session at the machine.
type drive struct {
	w      *Worker
	lead   uint64
	member string
	ctx    context.Context
	cancel context.CancelFunc
	out    *mailbox[*kithv1.DriveResponse]
	orders *mailbox[*kithv1.DriveRequest]
	reads  chan struct{} // places
	lives  chan struct{} // likewise, of output that is written still
	done   chan struct{} // closed when its last order was carried out
	parts  []byte        // of what the attempt runs that is about to be launched

	mu    sync.Mutex
	needs map[uint64]chan *kithv1.Supply
	last  uint64
}

// Drive implements kithv1.WorkServiceServer.
func (w *Worker) Drive(stream grpc.BidiStreamingServer[kithv1.DriveRequest, kithv1.DriveResponse]) error {
	first, err := stream.Recv()
	if err == nil {
		err = checked(first)
	}
	if err != nil {
		return err
	}
	g := first.GetGreeting()
	if g.GetSite() != string(w.cfg.Site) || g.GetMachine() != w.cfg.Machine {
		return status.Error(codes.FailedPrecondition, fmt.Sprintf("this is machine %s of site %s, and %s of %s was meant", w.cfg.Machine, w.cfg.Site, g.GetMachine(), g.GetSite()))
	}
	s, err := w.begin(stream.Context(), g)
	if err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	w.cfg.Log.Info("this machine is driven", "leader", s.member, "lead", s.lead)
	var parts sync.WaitGroup
	parts.Go(func() {
		defer close(s.done)
		s.orders.each(s.ctx.Done(), func(r *kithv1.DriveRequest) bool { s.carryOut(r); return true })
	})
	parts.Go(func() {
		s.out.each(s.ctx.Done(), func(r *kithv1.DriveResponse) bool { return stream.Send(r) == nil })
		s.cancel()
	})
	parts.Go(s.beat)
	go func() { // it ends with the stream, when this function has returned
		defer s.cancel()
		for {
			r, err := stream.Recv()
			if err == nil {
				err = checked(r)
			}
			if err != nil {
				w.cfg.Log.Debug("the session ends", "error", err.Error())
				return
			}
			s.hear(r)
		}
	}()
	<-s.ctx.Done()
	parts.Wait()
	w.mu.Lock()
	if w.session == s {
		w.session = nil
	}
	w.mu.Unlock()
	w.cfg.Log.Info("this machine is not driven any more", "leader", s.member, "lead", s.lead)
	return status.Error(codes.Aborted, "the session is over")
}

// errStopping is what a lead is told that comes when the machine stops.
var errStopping = errors.New("kithd is stopping at this machine")

// begin lets a lead begin a session, when the one before has carried out its last order.
func (w *Worker) begin(ctx context.Context, g *kithv1.LeadGreeting) (*drive, error) {
	w.turn.Lock()
	defer w.turn.Unlock()
	if w.ctx.Err() != nil {
		return nil, errStopping
	}
	if err := w.fence.pass(g.GetLead()); err != nil {
		return nil, err
	}
	if old := w.driven(); old != nil {
		old.cancel()
		<-old.done
	}
	s := &drive{
		w: w, lead: g.GetLead(), member: g.GetMember(), out: newMailbox[*kithv1.DriveResponse](), orders: newMailbox[*kithv1.DriveRequest](),
		reads: make(chan struct{}, readsAtOnce), lives: make(chan struct{}, livesAtOnce), done: make(chan struct{}), needs: make(map[uint64]chan *kithv1.Supply),
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	stop := context.AfterFunc(w.ctx, s.cancel)
	context.AfterFunc(s.ctx, func() { stop() })
	has := w.has()
	for first := true; first || len(has) > 0; first = false {
		some := has[:min(len(has), namesAtOnce)]
		has = has[len(some):]
		m := &kithv1.MachineGreeting{Boot: w.runs.BootID(), Processors: w.cfg.Processors, Version: w.cfg.Version, More: len(has) > 0, LostNs: int64(w.cfg.Lost)}
		for _, a := range some {
			m.Attempts = append(m.Attempts, wire.AttemptName(a))
		}
		s.out.put(&kithv1.DriveResponse{Report: &kithv1.DriveResponse_Greeting{Greeting: m}})
	}
	w.mu.Lock()
	w.session = s
	w.mu.Unlock()
	return s, nil
}

func (s *drive) beat() {
	for {
		s.w.mu.Lock()
		low := s.w.low
		s.w.mu.Unlock()
		s.out.put(&kithv1.DriveResponse{Report: &kithv1.DriveResponse_Beat{Beat: &kithv1.Beat{ClockNs: int64(clock.SinceBoot()), DiskLow: low}}})
		if !pause.For(s.ctx, beatEvery) {
			return
		}
	}
}

// hear takes what the leader says, and never waits. Answers are not kept waiting behind orders, which may wait
// for them, nor anything behind reads: how many of those there are is bounded by the callers of the leader.
func (s *drive) hear(r *kithv1.DriveRequest) {
	switch order := r.GetOrder().(type) {
	case *kithv1.DriveRequest_Supply:
		s.mu.Lock()
		waits := s.needs[order.Supply.GetNeed()]
		delete(s.needs, order.Supply.GetNeed())
		s.mu.Unlock()
		if waits != nil {
			waits <- order.Supply // has room for it
		}
	case *kithv1.DriveRequest_Read:
		s.w.wg.Go(func() { s.readInTurn(order.Read) })
	default:
		s.orders.put(r)
	}
}

// carryOut carries out one order.
func (s *drive) carryOut(r *kithv1.DriveRequest) {
	var err error
	switch order := r.GetOrder().(type) {
	case *kithv1.DriveRequest_Launch:
		err = s.launch(order.Launch)
	case *kithv1.DriveRequest_Adopt:
		err = s.adopt(order.Adopt)
	case *kithv1.DriveRequest_Kill:
		var a job.AttemptID
		if a, err = wire.AttemptID(order.Kill.GetAttempt()); err == nil {
			s.w.runs.Kill(meta.Kill{Attempt: a, Lease: order.Kill.GetLease(), Stale: order.Kill.GetStale()})
		}
	case *kithv1.DriveRequest_Ask:
		var a job.AttemptID
		if a, err = wire.AttemptID(order.Ask.GetAttempt()); err == nil {
			cause := job.DemotionCause(min(order.Ask.GetCause(), 255)) //nolint:gosec // at most 255
			s.w.runs.Ask(meta.AskCheckpoint{Attempt: a, Cause: cause, Grace: time.Duration(order.Ask.GetGraceNs())})
		}
	case *kithv1.DriveRequest_Extend:
		var a job.AttemptID
		if a, err = wire.AttemptID(order.Extend.GetAttempt()); err == nil {
			s.w.runs.Extend(meta.Extend{Attempt: a, Until: job.Time(order.Extend.GetUntilNs())})
		}
	case *kithv1.DriveRequest_Unstage:
		var a job.AttemptID
		if a, err = wire.AttemptID(order.Unstage); err == nil {
			s.w.runs.Unstage(a)
		}
	case *kithv1.DriveRequest_Clear:
		var a job.AttemptID
		if a, err = wire.AttemptID(order.Clear); err == nil {
			s.w.clear(a)
		}
	case *kithv1.DriveRequest_Known:
		s.w.wg.Go(s.readyWhenClean)
	case *kithv1.DriveRequest_Beat:
		if until := order.Beat.GetUntilNs(); until > 0 {
			s.w.extend(job.Time(until))
		}
	}
	if err != nil {
		s.w.cfg.Log.Warn("an order is not understood", "error", err.Error())
	}
}

func (s *drive) launch(o *kithv1.LaunchOrder) error {
	a, err := wire.AttemptID(o.GetAttempt())
	if err != nil {
		return err
	}
	task, err := taskOf(o.GetBundle(), o.GetTask())
	if err != nil {
		return err
	}
	payload := o.GetPayload()
	if len(s.parts) > 0 || o.GetMore() {
		s.parts = append(s.parts, payload...)
		if len(s.parts) > mostPayload {
			s.parts = nil // what is left of it says nothing
			return fmt.Errorf("what %v runs has more than %d bytes", a, mostPayload)
		}
		if o.GetMore() {
			return nil
		}
		payload, s.parts = s.parts, nil
	}
	lease := job.Time(o.GetLeaseNs())
	if o.GetWhileDriven() && lease != 0 {
		lease = s.w.atMost(lease)
	}
	if s.w.take(a, o.GetWhileDriven()) {
		s.w.runs.Launch(meta.Launch{
			Attempt: a, Task: task, Request: wire.Request(o.GetRequest()), Payload: payload, Lease: lease,
			Ending: meta.Ending{GoesOn: o.GetGoesOn(), Last: o.GetLast()}, Estimate: estimateOf(o.GetEstimate()),
		})
	}
	return nil
}

func (s *drive) adopt(o *kithv1.AdoptOrder) error {
	a, err := wire.AttemptID(o.GetAttempt())
	if err != nil {
		return err
	}
	task, err := taskOf(o.GetBundle(), o.GetTask())
	if err != nil {
		return err
	}
	if s.w.take(a, o.GetWhileDriven()) {
		s.w.runs.Adopt(meta.Adopt{Attempt: a, Task: task, Request: wire.Request(o.GetRequest()), BootID: o.GetBoot(), Leased: o.GetLeased(), Ending: meta.Ending{GoesOn: o.GetGoesOn(), Last: o.GetLast()}, Estimate: estimateOf(o.GetEstimate())})
	}
	return nil
}

// readyWhenClean says that the machine is ready when nothing runs that is to go.
func (s *drive) readyWhenClean() {
	for {
		s.w.mu.Lock()
		clean := s.w.strays == 0
		s.w.mu.Unlock()
		if clean {
			s.out.put(&kithv1.DriveResponse{Report: &kithv1.DriveResponse_Ready{Ready: &kithv1.MachineReady{}}})
			return
		}
		if !pause.For(s.ctx, strayPause) {
			return
		}
	}
}

// readInTurn reads for the leader when it has a place.
func (s *drive) readInTurn(r *kithv1.FileRequest) {
	places := s.reads
	if _, live := r.GetTarget().(*kithv1.FileRequest_Output); live {
		places = s.lives
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		s.read(r)
	case <-s.ctx.Done():
	}
}

// read reads for the leader.
func (s *drive) read(r *kithv1.FileRequest) {
	reply := &kithv1.FileReply{}
	a, err := wire.AttemptID(r.GetAttempt())
	switch target := r.GetTarget().(type) {
	case *kithv1.FileRequest_Output:
		if err == nil {
			wait := min(max(0, r.GetWait().AsDuration()), 10*time.Second)
			reply.Data, reply.End, err = s.w.files.ReadLive(s.ctx, a, target.Output, r.GetOffset(), int(r.GetLimit()), wait)
		}
	case *kithv1.FileRequest_Chunk:
		if len(target.Chunk) == len(blobstore.Sum{}) {
			reply.Data, err = s.w.files.Piece(blobstore.Sum(target.Chunk), r.GetOffset(), int(r.GetLimit()))
			reply.Data = slices.Clone(reply.Data)
		}
	}
	if err != nil {
		reply = runner.ErrorReply(err)
	}
	reply.Request = r.GetRequest()
	s.out.put(&kithv1.DriveResponse{Report: &kithv1.DriveResponse_File{File: reply}})
}
