package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/cmd/kithd/config"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// logLines is a log that a test reads while it is written.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// with returns the lines with a message.
func (l *logLines) with(message string) []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []map[string]any
	for line := range strings.Lines(l.text.String()) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) == nil && strings.HasPrefix(entry["msg"].(string), message) {
			found = append(found, entry)
		}
	}
	return found
}

// reloading is a site under Run that reads its file again at a signal.
type reloading struct {
	*testSite
	path   string
	signal chan os.Signal
	level  *slog.LevelVar
	lines  *logLines
}

// startReloading starts a site. before, if not nil, is done before it runs.
func startReloading(t *testing.T, c config.Config, before func(r *reloading)) *reloading {
	t.Helper()
	r := &reloading{
		testSite: &testSite{t: t, cfg: c}, path: filepath.Join(t.TempDir(), "kithd.toml"),
		signal: make(chan os.Signal, 1), level: new(slog.LevelVar), lines: &logLines{},
	}
	r.logger = slog.New(slog.NewJSONHandler(r.lines, &slog.HandlerOptions{Level: r.level}))
	r.start()
	d := r.d
	r.d = nil // Run closes it
	r.write(r.cfg)
	if before != nil {
		before(r)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx, &Reload{Path: r.path, Signal: r.signal, Level: r.level}) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return r
}

func (r *reloading) write(c config.Config) {
	r.t.Helper()
	c.Listen.Address = "127.0.0.1:0" // as it was started
	r.writeText(string(c.TOML()))
}

func (r *reloading) writeText(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// hangUp sends the signal and waits for the line that says what came of it.
func (r *reloading) hangUp(message string) map[string]any {
	r.t.Helper()
	before := len(r.lines.with(message))
	r.signal <- syscall.SIGHUP
	var last map[string]any
	r.eventually(message, func() bool {
		lines := r.lines.with(message)
		if len(lines) > before {
			last = lines[len(lines)-1]
		}
		return last != nil
	})
	return last
}

func TestReloadTakesUp(t *testing.T) {
	t.Parallel()
	alpha := startReloading(t, testConfig(t, "alpha"), nil)
	c := testConfig(t, "beta")
	c.Peers = []config.Peer{{Site: "alpha", Address: alpha.cfg.Listen.Address}}
	beta := startSite(t, c)

	next := alpha.cfg
	next.Peers = []config.Peer{{Site: "beta", Address: beta.d.Address()}}
	next.Limits.Jobs, next.Log.Level = 1, "debug"
	next.Executor.Grace = 7 * time.Second
	alpha.write(next)
	alpha.hangUp("configuration reloaded")
	alpha.eventually("beta is connected and has its address", func() bool {
		resp, err := alpha.sites.ListSites(alpha.ctx(), &kithv1.ListSitesRequest{})
		return err == nil && slices.ContainsFunc(resp.GetSites(), func(s *kithv1.Site) bool {
			return s.GetId() == "beta" && s.GetProcessors() > 0 && s.GetAddress() == beta.d.Address() &&
				s.GetReachability() != kithv1.Site_REACHABILITY_UNREACHABLE
		})
	})
	if alpha.level.Level() != slog.LevelDebug {
		t.Errorf("the log's level is %v", alpha.level.Level())
	}
	left := alpha.lines.with("configuration change needs a restart")
	if len(left) != 1 || left[0]["key"] != "executor.grace" || left[0]["running"] != `"200ms"` || left[0]["file"] != `"7s"` || left[0]["level"] != "WARN" {
		t.Errorf("needs a restart: %v", left)
	}
	submit := func() error {
		_, err := alpha.jobs.SubmitJob(alpha.ctx(), &kithv1.SubmitJobRequest{Job: shell("sleep 60")})
		return err
	}
	if err := submit(); err != nil {
		t.Fatal(err)
	}
	if err := submit(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a job beyond the new limit: %v", err)
	}

	next.Peers = nil
	alpha.write(next)
	alpha.hangUp("configuration reloaded")
	alpha.eventually("beta is disconnected", func() bool {
		resp, err := alpha.sites.ListSites(alpha.ctx(), &kithv1.ListSitesRequest{})
		return err == nil && slices.ContainsFunc(resp.GetSites(), func(s *kithv1.Site) bool {
			return s.GetId() == "beta" && s.GetReachability() == kithv1.Site_REACHABILITY_UNREACHABLE
		})
	})
}

// A file with mistakes, or none, changes nothing, and the next one is taken up.
func TestReloadOfBadFile(t *testing.T) {
	t.Parallel()
	r := startReloading(t, testConfig(t, "alpha"), nil)
	r.writeText("site = \"alpha\"\n[limits]\njobs = 0\n[log]\nlevel = \"loud\"\n")
	line := r.hangUp("configuration not reloaded")
	if text, _ := json.Marshal(line["mistakes"]); !strings.Contains(string(text), "kithd.toml:3: limits.jobs") ||
		!strings.Contains(string(text), "kithd.toml:5: log.level") || line["level"] != "WARN" {
		t.Errorf("logged %v", line)
	}
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	if text, _ := json.Marshal(r.hangUp("configuration not reloaded")["mistakes"]); !strings.Contains(string(text), "no such file") {
		t.Errorf("logged %s", text)
	}
	next := r.cfg
	next.Limits.Jobs = 7
	r.write(next)
	r.hangUp("configuration reloaded")
	if got := r.lines.with("configuration changed"); len(got) != 1 || got[0]["key"] != "limits.jobs" || got[0]["old"] != "200000" || got[0]["new"] != "7" {
		t.Errorf("changes: %v", got)
	}
	r.hangUp("configuration reloaded") // twice in a row
	if got := r.lines.with("configuration changed"); len(got) != 1 {
		t.Errorf("changes: %v", got)
	}
}

// A signal that comes before the site is ready is heeded when it is.
func TestReloadBeforeReady(t *testing.T) {
	t.Parallel()
	r := startReloading(t, testConfig(t, "alpha"), func(r *reloading) { r.signal <- syscall.SIGHUP })
	r.eventually("it has read its file", func() bool { return len(r.lines.with("configuration reloaded")) == 1 })
}

// A reload does not wait for a disk that hangs.
func TestReloadWhileCommitsHang(t *testing.T) {
	t.Parallel()
	l, disk := jammedLoop(t, func(meta.Effect) {})
	defer func() {
		disk.free.Store(true)
		l.close()
	}()
	cfg := meta.Default()
	done := make(chan struct{})
	go func() {
		for range 3 * waitingInputs {
			l.tell(meta.Reconfigure{Placement: cfg.Placement, Limits: cfg.Limits, Timing: cfg.Timing})
		}
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the reload waits for the disk")
	}
}

// SIGHUP does not end kithd.
func TestHangup(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kithd.toml")
	text := minimal + "data = \"" + dir + "/data\"\n[listen]\ninsecure_loopback = true\naddress = \"127.0.0.1:0\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	lines := &logLines{}
	code := make(chan int, 1)
	go func() { code <- Main(ctx, []string{"--config", path}, lines, lines) }()
	wait := func(message string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); len(lines.with(message)) == 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("never logged %q", message)
			}
		}
	}
	wait("site ready")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	wait("configuration reloaded")
	stop()
	if c := <-code; c != 0 {
		t.Errorf("exit code %d", c)
	}
}
