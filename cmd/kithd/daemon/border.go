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

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"kith/meta/api"
)

// borderBounds are what strangers may take of a site before anything is known of
// them. One address gets a part of each, so that others find some.
type borderBounds struct {
	// connections at a time, in all and of one address.
	connections, connectionsOne int
	// calls at a time.
	calls, callsOne int
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
		calls: 16_384, callsOne: 8192,
		slow: 32, slowOne: 16, soon: 500 * time.Millisecond, whole: 30 * time.Second,
	}
}

// openFiles is how many files this process may open.
func openFiles() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 1024
	}
	return l.Cur
}

// border counts what comes in at the daemon's port.
type border struct {
	bounds borderBounds
	log    *slog.Logger

	mu          sync.Mutex
	connections map[string]int
	connected   int
	calls       map[string]int
	called      int
	slow        []*incoming // the oldest first
	told        map[string]*sayings
}

// sayings is when a line of a kind may go into the log again.
type sayings struct {
	next time.Time
	held int
}

func newBorder(b borderBounds, log *slog.Logger) *border {
	return &border{bounds: b, log: log, connections: make(map[string]int), calls: make(map[string]int), told: make(map[string]*sayings)}
}

// tell logs that a bound was met, each kind once a minute. The mutex is held.
func (b *border) tell(kind, address string, most int) {
	now := time.Now()
	s := b.told[kind]
	if s == nil {
		s = &sayings{}
		b.told[kind] = s
	}
	if now.Before(s.next) {
		s.held++
		return
	}
	b.log.Warn("bound met", "bound", kind, "most", most, "address", address, "met_since_last_line", s.held)
	s.next, s.held = now.Add(time.Minute), 0
}

func hostOf(a net.Addr) string {
	if host, _, err := net.SplitHostPort(a.String()); err == nil {
		return host
	}
	return a.String()
}

// listener lets in as many connections as there are places.
func (b *border) listener(l net.Listener) net.Listener { return &borderListener{l, b} }

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
				l.border.mu.Lock()
				l.border.tell("connections cannot be accepted: "+err.Error(), "", l.border.bounds.connections)
				l.border.mu.Unlock()
			}
			return nil, err
		}
		if l.border.connect(hostOf(c.RemoteAddr())) {
			return &borderConn{Conn: c, border: l.border}, nil
		}
		c.Close() //nolint:errcheck // it was not let in
	}
}

func (b *border) connect(host string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.connected >= b.bounds.connections:
		b.tell("connections", host, b.bounds.connections)
		return false
	case b.connections[host] >= b.bounds.connectionsOne:
		b.tell("connections of one address", host, b.bounds.connectionsOne)
		return false
	}
	b.connected++
	b.connections[host]++
	return true
}

type borderConn struct {
	net.Conn
	border *border
	once   sync.Once
}

// Close implements net.Conn.
func (c *borderConn) Close() error {
	c.once.Do(func() {
		b, host := c.border, hostOf(c.RemoteAddr())
		b.mu.Lock()
		defer b.mu.Unlock()
		b.connected--
		if b.connections[host]--; b.connections[host] == 0 {
			delete(b.connections, host)
		}
	})
	return c.Conn.Close()
}

// incoming is a call whose request is on its way.
type incoming struct {
	b      *border
	host   string
	end    context.CancelFunc
	late   *time.Timer
	isSlow bool
	over   bool // it has come whole, or its call has ended
}

type incomingKey struct{}

// tap sees a call when its headers have come and nothing else.
func (b *border) tap(ctx context.Context, _ *tap.Info) (context.Context, error) {
	host := ""
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		host = hostOf(p.Addr)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.called >= b.bounds.calls:
		b.tell("calls", host, b.bounds.calls)
		return ctx, api.Refusal(api.ErrBusy)
	case b.calls[host] >= b.bounds.callsOne:
		b.tell("calls of one address", host, b.bounds.callsOne)
		return ctx, api.Refusal(api.ErrBusy)
	}
	b.called++
	b.calls[host]++
	ctx, end := context.WithCancel(ctx)
	in := &incoming{b: b, host: host, end: end}
	in.late = time.AfterFunc(b.bounds.soon, in.slow)
	context.AfterFunc(ctx, in.left)
	return context.WithValue(ctx, incomingKey{}, in), nil
}

// left gives the place of a call back.
func (in *incoming) left() {
	b := in.b
	b.mu.Lock()
	defer b.mu.Unlock()
	in.finish()
	b.called--
	if b.calls[in.host]--; b.calls[in.host] == 0 {
		delete(b.calls, in.host)
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

// slow makes room for a request that takes its time: where there are too many, the
// address with most of them gives its oldest up.
func (in *incoming) slow() {
	b := in.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if in.over {
		return
	}
	if in.isSlow { // for as long as it may be
		b.tell("time of a request", in.host, int(b.bounds.whole.Seconds()))
		in.end()
		return
	}
	in.isSlow = true
	in.late.Reset(b.bounds.whole - b.bounds.soon)
	b.slow = append(b.slow, in)
	of := make(map[string]int)
	for _, o := range b.slow {
		of[o.host]++
	}
	from := in.host
	switch {
	case of[from] > b.bounds.slowOne:
		b.tell("slow requests of one address", from, b.bounds.slowOne)
	case len(b.slow) > b.bounds.slow:
		from = slices.MaxFunc(b.slow, func(x, y *incoming) int { return cmp.Compare(of[x.host], of[y.host]) }).host
		b.tell("slow requests", from, b.bounds.slow)
	default:
		return
	}
	oldest := b.slow[slices.IndexFunc(b.slow, func(o *incoming) bool { return o.host == from })]
	oldest.finish()
	oldest.end()
}

// wholeUnary is an interceptor: the requests of its calls have come.
func wholeUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	whole(ctx)
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
