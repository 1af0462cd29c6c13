package wan

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"kith/internal/pause"
)

const (
	// maxLine is the longest command, in bytes.
	maxLine = 1024
	// maxControllers is how many scripts are served at a time.
	maxControllers = 16
	// replyTimeout is how long a script may take to read its answer.
	replyTimeout = 10 * time.Second
)

// A control serves commands on a socket: a line in, lines of text and then
// "ok" or "error: …" out.
type control struct {
	listener net.Listener
	do       func(string) (string, error)
	log      *slog.Logger
	slots    chan struct{}
	ctx      context.Context // ends with the control
	stop     context.CancelFunc
	workers  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// newControl listens at an address as [Config] has it.
func newControl(text string, do func(string) (string, error), log *slog.Logger) (*control, error) {
	network, address, err := controlAddress(text)
	if err != nil {
		return nil, fmt.Errorf("control %q: %w", text, err)
	}
	listener, err := listenControl(network, address)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	c := &control{listener: listener, do: do, log: log, slots: make(chan struct{}, maxControllers), conns: make(map[net.Conn]struct{})}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// listenControl listens. A unix socket is for its owner alone; one that a
// dead process left behind is replaced.
func listenControl(network, address string) (net.Listener, error) {
	listener, err := net.Listen(network, address)
	if network != "unix" {
		return listener, err
	}
	if errors.Is(err, syscall.EADDRINUSE) && isStale(address) {
		if err := os.Remove(address); err != nil {
			return nil, err
		}
		listener, err = net.Listen(network, address)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(address, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// isStale reports whether path is a socket without a listener.
func isStale(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSocket == 0 {
		return false
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close() //nolint:errcheck // It was only to see who answers.
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// start begins to accept.
func (c *control) start() { c.workers.Go(c.accept) }

// close ends all conversations and waits for them.
func (c *control) close() error {
	c.stop()
	err := c.listener.Close()
	c.mu.Lock()
	for conn := range c.conns {
		conn.Close() //nolint:errcheck // It is over.
	}
	c.mu.Unlock()
	c.workers.Wait()
	return err
}

// accept takes connections as long as there are slots for them.
func (c *control) accept() {
	for {
		select {
		case <-c.ctx.Done():
			return
		case c.slots <- struct{}{}:
		}
		conn, err := c.listener.Accept()
		if err != nil {
			<-c.slots
			if errors.Is(err, net.ErrClosed) || !pause.For(c.ctx, acceptPause) {
				return
			}
			continue
		}
		c.workers.Go(func() {
			defer func() { <-c.slots }()
			c.converse(conn)
		})
	}
}

// converse answers the lines of one connection until it ends.
func (c *control) converse(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // Every answer was written or failed.
	if !c.track(conn) {
		return
	}
	defer c.untrack(conn)
	scanner := bufio.NewScanner(conn)
	scanner.Buffer(make([]byte, maxLine), maxLine)
	for scanner.Scan() {
		if !c.reply(conn, c.answer(scanner.Text())) {
			return
		}
	}
	if errors.Is(scanner.Err(), bufio.ErrTooLong) {
		c.reply(conn, fmt.Sprintf("error: a line has at most %d bytes\n", maxLine))
	}
}

// answer carries out a line and returns what to reply.
func (c *control) answer(line string) string {
	text, err := c.do(line)
	if err != nil {
		c.log.Warn("command failed", "line", line, "error", err)
		return "error: " + strings.ReplaceAll(err.Error(), "\n", "; ") + "\n"
	}
	c.log.Info("command", "line", line)
	return text + "ok\n"
}

// reply writes text in time.
func (c *control) reply(conn net.Conn, text string) bool {
	if err := conn.SetWriteDeadline(time.Now().Add(replyTimeout)); err != nil {
		return false
	}
	_, err := conn.Write([]byte(text))
	return err == nil
}

// track lets close end a connection; false if that has happened already.
func (c *control) track(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[conn] = struct{}{}
	return c.ctx.Err() == nil
}

// untrack undoes track.
func (c *control) untrack(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}
