package daemon

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"kith/cmd/kithd/frames"
	"kith/internal/job"
	"kith/internal/loglines"
	"kith/internal/places"
	"kith/internal/synfilter"
	"kith/meta/api"
)

// borderBounds are what strangers may take of a site before anything is known of
// them. One address gets a part of each, so that others find some.
type borderBounds struct {
	// connections at a time, in all and of one address.
	connections, connectionsOne int
	// calls at a time.
	calls, callsOne int
	// callsSocket are calls at a time over the socket of this machine, which take none of
	// the places of the port.
	callsSocket int
	// slow are calls whose request has not come whole soon after it began. Of these
	// the oldest is ended when there are more: each may hold a message's bytes.
	slow, slowOne int
	soon          time.Duration // after it a request is slow
	whole         time.Duration // within it a request must have come
}

// defaultBounds are those of a process that may open so many files. Half of them are
// left for jobs, their files, the store and streams to peers.
func defaultBounds(files uint64) borderBounds {
	connections := int(min(max(files/2, 32), 4096))
	return borderBounds{
		connections: connections, connectionsOne: connections / 2,
		calls: 16_384, callsOne: 8192, callsSocket: 2048,
		slow: 32, slowOne: 16, soon: 500 * time.Millisecond, whole: 30 * time.Second,
	}
}

// border counts what comes in at the daemon's port.
type border struct {
	bounds borderBounds
	log    *slog.Logger
	// refused is told of every time that a bound is met; nil for nobody. It must not wait.
	refused func(kind, address string)

	filter *synfilter.Filter // of the port; nil if it takes none

	// By address.
	connections, calls, socketCalls places.Places

	told    loglines.Pacer[string]   // of lines about bounds, by kind
	callers loglines.Pacer[struct{}] // of lines about callers that could not prove who they are

	mu   sync.Mutex
	slow []*incoming // the oldest first
}

func newBorder(b borderBounds, log *slog.Logger) *border {
	return &border{
		bounds: b, log: log,
		connections: places.Places{Most: b.connections, MostOne: b.connectionsOne},
		calls:       places.Places{Most: b.calls, MostOne: b.callsOne},
		socketCalls: places.Places{Most: b.callsSocket, MostOne: b.callsSocket},
	}
}

// tell logs that a bound was met, each kind once a minute.
func (b *border) tell(kind, address string, most int) {
	if b.refused != nil {
		b.refused(kind, address)
	}
	b.line(kind, address, most)
}

// line writes a line of [border.tell].
func (b *border) line(kind, address string, most int) {
	if held, ok := b.told.Pass(kind, time.Now(), time.Minute); ok {
		b.log.Warn("bound met", "bound", kind, "most", most, "address", address, "met_since_last_line", held)
	}
}

// tellCaller logs that a caller could not prove who it is, once a second.
func (b *border) tellCaller(address string, err error) {
	if held, ok := b.callers.Pass(struct{}{}, time.Now(), time.Second); ok {
		b.log.Warn("caller refused", "address", address, "error", job.ClipReason(err.Error()), "refused_since_last_line", held)
	}
}

// enter takes a place for what comes from an address, named in the plural. It takes none if
// a bound is met, and returns that.
func (b *border) enter(p *places.Places, what, host string) places.Bound {
	met := p.Enter(host)
	switch met {
	case places.InAll:
		b.tell(what, host, p.Most)
	case places.OfOne:
		b.tell(what+" of one address", host, p.MostOne)
	}
	return met
}

// hostOf returns what the address of a connection counts as, see [places.Sender].
func hostOf(a net.Addr) string {
	switch a := a.(type) {
	case *callerAddress:
		return a.host
	case *net.UnixAddr:
		return a.Name
	}
	return places.Sender(a.String())
}

// shutFor is how long the kernel drops what an address asks for that has met a bound of
// connections. Who asks again after a second, as TCP does, comes in if there is room then.
const shutFor = time.Second

// shut has the kernel drop further requests for connections from an address.
func (b *border) shut(host string) { b.filter.Shut(host, shutFor) }

// listener lets in as many connections as there are places.
func (b *border) listener(l net.Listener) net.Listener {
	b.filter = synfilter.New(l)
	return &borderListener{l, b}
}

type borderListener struct {
	net.Listener
	border *border
}

// Accept implements net.Listener. A connection beyond a bound is closed at once.
func (l *borderListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				l.border.tell("connections cannot be accepted: "+err.Error(), "", l.border.bounds.connections)
			}
			return nil, err
		}
		from := &callerAddress{Addr: c.RemoteAddr(), text: c.RemoteAddr().String(), host: hostOf(c.RemoteAddr())}
		met := l.border.enter(&l.border.connections, "connections", from.host)
		if met == places.None {
			return &borderConn{Conn: c, border: l.border, from: from}, nil
		}
		if met == places.OfOne {
			l.border.shut(from.host)
		}
		c.Close() //nolint:errcheck // it was not let in
	}
}

// callerAddress is where a connection comes from, in words: each call on it asks for them.
type callerAddress struct {
	net.Addr
	text string
	host string // what it counts as
}

// String implements net.Addr.
func (a *callerAddress) String() string { return a.text }

type borderConn struct {
	net.Conn
	border *border
	from   *callerAddress
	once   sync.Once
}

// RemoteAddr implements net.Conn.
func (c *borderConn) RemoteAddr() net.Addr { return c.from }

// Close implements net.Conn.
func (c *borderConn) Close() error {
	c.once.Do(func() { c.border.connections.Leave(c.from.host) })
	return c.Conn.Close()
}

// incoming is a call whose request is on its way, and its context.
type incoming struct {
	context.Context
	b      *border
	host   string
	place  *places.Places // one of these
	paced  *frames.Conn   // the connection, nil if nothing paces it
	end    context.CancelFunc
	stay   func() bool // the end of the context gives no place back
	late   *time.Timer
	isSlow bool
	over   bool // it has come whole, or its call has ended
}

type incomingKey struct{}

// Value implements context.Context.
func (in *incoming) Value(key any) any {
	if key == (incomingKey{}) {
		return in
	}
	return in.Context.Value(key)
}

// tap sees a call when its headers have come and nothing else.
func (b *border) tap(ctx context.Context, _ *tap.Info) (context.Context, error) {
	host, local := "", false
	var paced *frames.Conn
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		host, local, paced = hostOf(p.Addr), p.Addr.Network() == "unix", pacedOf(p.AuthInfo)
	}
	place, what := &b.calls, "calls"
	if local {
		place, what = &b.socketCalls, "calls over the socket"
	}
	if b.enter(place, what, host) != places.None {
		return ctx, api.Refusal(api.ErrBusy)
	}
	ctx, end := context.WithCancel(ctx)
	in := &incoming{Context: ctx, b: b, host: host, place: place, paced: paced, end: end}
	if paced != nil {
		paced.Begin()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	in.late = time.AfterFunc(b.bounds.soon, in.slow)
	in.stay = context.AfterFunc(ctx, in.left)
	return in, nil
}

// left gives the place of a call back.
func (in *incoming) left() {
	in.b.mu.Lock()
	in.finish()
	in.b.mu.Unlock()
	in.place.Leave(in.host)
	if in.paced != nil {
		in.paced.End()
	}
}

// answered gives the place of a call back that has its answer. The end of its context
// would do so too, on a goroutine for each.
func (in *incoming) answered() {
	if in.stay() {
		in.left()
	}
}

// whole notes that the request of a call has come.
func whole(ctx context.Context) {
	if in, ok := ctx.Value(incomingKey{}).(*incoming); ok {
		in.b.mu.Lock()
		defer in.b.mu.Unlock()
		in.finish()
	}
}

// finish ends what was to be done about a request that does not come. The mutex is held.
func (in *incoming) finish() {
	if in.over {
		return
	}
	in.over = true
	in.late.Stop()
	if in.isSlow {
		in.b.slow = slices.DeleteFunc(in.b.slow, func(o *incoming) bool { return o == in })
	}
}

// slow makes room for a request that takes its time, and tells of it.
func (in *incoming) slow() {
	if bound, from, most := in.makeRoom(); bound != "" {
		in.b.tell(bound, from, most)
	}
}

// makeRoom ends a request where there are too many slow ones: the address with most of them
// gives its oldest up. It returns the bound that was met, "" for none.
func (in *incoming) makeRoom() (bound, from string, most int) {
	b := in.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if in.over {
		return "", "", 0
	}
	if in.isSlow { // for as long as it may be
		in.end()
		return "time of a request", in.host, int(b.bounds.whole.Seconds())
	}
	in.isSlow = true
	in.late.Reset(b.bounds.whole - b.bounds.soon)
	b.slow = append(b.slow, in)
	of := make(map[string]int)
	for _, o := range b.slow {
		of[o.host]++
	}
	switch {
	case of[in.host] > b.bounds.slowOne:
		bound, from, most = "slow requests of one address", in.host, b.bounds.slowOne
	case len(b.slow) > b.bounds.slow:
		from = slices.MaxFunc(b.slow, func(x, y *incoming) int { return cmp.Compare(of[x.host], of[y.host]) }).host
		bound, most = "slow requests", b.bounds.slow
	default:
		return "", "", 0
	}
	oldest := b.slow[slices.IndexFunc(b.slow, func(o *incoming) bool { return o.host == from })]
	oldest.finish()
	oldest.end()
	return bound, from, most
}

// wholeUnary is an interceptor: the requests of its calls have come.
func wholeUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	in, ok := ctx.Value(incomingKey{}).(*incoming)
	if !ok {
		return next(ctx, req)
	}
	whole(in)
	defer in.answered()
	return next(ctx, req)
}

// wholeStream is [wholeUnary] for streams: their first message is the request.
func wholeStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return next(srv, &wholeMessages{ServerStream: stream})
}

type wholeMessages struct {
	grpc.ServerStream
	told bool
}

// RecvMsg implements grpc.ServerStream.
func (s *wholeMessages) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if !s.told { // the first message has come, or none will
		s.told = true
		whole(s.Context())
	}
	return err
}
