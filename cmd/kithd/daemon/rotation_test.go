package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	"kith/meta/trust"
	kithv1 "kith/proto/gen/kith/v1"
)

// line is what lies between a site and those that dial it, and counts their connections.
type line struct {
	net.Listener
	mu     sync.Mutex
	to     string
	dialed int // connections of kith-peer/1 that reached the site
	wg     sync.WaitGroup
}

func newLine(t *testing.T) *line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	one := &line{Listener: l}
	one.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			one.wg.Go(func() { one.carry(c) })
		}
	})
	t.Cleanup(func() { l.Close(); one.wg.Wait() })
	return one
}

// lead says to whom the line leads.
func (l *line) lead(to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
}

// carry connects one who dialled to the site, until either hangs up.
func (l *line) carry(c net.Conn) {
	defer c.Close() //nolint:errcheck // it is over
	l.mu.Lock()
	to := l.to
	l.mu.Unlock()
	site, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer site.Close() //nolint:errcheck // it is over
	hello := make([]byte, 16<<10)
	n, err := c.Read(hello) // the protocol is named in the first bytes, unencrypted
	if err != nil {
		return
	}
	if bytes.Contains(hello[:n], []byte(trust.ALPNPeer)) {
		l.mu.Lock()
		l.dialed++
		l.mu.Unlock()
	}
	if _, err := site.Write(hello[:n]); err != nil {
		return
	}
	go func() {
		io.Copy(c, site) //nolint:errcheck // it ends with either
		c.Close()        //nolint:errcheck // and takes the other along
	}()
	io.Copy(site, c) //nolint:errcheck // as above
}

// dials returns how many connections of peers there were.
func (l *line) dials() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dialed
}

// rotating are two sites of which beta, which only dials out, changes its keys. gamma, which
// both know, is never there, so that a change of CA does not end by itself.
type rotating struct {
	t           *testing.T
	line        *line
	alpha, beta *testSite
	stop        map[*testSite]func()
	known       map[*testSite]Options
	jobs        []watched
	flag        string
}

// watched is a job that is to run through all of it.
type watched struct {
	origin   *testSite
	id, host string
	log      string // a line for each start
}

func newRotating(t *testing.T) *rotating {
	t.Helper()
	r := &rotating{
		t: t, line: newLine(t), stop: make(map[*testSite]func()), known: make(map[*testSite]Options),
		flag: filepath.Join(t.TempDir(), "go-on"),
	}
	ca, alphaKeys := secureConfig(t, "alpha")
	cb, betaKeys := secureConfig(t, "beta")
	gamma := newInsider(t, "gamma")
	ca.Listen.Advertise, cb.Listen.Advertise = r.line.Addr().String(), "none"
	ca.Scheduler.Processors, cb.Scheduler.Processors = 1, 3
	ca.Placement.Copies, cb.Placement.Copies = 2, 2
	open := func(c config.Config, known ...Known) *testSite {
		o := Options{Known: func() []Known { return append(known, Known{Bundle: gamma.bundle()}) }}
		s, stop := openSecure(t, c, o)
		s.cfg.Listen.Address = s.d.Address() // the same over restarts
		r.known[s], r.stop[s] = o, stop
		return s
	}
	r.alpha = open(ca, Known{Bundle: betaKeys.Bundle()})
	r.line.lead(r.alpha.d.Address())
	r.beta = open(cb, Known{Bundle: alphaKeys.Bundle(), Address: r.line.Addr().String()})
	t.Cleanup(func() {
		os.WriteFile(r.flag, nil, 0o600) //nolint:errcheck // no job outlives the test
		r.stop[r.alpha]()
		r.stop[r.beta]()
	})
	return r
}

// up waits until a stream is up by certificates that count at both ends.
func (r *rotating) up() {
	r.t.Helper()
	r.beta.eventually("connected", func() bool { return r.alpha.connected("beta") && r.beta.connected("alpha") })
}

// run has a job run at a site and writes down each of its starts.
func (r *rotating) run(origin *testSite, processors int32, host string) {
	r.t.Helper()
	log := filepath.Join(r.t.TempDir(), "starts")
	j := shell(fmt.Sprintf("echo start >> %s; while [ ! -e %s ]; do sleep 0.05; done", log, r.flag))
	j.Processors, j.Walltime = processors, durationpb.New(time.Hour) // it runs until all is over
	id := origin.submit(j)
	origin.waitState(id, kithv1.JobStatus_STATE_RUNNING)
	r.jobs = append(r.jobs, watched{origin, id, host, log})
}

// restart stops a site, has change do what it likes with its folder, and starts it again.
func (r *rotating) restart(s *testSite, change func()) {
	r.t.Helper()
	r.stop[s]()
	change()
	d, err := OpenWith(s.cfg, slog.New(slog.NewTextHandler(s, nil)), r.known[s])
	if err != nil {
		r.t.Fatal(err)
	}
	s.d, r.stop[s] = d, sync.OnceFunc(func() {
		if err := d.Close(); err != nil {
			r.t.Error(err)
		}
	})
	s.use(s.connect("unix:"+s.cfg.SocketPath(), insecure.NewCredentials()))
}

// steps does to a copy of the site's keys what is given, which writes or removes these
// files in that order, and returns what a crash before each of them leaves, first of none, and
// what is there after the last.
func (r *rotating) steps(of *testSite, do func(*trust.Keys) error, files []string) []func() {
	r.t.Helper()
	folder, after := of.cfg.KeysPath(), filepath.Join(r.t.TempDir(), "keys")
	if err := errors.Join(os.CopyFS(after, os.DirFS(folder)), os.Chmod(after, 0o700), chmodAll(after)); err != nil {
		r.t.Fatal(err)
	}
	before := contentsOf(r.t, after)
	keys, err := trust.Open(after, "beta", time.Now())
	if err == nil {
		err = do(keys)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	now := contentsOf(r.t, after)
	for name := range now {
		before[name] = append(before[name], 0) // whatever is new
	}
	for name, text := range before {
		text, same := bytes.CutSuffix(text, []byte{0})
		if same = same && bytes.Equal(text, now[name]); same == slices.Contains(files, name) {
			r.t.Fatalf("%s is changed: %v, of %q", name, !same, files)
		}
	}
	leaves := []func(){func() {}}
	for n := range files {
		leaves = append(leaves, func() {
			for _, name := range files[:n+1] {
				path, text := filepath.Join(folder, name), now[name]
				err := os.WriteFile(path, text, 0o600)
				if text == nil {
					err = os.Remove(path)
				}
				if err != nil {
					r.t.Fatal(err)
				}
			}
		})
	}
	return leaves
}

func contentsOf(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(folder, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// A site restarts before each of the files that a new certificate, a new CA and its end
// write, and so does the other one meanwhile. Each stream that ends for it is back by one
// dial, nobody is refused, and no job notices.
func TestRestartAtEachStepOfARotation(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	r.up()
	r.alpha.eventually("alpha knows what beta has", func() bool { return r.alpha.seen("beta").GetProcessors() == 3 })
	r.run(r.alpha, 2, "beta") // wider than alpha
	r.run(r.beta, 1, "beta")
	r.run(r.alpha, 1, "alpha")

	losses := 0
	// once has something end the stream so many times, and sees it come back by one dial each.
	once := func(what string, times int, do func()) {
		t.Helper()
		before := r.line.dials()
		do()
		r.up()
		r.alpha.eventually("alpha knows beta as it is", func() bool {
			known, _ := r.alpha.d.identity.trusted.Get("beta")
			own := r.beta.d.identity.keys.Bundle()
			return bytes.Equal(known.Marshal(), own.Marshal())
		})
		r.up()
		if dials := r.line.dials() - before; dials > times {
			t.Errorf("%s: %d dials for %d streams that ended", what, dials, times)
		}
		losses += times
	}
	rotate := func(q *kithv1.RotateKeysRequest) {
		t.Helper()
		if _, err := r.beta.trustClient().RotateKeys(r.beta.ctx(), q); err != nil {
			t.Fatal(err)
		}
	}
	now := func(k *trust.Keys) error { return k.RotateLeaf(time.Now()) }
	begin := func(k *trust.Keys) error { return k.BeginCA(time.Now()) }
	finish := func(k *trust.Keys) error { return k.FinishCA(time.Now()) }
	overlap := func() { once("rotate --ca", 0, func() { rotate(&kithv1.RotateKeysRequest{Ca: true}) }) }
	end := func() {
		if _, under := r.beta.d.identity.keys.Rotating(); under { // gamma is given up
			once("the end of the old CA", 1, func() {
				// As after trust.OverlapLimit.
				keys := r.beta.d.identity.keys
				if err := keys.FinishCA(time.Now()); err != nil {
					t.Fatal(err)
				}
				if err := r.beta.d.rotated(r.beta.ctx(), "test", rotation{"rotate-ca-end", keys.Bundle().Sequence}); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
	for _, c := range []struct {
		name    string
		files   []string // as they are written, and removed
		prepare func()
		do      func(*trust.Keys) error
	}{
		{"now", []string{"leaf.pem", "bundle"}, func() {}, now},
		{"ca", []string{"next.pem", "bundle"}, func() {}, begin},
		{"the end of ca", []string{"leaf.pem", "earlier.crt", "bundle", "ca.key", "ca.crt", "next.pem"}, overlap, finish},
	} {
		for n := range len(c.files) + 1 {
			c.prepare()
			what := fmt.Sprintf("rotate %s, a crash before file %d", c.name, n+1)
			once(what, 1, func() {
				r.restart(r.beta, func() { r.steps(r.beta, c.do, c.files)[n]() })
			})
			once(what+", the other site starts", 1, func() { r.restart(r.alpha, func() {}) })
			if c.name == "now" {
				once("rotate --now", 1, func() { rotate(&kithv1.RotateKeysRequest{Now: true}) })
			}
			end()
		}
	}
	t.Logf("%d dials for at most %d streams that ended", r.line.dials(), losses+1)
	for _, kind := range []string{"refused-handshake", "refused-hello", "refused-stream"} {
		for _, l := range r.alpha.audited(kind) {
			if l.Rule != "handshake" { // who stops may hang up in the midst of one
				t.Errorf("alpha refused: %+v", l)
			}
		}
	}

	if err := os.WriteFile(r.flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, w := range r.jobs {
		w.origin.waitState(w.id, completed)
		st := w.origin.get(w.id).GetStatus()
		starts, err := os.ReadFile(w.log)
		if err != nil || strings.Count(string(starts), "start") != 1 || st.GetAttempt() != 1 || st.GetHostSiteId() != w.host {
			t.Errorf("job %s: attempt %d at %s, starts %q, %v", w.id, st.GetAttempt(), st.GetHostSiteId(), starts, err)
		}
	}
}
