package apart

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"kith/cluster/wire"
	"kith/internal/clock"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// greetTime is how long the machine has to answer the greeting.
const greetTime = 10 * time.Second

// errNoSession is returned for what is asked of the machine while there is no session.
var errNoSession = errors.New("the machine with the processors cannot be reached")

// session is one at the leader.
type session struct {
	out    *mailbox[*kithv1.DriveRequest]
	cancel context.CancelFunc
	supply places

	// Guarded by the mutex of the driver.
	ready  bool // nothing runs that is to go
	beaten bool // a beat was heard
	up     bool // both, and a lease was given
	// delta is the clock of the machine less this one's, at most: what a beat showed when it came.
	delta time.Duration
	// until is when the leases that were given last end, by the clock of the machine.
	until, renewed time.Duration
	renewal        time.Duration // how often they are prolonged
	confirming     bool
	heard          time.Duration // since the latest word

	mu    sync.Mutex
	reads map[uint64]chan *kithv1.FileReply
	last  uint64
	over  error
}

// clock turns what the clock of leases of this machine shows into what that of the machine shows, or less.
func (s *session) clock(here time.Duration) time.Duration { return max(1, here+s.delta) }

// end ends what waits for the session.
func (s *session) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = err
	for _, waits := range s.reads {
		close(waits)
	}
	s.reads = nil
}

// drive holds a session and returns why it ended.
func (d *Driver) drive() error {
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///machine", grpc.WithTransportCredentials(insecure.NewCredentials()), // the connection is secured
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return d.cfg.Dial(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(d.cfg.MostMessage)), grpc.WithDisableRetry())
	if err != nil {
		return err
	}
	defer conn.Close()
	late := time.AfterFunc(greetTime, cancel)
	defer late.Stop()
	stream, err := kithv1.NewWorkServiceClient(conn).Drive(ctx)
	if err != nil {
		return reason(err)
	}
	greeting := &kithv1.LeadGreeting{Site: string(d.cfg.Site), Member: d.cfg.Member, Machine: d.cfg.Machine, Lead: d.cfg.Lead, Version: d.cfg.Version}
	if err := stream.Send(&kithv1.DriveRequest{Order: &kithv1.DriveRequest_Greeting{Greeting: greeting}}); err != nil {
		_, err = stream.Recv()
		return reason(err)
	}
	boot, lost, has, err := d.greeted(stream)
	if err != nil {
		return reason(err)
	}
	if !late.Stop() {
		return errors.New("it was too slow to greet")
	}
	s := &session{
		out: newMailbox[*kithv1.DriveRequest](), cancel: cancel, reads: make(map[uint64]chan *kithv1.FileReply),
	}
	if !d.know(s, boot, lost, has) {
		d.cfg.Again(fmt.Sprintf("machine %s, which has the processors, was restarted", d.cfg.Machine))
		<-d.ctx.Done()
		return d.ctx.Err()
	}
	var parts sync.WaitGroup
	parts.Go(func() {
		s.out.each(ctx.Done(), func(o *kithv1.DriveRequest) bool { return stream.Send(o) == nil })
		cancel()
	})
	for {
		r, err := stream.Recv()
		if err == nil {
			err = checked(r)
		}
		if err != nil {
			cancel()
			parts.Wait()
			return reason(err)
		}
		d.hear(ctx, s, r)
	}
}

// reason returns what an error of gRPC says.
func reason(err error) error {
	if st, is := status.FromError(err); is && st.Message() != "" {
		return errors.New(st.Message())
	}
	return err
}

// greeted hears the greetings of the machine.
func (d *Driver) greeted(stream grpc.BidiStreamingClient[kithv1.DriveRequest, kithv1.DriveResponse]) (boot string, lost time.Duration, has []job.AttemptID, err error) {
	for {
		r, err := stream.Recv()
		if err == nil {
			err = checked(r)
		}
		if err != nil {
			return "", 0, nil, err
		}
		g := r.GetGreeting()
		if g == nil {
			return "", 0, nil, errors.New("it did not greet")
		}
		if g.GetProcessors() != d.cfg.Processors {
			return "", 0, nil, fmt.Errorf("machine %s has scheduler.processors = %d, and this member %d: give all members of the site the same", d.cfg.Machine, g.GetProcessors(), d.cfg.Processors)
		}
		for _, name := range g.GetAttempts() {
			a, err := wire.AttemptID(name)
			if err != nil {
				return "", 0, nil, err
			}
			has = append(has, a)
		}
		if boot, lost = g.GetBoot(), time.Duration(g.GetLostNs()); !g.GetMore() {
			return boot, max(0, lost), has, nil
		}
	}
}

// know says to the machine what is known of what it has, and of what it may have. It returns false if the
// machine is not the one it was when this driver began. lost is the longest lease that the machine gives.
func (d *Driver) know(s *session, boot string, lost time.Duration, has []job.AttemptID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost = max(d.lost, lost); lost != 0 && lost != d.cfg.Lost {
		d.cfg.Log.Warn("the machine with the processors has another members.executor_lost", "machine", d.cfg.Machine, "there", lost.String(), "here", d.cfg.Lost.String(),
			"remedy", "give all machines of the site the same")
	}
	s.renewal = d.cfg.Lost / renewals
	if lost != 0 {
		s.renewal = min(s.renewal, lost/renewals)
	}
	if d.boot != "" && d.boot != boot {
		return false
	}
	d.boot, d.session = boot, s
	if d.away != "" { // what it tells of attempts may come before it is ready
		d.cfg.Tell(meta.MachineSeen{Away: d.away, BootID: boot})
	}
	for _, a := range has {
		if e := d.attempts[a]; e == nil || !e.sent {
			d.orderClear(a)
		}
	}
	for _, e := range d.attempts {
		if e.sent {
			d.ask(e)
		}
	}
	d.order(&kithv1.DriveRequest{Order: &kithv1.DriveRequest_Known{Known: &kithv1.KnownEnd{}}})
	for a := range d.bringing { // the word that they are there may have been lost
		delete(d.bringing, a)
		d.cfg.Tell(meta.FilesHere{Attempt: a})
	}
	return true
}

// hear takes what the machine says.
func (d *Driver) hear(ctx context.Context, s *session, r *kithv1.DriveResponse) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.heard = 0
	switch report := r.GetReport().(type) {
	case *kithv1.DriveResponse_Event:
		if a, ev := eventOf(report.Event); ev != nil {
			d.take(a, ev)
		}
	case *kithv1.DriveResponse_Ready:
		s.ready = true
		d.comesUp(s)
	case *kithv1.DriveResponse_Beat:
		if low := report.Beat.GetDiskLow(); low != d.low {
			d.low = low
			d.cfg.Tell(meta.DiskSeen{Low: low})
		}
		d.beat(s, time.Duration(report.Beat.GetClockNs()))
	case *kithv1.DriveResponse_File:
		s.mu.Lock()
		if waits := s.reads[report.File.GetRequest()]; waits != nil {
			delete(s.reads, report.File.GetRequest())
			waits <- report.File // has room for it
		}
		s.mu.Unlock()
	case *kithv1.DriveResponse_Need:
		d.wg.Go(func() { d.supply(ctx, s, report.Need) })
	}
}

// beat answers a beat, now and then with a new lease, once a majority has said that this member leads.
func (d *Driver) beat(s *session, shown time.Duration) {
	d.silent = 0
	s.delta, s.beaten = shown-clock.SinceBoot(), true
	if s.until != 0 && shown-s.renewed < s.renewal || s.confirming {
		d.order(&kithv1.DriveRequest{Order: &kithv1.DriveRequest_Beat{Beat: &kithv1.BeatAnswer{}}})
		return
	}
	s.confirming = true
	d.wg.Go(func() {
		err := d.cfg.Confirm()
		d.mu.Lock()
		defer d.mu.Unlock()
		s.confirming = false
		if err != nil || d.session != s {
			return
		}
		s.until, s.renewed = shown+d.cfg.Lost, shown
		d.order(&kithv1.DriveRequest{Order: &kithv1.DriveRequest_Beat{Beat: &kithv1.BeatAnswer{UntilNs: int64(s.until)}}})
		d.comesUp(s)
	})
}

// comesUp has attempts started once the machine is ready and leases are given.
func (d *Driver) comesUp(s *session) {
	if s.up || !s.ready || s.until == 0 || d.session != s {
		return
	}
	s.up = true
	d.gone = 0
	if d.away != "" {
		d.cfg.Log.Info("the machine with the processors is driven", "machine", d.cfg.Machine)
	}
	d.away = ""
	d.cfg.Tell(meta.MachineSeen{BootID: d.boot})
	for _, e := range d.attempts {
		switch {
		case e.sent:
			d.orderExtend(e)
		case e.ready && !e.told:
			d.send(e)
		}
	}
}
