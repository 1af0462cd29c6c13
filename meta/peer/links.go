package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"kith/cluster/wire"
	"kith/internal/job"
	"kith/internal/loglines"
	"kith/internal/places"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// Protocol is the version of the peer protocol. Sites that speak different
// ones do not talk.
const Protocol = 1

// Handler learns what happens on the streams. Calls about one site come one
// after another: up, messages, down. They may block; reading from that site
// waits meanwhile.
type Handler interface {
	// PeerUp: knows says what the site's version knows.
	PeerUp(site job.SiteID, generation uint32, incarnation uint64, knows Knows)
	PeerMessages(site job.SiteID, messages []meta.Message)
	PeerDown(site job.SiteID)
}

// Knows is what a version of Kith knows that an earlier one does not.
type Knows struct {
	// Tasks are the messages about tasks of bags, Checkpoints those of jobs.
	Tasks, Checkpoints bool
	// Estimates are estimators of jobs.
	Estimates bool
	// Saves are those of what jobs have saved while they run.
	Saves bool
}

// FileServer answers a peer's request for bytes of a file. It may block for as
// long as the request says it would wait.
type FileServer interface {
	ServeFile(ctx context.Context, from job.SiteID, r *kithv1.FileRequest) *kithv1.FileReply
}

// Config configures [Links].
type Config struct {
	Site job.SiteID
	// Generation, Folder and Incarnation are those of store.Site.
	Generation  uint32
	Folder      store.Folder
	Incarnation uint64
	Version     string
	// NoSaves says that this site does not copy what jobs have saved while they run.
	NoSaves bool
	// Admit says whether a site may connect; nil admits every well-named one.
	Admit func(job.SiteID) bool
	// Heartbeat is how often something is sent on an idle stream; default 5 s.
	Heartbeat time.Duration
	// Redial is the longest pause between attempts to dial; default 5 s.
	Redial time.Duration
	// Rates are what is taken of each peer; the zero value stands for [DefaultRates].
	Rates Rates
	// Payload reads what the jobs of grants run, see [Links.Grant]. It must be set
	// before the first grant and is called by one goroutine a stream.
	Payload PayloadFunc
	// Bundle makes what bundles run, see [Links.GrantTasks]; as Payload.
	Bundle BundleFunc
	// DialOptions are the credentials and the like of streams dialled here.
	DialOptions []grpc.DialOption
	// Credentials are those of streams dialled to a site; nil: they are in DialOptions.
	Credentials func(site job.SiteID) credentials.TransportCredentials
	// Proven returns the site that the connection of a stream served here has proved,
	// which must be the one in its hello; nil: hellos are believed.
	Proven func(ctx context.Context) (job.SiteID, bool)
	// Proves reports whether what proved a connection, here or of a stream dialled, proves it
	// still, see [Links.Recheck]; nil if nothing can change that.
	Proves func(ctx context.Context) bool
	// ReadBundle reads the bundle that a site sent of itself, or says why it is refused;
	// nil: none is taken. Several goroutines call it.
	ReadBundle func(from job.SiteID, b *kithv1.SiteBundle) (meta.SiteBundle, error)
	// Refused is told of everything that is refused, several goroutines at a time, and
	// must not wait; nil for nobody.
	Refused func(Refusal)
	Logger  *slog.Logger
}

// Links owns the streams of a site. It is safe for use by several goroutines.
type Links struct {
	kithv1.UnimplementedPeerServiceServer
	cfg     Config
	handler Handler
	files   FileServer
	log     *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	streams map[job.SiteID]*session
	dialers map[job.SiteID]*dialer
	limits  map[job.SiteID]*limits

	troubles troubles
	waiting  places.Places              // streams that have not said hello, by address
	unspoken loglines.Pacer[struct{}]   // of lines about those
	refused  loglines.Pacer[job.SiteID] // of lines about refused messages
	// daemon tells this run from one on a copy of the data folder.
	daemon uint64
}

// session is a registered stream.
type session struct {
	*stream
	done chan struct{} // closed when the handler has been told that it is down

	gate   sync.Mutex // held while the handler is called with messages
	closed bool

	fileMu  sync.Mutex
	nextID  uint64
	pending map[uint64]chan *kithv1.FileReply
	serving chan struct{} // one token per request being served

	limits *limits // of the site
}

// servedAtOnce bounds the file requests of one peer that are answered at a time.
const servedAtOnce = 16

// New returns links without any stream.
func New(cfg Config, handler Handler, files FileServer) *Links {
	if cfg.Heartbeat <= 0 {
		cfg.Heartbeat = 5 * time.Second
	}
	if cfg.Redial <= 0 {
		cfg.Redial = 5 * time.Second
	}
	if cfg.Rates == (Rates{}) {
		cfg.Rates = DefaultRates()
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Links{
		cfg: cfg, handler: handler, files: files, log: cfg.Logger, ctx: ctx, cancel: cancel,
		streams: make(map[job.SiteID]*session), dialers: make(map[job.SiteID]*dialer), limits: make(map[job.SiteID]*limits),
		troubles: troubles{log: cfg.Logger, failing: make(map[job.SiteID]*failure), loads: make(map[job.SiteID]string)}, daemon: rand.Uint64(),
		waiting: places.Places{Most: mostWaiting, MostOne: mostWaitingOne},
	}
}

// Close ends all streams and waits until the handler has heard of it.
func (l *Links) Close() {
	l.cancel()
	l.wg.Wait()
}

// Send sends a message to a site. Without a stream it is dropped, and so is what is about
// tasks to a site whose version does not know them.
func (l *Links) Send(to job.SiteID, m meta.Message) {
	if s := l.session(to); s != nil && (s.hello.GetTasks() || !meta.OfTasks(m)) {
		s.enqueue(toProto(m))
	}
}

func (l *Links) session(site job.SiteID) *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streams[site]
}

func (l *Links) hello(to job.SiteID) *kithv1.PeerMessage {
	return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_Hello{Hello: &kithv1.Hello{
		SiteId: string(l.cfg.Site), Generation: l.cfg.Generation, Incarnation: l.cfg.Incarnation,
		Version: l.cfg.Version, Protocol: Protocol, PeerSiteId: string(to),
		Folder: folderBytes(l.cfg.Folder), Daemon: l.daemon, Tasks: true, Checkpoints: true, Estimates: true, Saves: !l.cfg.NoSaves,
	}}}
}

func folderBytes(f store.Folder) []byte {
	if f == (store.Folder{}) {
		return nil
	}
	return f[:]
}

// Errors of a handshake.
var (
	// ErrNotAdmitted is returned when a site is not known here.
	ErrNotAdmitted = errors.New("it is not admitted here")
	// ErrOtherSite is returned when another site answers than was dialled.
	ErrOtherSite = errors.New("another site answers at this address")
	// ErrProtocol is returned when the other side speaks another protocol.
	ErrProtocol = errors.New("peer speaks another protocol version")
	// ErrDuplicate is returned when a stream to the site is up already.
	ErrDuplicate = errors.New("a stream between the two sites is up already")
)

// greet checks the first frame of the other side. It must be of the site want, if
// that is not empty.
func (l *Links) greet(f *kithv1.Frame, want job.SiteID) (*kithv1.Hello, error) {
	if len(f.GetMessages()) != 1 || f.GetMessages()[0].GetHello() == nil {
		return nil, fmt.Errorf("first frame is not a hello: %w", ErrMessage)
	}
	h := f.GetMessages()[0].GetHello()
	if broken := wire.Check(h); len(broken) > 0 {
		return nil, fmt.Errorf("hello: %w: %w", broken[0], ErrMessage)
	}
	site, err := job.ParseSiteID(h.GetSiteId())
	switch {
	case err != nil:
		return nil, fmt.Errorf("hello: %w", err)
	case h.GetProtocol() != Protocol:
		return nil, fmt.Errorf("site %s speaks %d, this one %d: %w", site, h.GetProtocol(), Protocol, ErrProtocol)
	case want != "" && site != want:
		return nil, fmt.Errorf("it is %s, not %s: %w", site, want, ErrOtherSite)
	case site == l.cfg.Site:
		return nil, fmt.Errorf("site %s is this site: %w", site, ErrOtherSite)
	case h.GetPeerSiteId() != "" && h.GetPeerSiteId() != string(l.cfg.Site):
		return nil, fmt.Errorf("site %s looks for %q, this is %s: %w", site, h.GetPeerSiteId(), l.cfg.Site, ErrOtherSite)
	case l.cfg.Admit != nil && !l.cfg.Admit(site):
		return nil, fmt.Errorf("site %s: %w; %s", site, ErrNotAdmitted, l.remedies().admit(site))
	}
	return h, l.troubles.meet(h)
}

// register makes s the stream to its site, or says why an older one stays.
// When both sites dial, the stream that the site of the lower name dialled wins;
// a second stream of the same direction, or of a restarted peer, means that
// the first is dead.
//
// clash is the error that tells two daemons under one name of each other, nil if
// there is one.
func (l *Links) register(s *session, clash error) error {
	for {
		l.mu.Lock()
		old := l.streams[s.site]
		if old == nil {
			l.streams[s.site] = s
			l.mu.Unlock()
			return nil
		}
		l.mu.Unlock()
		restarted := s.hello.GetIncarnation() > old.hello.GetIncarnation()
		wins := s.dialled == (l.cfg.Site < s.site)
		if !restarted && s.dialled != old.dialled && !wins {
			return fmt.Errorf("site %s: %w", s.site, ErrDuplicate)
		}
		if clash == nil || daemonOf(s.hello, "").same(daemonOf(old.hello, "")) {
			clash = ErrReplaced
		}
		old.cancel(clash)
		select {
		case <-old.done:
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
}

// unregister takes a stream back that has ended.
func (l *Links) unregister(s *session) {
	l.mu.Lock()
	delete(l.streams, s.site)
	l.mu.Unlock()
	close(s.done)
}

// proves reports whether what proved the connection of a stream proves it still.
func (l *Links) proves(s *session) bool { return l.cfg.Proves == nil || l.cfg.Proves(s.ctx) }

// run carries a stream with the daemon at address from hello to end.
func (l *Links) run(ctx context.Context, w duplex, hello *kithv1.Hello, dialled bool, address string) error {
	s := &session{
		stream: newStream(ctx, w, hello, dialled, 3*l.cfg.Heartbeat), done: make(chan struct{}),
		pending: make(map[uint64]chan *kithv1.FileReply), serving: make(chan struct{}, servedAtOnce),
		limits: l.limitsOf(job.SiteID(hello.GetSiteId())),
	}
	defer s.cancel(nil)
	// What was voided takes the place of no stream that is up.
	if !l.proves(s) {
		return ErrOutdated
	}
	if err := l.register(s, l.troubles.met(hello, address)); err != nil {
		return err
	}
	// Registered, Recheck sees it; until then the proof may have been voided.
	if !l.proves(s) {
		l.unregister(s)
		return ErrOutdated
	}
	l.troubles.connected(s.site)
	if more, ok := l.troubles.comings.pass(s.site, time.Now()); ok {
		l.log.Info("peer connected", "peer_id", string(s.site), "dialled", dialled, "address", address,
			"version", hello.GetVersion(), "generation", job.GenerationText(hello.GetGeneration()), "lines_left_out", more)
	}
	l.handler.PeerUp(s.site, hello.GetGeneration(), hello.GetIncarnation(), Knows{Tasks: hello.GetTasks(), Checkpoints: hello.GetCheckpoints(), Estimates: hello.GetEstimates(), Saves: hello.GetSaves()})

	ended := make(chan error, 2)
	l.wg.Go(func() { ended <- s.write(l.cfg.Heartbeat) })
	l.wg.Go(func() { ended <- s.read(func(f *kithv1.Frame) { l.received(s, f) }) })
	l.wg.Go(func() { s.listen(l.cfg.Heartbeat) })
	l.wg.Go(func() { s.grants.load(s.ctx, l.cfg.Payload, s.poke) })
	l.wg.Go(func() { s.taskGrants.load(s.ctx, l.cfg.Bundle, s.poke) })
	var err error
	select {
	case err = <-ended:
		if cause := context.Cause(s.ctx); cause != nil && ctx.Err() == nil {
			err = cause // more telling than what gRPC makes of it
		}
	case <-s.ctx.Done():
		err = context.Cause(s.ctx)
	}
	s.cancel(err)
	if errors.Is(err, ErrSlow) {
		l.tellRefusal(Refusal{What: WhatStream, Site: s.site, Err: err})
	}

	// From here on nothing of this stream reaches the handler any more.
	s.gate.Lock()
	s.closed = true
	s.gate.Unlock()
	l.handler.PeerDown(s.site)
	l.unregister(s)
	if more, ok := l.troubles.comings.pass(s.site, time.Now()); ok {
		l.log.Info("peer disconnected", "peer_id", string(s.site), "reason", shown(fmt.Sprint(err)), "lines_left_out", more)
	}
	return err
}
