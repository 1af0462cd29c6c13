package raftstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"kith/internal/loglines"
)

// maxGreetings is how many connections may be at their greeting.
const maxGreetings = 32

// streams gives raft connections whose greeting is done.
type streams struct {
	cfg   *Config
	whose snapshotHead
	// started is closed when this member has taken up what it has of its site. Nobody is answered before.
	started <-chan struct{}
	// applied says how far this member is, empty whether it has nothing of its site.
	applied func() uint64
	empty   func() bool
	// votes reports whether another member has a vote. It may wait until ctx ends.
	votes func(ctx context.Context, name string) bool

	greeted chan net.Conn
	places  chan struct{}
	ctx     context.Context // it ends with Close
	end     context.CancelFunc
	wait    sync.WaitGroup

	mu   sync.Mutex
	open map[*stream]struct{} // nil once it is closed
	pace loglines.Pacer[string]
}

// stream is a connection that raft has. The library does not close those it has in reserve, nor
// those that others have dialled.
type stream struct {
	net.Conn
	of *streams
}

// Close implements [net.Conn].
func (c *stream) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// keep returns a connection that is closed with s.
func (s *streams) keep(conn net.Conn) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		conn.Close() //nolint:errcheck // nobody speaks on it
		return nil, net.ErrClosed
	}
	c := &stream{conn, s}
	s.open[c] = struct{}{}
	return c, nil
}

var _ raft.StreamLayer = (*streams)(nil)

func newStreams(cfg *Config, whose snapshotHead, m *Member) *streams {
	s := &streams{cfg: cfg, whose: whose, started: m.started, applied: m.machine.applied.Load, empty: m.empty, votes: m.votes, greeted: make(chan net.Conn), places: make(chan struct{}, maxGreetings), open: make(map[*stream]struct{})}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.wait.Go(s.listen)
	return s
}

// listen takes connections and hears their greetings, each beside the others.
func (s *streams) listen() {
	for {
		conn, err := s.cfg.Listener.Accept()
		if s.ctx.Err() != nil {
			if err == nil {
				conn.Close() //nolint:errcheck // nobody speaks on it
			}
			return
		}
		if err != nil {
			s.warn("connections of members are not taken", "error", err)
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-s.ctx.Done():
				return
			}
		}
		select {
		case s.places <- struct{}{}:
			s.wait.Go(func() {
				defer func() { <-s.places }()
				s.hear(conn)
			})
		default:
			s.warn("too many connections of members at their greeting", "from", conn.RemoteAddr())
			conn.Close() //nolint:errcheck // nobody speaks on it
		}
	}
}

// warn logs a line a minute of each kind.
func (s *streams) warn(what string, args ...any) {
	if held, ok := s.pace.Pass(what, time.Now(), linePause); ok {
		s.cfg.Logger.Warn(what, append(args, "held_back", held)...)
	}
}

// hear answers a greeting, and hands the connection to raft if that is welcome.
func (s *streams) hear(conn net.Conn) {
	handed := false
	defer func() {
		if !handed {
			conn.Close() //nolint:errcheck // nobody speaks on it any more
		}
	}()
	stop := context.AfterFunc(s.ctx, func() { conn.Close() }) //nolint:errcheck // it ends the greeting
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(greetingTime)); err != nil {
		return
	}
	g, version, err := readGreeting(conn)
	if err != nil {
		s.warn("greeting of a member", "from", conn.RemoteAddr(), "error", err)
		return
	}
	select {
	case <-s.started:
	case <-s.ctx.Done():
		return
	}
	if err := conn.SetDeadline(time.Now().Add(greetingTime)); err != nil {
		return
	}
	a := g.judge(version, s.whose, s.cfg.Name)
	if a.code != welcome {
		s.warn("a member is refused", "from", conn.RemoteAddr(), "member", g.from, "reason", a.text)
	}
	a.applied = s.applied()
	if a.code == welcome && s.empty() {
		a.text = nothing
	}
	if _, err := conn.Write(a.marshal()); err != nil || a.code != welcome || g.purpose != forRaft {
		return
	}
	if err := conn.SetDeadline(time.Time{}); err != nil || !stop() {
		return
	}
	select {
	case s.greeted <- conn:
		handed = true
	case <-s.ctx.Done():
	}
}

// Accept implements [net.Listener].
func (s *streams) Accept() (net.Conn, error) {
	select {
	case conn := <-s.greeted:
		return s.keep(conn)
	case <-s.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (s *streams) Close() error {
	s.end()
	err := s.cfg.Listener.Close()
	s.mu.Lock()
	for c := range s.open {
		c.Conn.Close() //nolint:errcheck // nobody speaks on it any more
	}
	s.open = nil
	s.mu.Unlock()
	s.wait.Wait()
	return err
}

// Addr implements [net.Listener]: it is how the others know this member.
func (s *streams) Addr() net.Addr { return memberAddr(s.cfg.serverAddress()) }

type memberAddr string

func (a memberAddr) Network() string { return "kith-raft" }
func (a memberAddr) String() string  { return string(a) }

// Dial implements [raft.StreamLayer].
func (s *streams) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	if timeout <= 0 {
		timeout = greetingTime
	}
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	to := parseAddress(address)
	conn, a, err := s.dial(ctx, to, forRaft)
	if err != nil {
		return nil, err
	}
	// What it had taken before it lost its disk counts for a majority, and what it takes now would
	// count a second time.
	if a.text == nothing && s.votes(ctx, to.Name) {
		s.warn("a member with a vote has an empty folder: it is left out", "member_name", to.Name, "address", to.Address,
			"remedy", fmt.Sprintf("kith site members remove %s, then kith site members add %s %s", to.Name, to.Name, to.Address))
		return nil, errors.Join(fmt.Errorf("member %s: %w", to.Name, errEmptied), conn.Close())
	}
	return s.keep(conn)
}

func (s *streams) dial(ctx context.Context, to Peer, purpose byte) (net.Conn, answer, error) {
	conn, err := s.cfg.Dial(ctx, to.Address)
	if err != nil {
		return nil, answer{}, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() }) //nolint:errcheck // it ends the greeting
	a, err := greet(conn, greeting{purpose: purpose, from: s.cfg.Name, to: to.Name, whose: s.whose})
	if err != nil {
		stop()
		return nil, a, err
	}
	if !stop() {
		return nil, a, context.Cause(ctx)
	}
	return conn, a, nil
}

// errEmptied is returned for a member that has a vote and nothing of its site.
var errEmptied = errors.New("it has a vote and an empty folder")

// ask returns what a member says of itself.
func (s *streams) ask(ctx context.Context, to Peer) (answer, error) {
	conn, a, err := s.dial(ctx, to, forAsk)
	if err != nil {
		return a, err
	}
	return a, conn.Close()
}
