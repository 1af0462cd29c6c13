package wan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"kith/internal/pause"
)

const (
	// dialTimeout is how long a target may take to answer.
	dialTimeout = 10 * time.Second
	// hangUpCheck is how often a connection that waits for a heal is looked at.
	hangUpCheck = time.Second
	// acceptPause is how long to wait when the system has no more files.
	acceptPause = 50 * time.Millisecond
)

// A link carries connections from its listener to its target.
type link struct {
	config    LinkConfig
	log       *slog.Logger
	listener  net.Listener
	out, back *way
	buffer    int
	slots     chan struct{}
	ctx       context.Context // ends with the link
	stop      context.CancelFunc
	workers   sync.WaitGroup

	mu        sync.Mutex
	resetting bool
	waiting   map[net.Conn]struct{}
	open      map[*connection]struct{}
	counts    linkCounts
}

// linkCounts is what has happened on a link.
type linkCounts struct {
	accepted, refused, abandoned, reset int64
}

// newLink listens. The caller starts it, and closes it in any case.
func newLink(config LinkConfig, c Config, index uint64, log *slog.Logger) (*link, error) {
	listener, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return nil, fmt.Errorf("link %s to %s: %w", config.From, config.To, err)
	}
	back := config.Path
	if config.Back != nil {
		back = *config.Back
	}
	l := &link{
		config:   config,
		log:      log.With("from", config.From, "to", config.To),
		listener: listener,
		out:      newWay(config.From, config.To, config.Path, rand.New(rand.NewPCG(c.Seed, 2*index))),
		back:     newWay(config.To, config.From, back, rand.New(rand.NewPCG(c.Seed, 2*index+1))),
		buffer:   c.BufferBytes,
		slots:    make(chan struct{}, c.MaxConnections),
		waiting:  make(map[net.Conn]struct{}),
		open:     make(map[*connection]struct{}),
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l, nil
}

// start begins to accept.
func (l *link) start() { l.workers.Go(l.accept) }

// close ends the link and all of its connections, and waits for them.
func (l *link) close() error {
	l.stop()
	err := l.listener.Close()
	l.mu.Lock()
	for c := range l.waiting {
		refuse(c)
	}
	for c := range l.open {
		c.reset()
	}
	l.mu.Unlock()
	l.workers.Wait()
	return err
}

// accept takes connections as long as there are slots for them; the others
// stay in the kernel's backlog.
func (l *link) accept() {
	for {
		select {
		case <-l.ctx.Done():
			return
		case l.slots <- struct{}{}:
		}
		conn, err := l.listener.Accept()
		if err != nil {
			<-l.slots
			if errors.Is(err, net.ErrClosed) {
				return
			}
			l.log.Warn("connection not accepted", "error", err)
			if !pause.For(l.ctx, acceptPause) {
				return
			}
			continue
		}
		l.workers.Go(func() {
			defer func() { <-l.slots }()
			l.carry(conn)
		})
	}
}

// carry takes one connection to the target, once both ways pass.
func (l *link) carry(client net.Conn) {
	if !l.admit(client) {
		return
	}
	if !l.waitForBothWays(client) {
		l.drop(client, func(c *linkCounts) { c.abandoned++ })
		return
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	target, err := dialer.DialContext(l.ctx, "tcp", l.config.Target)
	if err != nil {
		l.log.Debug("target refused", "error", err)
		l.drop(client, func(c *linkCounts) { c.refused++ })
		return
	}
	c := newConnection(client, target, l.out, l.back, l.buffer)
	l.promote(c)
	c.run()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

// admit counts a new connection; it refuses one that comes during a reset cut
// or after the end.
func (l *link) admit(client net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.accepted++
	if l.resetting || l.ctx.Err() != nil {
		l.counts.reset++
		refuse(client)
		return false
	}
	l.waiting[client] = struct{}{}
	return true
}

// drop refuses a connection that never reached the target.
func (l *link) drop(client net.Conn, count func(*linkCounts)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.waiting[client]; ok {
		delete(l.waiting, client)
		count(&l.counts)
		refuse(client)
	}
}

// promote makes a waiting connection an open one. If the link was reset while
// the target was dialled, the connection is over before it begins.
func (l *link) promote(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.waiting[c.client]; !ok || l.ctx.Err() != nil {
		c.reset()
	}
	delete(l.waiting, c.client)
	l.open[c] = struct{}{}
}

// waitForBothWays returns true when neither way is cut, as it takes both to
// open a connection; false when client gives up first or the link ends.
func (l *link) waitForBothWays(client net.Conn) bool {
	ticker := time.NewTicker(hangUpCheck)
	defer ticker.Stop()
	waited := false
	for !l.out.passes() || !l.back.passes() {
		waited = true
		select {
		case <-l.ctx.Done():
			return false
		case <-l.out.gate():
			select {
			case <-l.ctx.Done():
				return false
			case <-l.back.gate():
			case <-ticker.C:
			}
		case <-ticker.C:
		}
		if hungUp(client) {
			return false
		}
	}
	return !waited || !hungUp(client)
}

// reset cuts with resets: what is open ends, what comes is refused, until heal.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resetting = true
	for c := range l.waiting {
		delete(l.waiting, c)
		refuse(c)
		l.counts.reset++
	}
	for c := range l.open {
		c.reset()
		l.counts.reset++
	}
}

// heal ends what reset began.
func (l *link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resetting = false
}

// stats returns what the link is doing.
func (l *link) stats() LinkStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return LinkStats{
		From: l.config.From, To: l.config.To,
		Listen: l.listener.Addr().String(), Target: l.config.Target,
		Out: l.out.stats(), Back: l.back.stats(), Resetting: l.resetting,
		Open: len(l.open), Waiting: len(l.waiting), Accepted: l.counts.accepted,
		Refused: l.counts.refused, Abandoned: l.counts.abandoned, Reset: l.counts.reset,
	}
}
