// Package local runs a federation on this machine: every site is a kithd
// process of its own, on loopback, with its data in a folder. The demo, the
// benchmarks and the tests that kill things stand on it.
package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/programs"
)

// Config is a federation on this machine.
type Config struct {
	// Dir holds a folder for every site; it must exist.
	Dir string
	// Program and Args start a kithd; "--config FILE" is added. Without them it is
	// the kithd beside the running program, or one built for the occasion, see
	// [programs.Find]; a program that begins with inprocess.Main is its own kithd.
	Program string
	Args    []string
	Sites   []Site
	// Log receives every line that a site logs, with its name; nil for none.
	// It is called by one goroutine a site.
	Log func(site string, line []byte)
	// Note is told what takes time before sites can start; nil for none.
	Note func(text string)
	// StartTimeout is how long a site may take to become ready. Default 30 s.
	StartTimeout time.Duration
	// Insecure leaves the sites without keys: they serve plaintext on loopback and know each
	// other by their configuration. Otherwise they have keys, know each other by invitations,
	// speak mutual TLS, and are asked over their unix sockets.
	Insecure bool
	// Via returns the address at which one site reaches another, host:port, and "" where
	// it does not dial; nil for the other's own. It is asked of sites with keys alone.
	Via func(from, to string) string
}

// Site is a site of a federation. Tune adjusts its configuration, which
// otherwise is the default on a free port. Program is the kithd that it begins
// with if not the federation's; see [Node.Use].
type Site struct {
	Name    string
	Tune    func(*config.Config)
	Program string
}

// Federation is what runs.
type Federation struct {
	cfg   Config
	nodes []*Node
	// members are the sites beside nodes that several machines keep.
	members []*Members
	found   *programs.Set // what was built for it; nil if nothing was looked for
}

// Node is a site that runs, or has run and can be started again.
type Node struct {
	Name    string
	Config  config.Config
	Address string // host:port
	// Jobs, Bags, Sites, Files and Trust are clients to it; they survive restarts.
	Jobs  kithv1.JobServiceClient
	Bags  kithv1.BagServiceClient
	Sites kithv1.SiteServiceClient
	Files kithv1.FileServiceClient
	Trust kithv1.TrustServiceClient

	f    *Federation
	conn *grpc.ClientConn
	dir  string

	mu      sync.Mutex
	program program
	cmd     *exec.Cmd
	done    chan struct{} // closed when the process has ended and its log is read
}

// Start starts all sites and returns when each is connected to every other.
func Start(ctx context.Context, cfg Config) (*Federation, error) {
	if cfg.StartTimeout <= 0 {
		cfg.StartTimeout = 30 * time.Second
	}
	f := &Federation{cfg: cfg}
	if cfg.Program == "" {
		if err := f.find(ctx); err != nil {
			return nil, err
		}
	}
	begin := f.startSecure
	if cfg.Insecure {
		begin = f.startPlain
	}
	err := begin(ctx)
	if err == nil {
		err = f.Connected(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// startPlain starts sites without keys, one after the other: each must know where those
// before it listen.
func (f *Federation) startPlain(ctx context.Context) error {
	for i := range f.cfg.Sites {
		n, err := f.prepare(i)
		if err != nil {
			return err
		}
		f.nodes = append(f.nodes, n)
		if err := n.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Nodes returns the sites in the order of the configuration.
func (f *Federation) Nodes() []*Node { return f.nodes }

// prepare makes a site's configuration. Sites without keys dial the ones before them.
func (f *Federation) prepare(i int) (*Node, error) {
	s := f.cfg.Sites[i]
	c := config.Default()
	c.Site, c.Data = s.Name, filepath.Join(f.cfg.Dir, s.Name)
	c.Listen.Address, c.Listen.InsecureLoopback = "127.0.0.1:0", f.cfg.Insecure
	// All runs under one account, and its user starts the federation.
	c.Listen.AllowOwnUID = !f.cfg.Insecure
	c.Executor.Pin = false // several sites share the machine
	for k, other := range f.cfg.Sites {
		p := config.Peer{Site: other.Name}
		if k < i {
			p.Address = f.nodes[k].Address
		}
		if k != i && f.cfg.Insecure {
			c.Peers = append(c.Peers, p)
		}
	}
	if s.Tune != nil {
		s.Tune(&c)
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("site %s: %w", s.Name, err)
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, fmt.Errorf("site %s: %w", s.Name, err)
	}
	n := &Node{Name: s.Name, Config: c, f: f, dir: c.Data}
	return n, n.Use(s.Program)
}

// Start starts the site's kithd and returns when it is ready. A port once
// given stays the site's for good.
func (n *Node) Start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		return nil
	}
	path := filepath.Join(n.dir, "kithd.toml")
	if err := writeConfig(path, n.Config, n.program.unknown); err != nil {
		return fmt.Errorf("site %s: %w", n.Name, err)
	}
	cmd := n.program.command("--config", path)
	// A session of its own: a Ctrl-C at the terminal is for the program that
	// started the federation, which then ends its sites in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("site %s: %w", n.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("site %s: %w", n.Name, err)
	}
	ready := make(chan string, 1)
	n.cmd, n.done = cmd, make(chan struct{})
	go n.follow(cmd, stderr, ready, n.done)
	timeout := time.NewTimer(n.f.cfg.StartTimeout)
	defer timeout.Stop()
	select {
	case address, ok := <-ready:
		if !ok {
			<-n.done
			n.cmd = nil
			return fmt.Errorf("site %s: kithd ended at once; see %s", n.Name, n.LogPath())
		}
		return n.dial(address)
	case <-timeout.C:
		err = fmt.Errorf("site %s: not ready after %v; see %s", n.Name, n.f.cfg.StartTimeout, n.LogPath())
	case <-ctx.Done():
		err = ctx.Err()
	}
	cmd.Process.Kill() //nolint:errcheck // it may have ended meanwhile
	<-n.done
	n.cmd = nil
	return err
}

// Ended reports whether the site's kithd has ended although it was neither stopped
// nor killed here.
func (n *Node) Ended() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return false
	}
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// LogPath is the file that the site's log goes to.
func (n *Node) LogPath() string {
	name := n.Name
	if self := n.Config.Members.Self; self != "" {
		name += "-" + self
	}
	return filepath.Join(n.f.cfg.Dir, name+".log")
}

// follow copies the log to its file, says when the site is ready, and waits
// for the end of the process.
func (n *Node) follow(cmd *exec.Cmd, stderr io.Reader, ready chan<- string, done chan<- struct{}) {
	defer close(done)
	file, err := os.OpenFile(n.LogPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		file = nil
	} else {
		defer file.Close() //nolint:errcheck // as with writing to it
	}
	lines := bufio.NewScanner(stderr)
	lines.Buffer(make([]byte, 64<<10), 4<<20)
	for lines.Scan() {
		line := lines.Bytes()
		if file != nil {
			file.Write(append(line, '\n')) //nolint:errcheck // a log that cannot be written is no reason to stop
		}
		if ready != nil {
			var l struct{ Msg, Address string }
			if json.Unmarshal(line, &l) == nil && (l.Msg == "site ready" || l.Msg == "member ready") {
				ready <- l.Address
				ready = nil
			}
		}
		if n.f.cfg.Log != nil {
			n.f.cfg.Log(n.Name, line)
		}
	}
	if ready != nil {
		close(ready)
	}
	cmd.Wait() //nolint:errcheck // how it ended is in its log
}

// dial makes the clients, once: the address does not change.
func (n *Node) dial(address string) error {
	n.Address, n.Config.Listen.Address = address, address
	if n.conn != nil {
		return nil
	}
	target := "passthrough:///" + address
	if n.Config.SocketPath() != "" {
		target = n.Target()
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second}))
	if err != nil {
		return fmt.Errorf("site %s: %w", n.Name, err)
	}
	n.conn = conn
	n.clients(conn)
	return nil
}

// clients makes the clients over a connection.
func (n *Node) clients(conn grpc.ClientConnInterface) {
	n.Bags = kithv1.NewBagServiceClient(conn)
	n.Jobs, n.Sites = kithv1.NewJobServiceClient(conn), kithv1.NewSiteServiceClient(conn)
	n.Files, n.Trust = kithv1.NewFileServiceClient(conn), kithv1.NewTrustServiceClient(conn)
}

// PID returns the process id of the site's kithd, 0 if it does not run.
func (n *Node) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return 0
	}
	return n.cmd.Process.Pid
}

// Signal sends a signal to the site's kithd.
func (n *Node) Signal(s syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return os.ErrProcessDone
	}
	return n.cmd.Process.Signal(s)
}

// Kill kills the site's kithd as a crash does; jobs run on.
func (n *Node) Kill() { n.end(syscall.SIGKILL, time.Minute) }

// Stop stops the site's kithd in order; jobs run on.
func (n *Node) Stop() { n.end(syscall.SIGTERM, 15*time.Second) }

// end sends a signal and waits; what does not end in time is killed.
func (n *Node) end(s syscall.Signal, patience time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return
	}
	n.cmd.Process.Signal(s) //nolint:errcheck // it may have ended meanwhile
	select {
	case <-n.done:
	case <-time.After(patience):
		n.cmd.Process.Kill() //nolint:errcheck // it may have ended meanwhile
		<-n.done
	}
	n.cmd = nil
}

// Connected waits until every site that runs has a stream to every other one.
func (f *Federation) Connected(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.StartTimeout)
	defer cancel()
	for {
		missing := f.unconnected(ctx)
		if missing == "" {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("sites did not find each other: %s: %w", missing, ctx.Err())
		}
	}
}

func (f *Federation) unconnected(ctx context.Context) string {
	running := make(map[string]bool)
	for _, n := range f.nodes {
		running[n.Name] = n.PID() != 0
	}
	for _, n := range f.nodes {
		if !running[n.Name] {
			continue
		}
		r, err := n.Sites.ListSites(ctx, &kithv1.ListSitesRequest{})
		if err != nil {
			return fmt.Sprintf("%s: %v", n.Name, err)
		}
		heard := make(map[string]bool)
		for _, s := range r.GetSites() {
			heard[s.GetId()] = s.GetReachability() != kithv1.Site_REACHABILITY_UNREACHABLE && s.GetProcessors() != 0
		}
		for _, other := range f.nodes {
			if running[other.Name] && !heard[other.Name] {
				return fmt.Sprintf("%s has not heard of %s", n.Name, other.Name)
			}
		}
	}
	return ""
}

// Cancel cancels all jobs that have not ended, so that nothing outlives the
// federation, and waits for a moment until they have.
func (f *Federation) Cancel(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		open := 0
		for _, n := range f.nodes {
			if n.PID() == 0 {
				continue
			}
			r, err := n.Jobs.ListJobs(ctx, &kithv1.ListJobsRequest{PageSize: 1000})
			if err != nil {
				continue
			}
			for _, j := range r.GetJobs() {
				open++
				n.Jobs.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: j.GetId()}) //nolint:errcheck // it may have ended meanwhile
			}
		}
		if open == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Close stops all sites and waits for them.
func (f *Federation) Close() error {
	var wg sync.WaitGroup
	var errs []error
	for _, n := range f.nodes {
		wg.Go(n.Stop)
		if n.conn != nil {
			errs = append(errs, n.conn.Close())
			n.conn = nil
		}
	}
	wg.Wait()
	if f.found != nil {
		errs = append(errs, f.found.Remove())
	}
	return errors.Join(errs...)
}
