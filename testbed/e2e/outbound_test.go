package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// machine is a clean machine of an operator: kithd and kith are there, and nothing of a
// site. Their commands are those of the documentation.
type machine interface {
	// kithd returns a command of the account that runs kithd, kith one of the operator.
	kithd(args ...string) *exec.Cmd
	kith(args ...string) *exec.Cmd
	// begin starts kithd with what "kithd init" made, kill kills it.
	begin()
	kill()
	// sockets returns /proc/net/tcp and tcp6 there, dial tries to connect from there.
	sockets() string
	dial(address string) error
	// put makes a file there and returns its path, get reads one of a folder.
	put(name string, data []byte) string
	get(folder, name string) []byte
	log() string
}

// pair is two such machines. Nobody can connect to that of the joiner.
type pair struct {
	t               *testing.T
	inviter, joiner machine
	// listen is where the inviter listens, as "kithd init" is told; inside the address
	// of the joiner in its own network.
	listen, inside string
}

func (p *pair) must(c *exec.Cmd) string {
	p.t.Helper()
	var out, errText bytes.Buffer
	c.Stdout, c.Stderr = &out, &errText
	if err := c.Run(); err != nil {
		p.t.Fatalf("%s: %v\n%s%s", strings.Join(c.Args, " "), err, out.String(), errText.String())
	}
	return out.String()
}

func (p *pair) eventually(what string, done func() bool) {
	p.t.Helper()
	for end := time.Now().Add(90 * time.Second); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("not so after 90 s: %s", what)
		}
	}
}

// outboundOnly is the story: the five commands, and then all that a site takes part in.
func (p *pair) outboundOnly() {
	p.t.Cleanup(func() {
		if p.t.Failed() {
			p.t.Logf("uni-a:\n%s\nlab-b:\n%s", p.inviter.log(), p.joiner.log())
		}
	})
	p.fiveCommands()
	if out, err := p.joiner.kith("site", "invite", "uni-c").CombinedOutput(); err == nil || !strings.Contains(string(out), "--address, or let the other site invite") {
		p.t.Errorf("a site that nobody can dial invites: %v: %s", err, out)
	}
	p.closed("once they know each other")
	p.lines()
	p.work("lab-b", p.joiner, "uni-a") // it submits
	p.work("uni-a", p.inviter, "lab-b")

	p.inviter.kill() // the joiner comes again
	p.begin(p.inviter)
	p.lines()
	p.work("uni-a", p.inviter, "lab-b")
	p.joiner.kill()
	p.begin(p.joiner)
	p.lines()
	p.work("lab-b", p.joiner, "uni-a")
	p.closed("at the end")

	// Its keys are its own: the other site hears of new ones over what it dialled.
	before := p.peer(p.inviter, "lab-b").Sequence
	p.must(p.joiner.kith("site", "rotate", "--ca"))
	p.eventually("the inviter knows the next CA of lab-b", func() bool { return p.peer(p.inviter, "lab-b").Sequence > before })
	p.lines()
	p.must(p.joiner.kith("site", "revoke", "uni-a"))
	p.eventually("the inviter has no stream to who revoked it", func() bool { return !p.peer(p.inviter, "lab-b").Connected })
}

var fingerprint = regexp.MustCompile(`(?m)fingerprint +(\S+)$`)

// fiveCommands are those of docs/operations.md.
func (p *pair) fiveCommands() {
	began := time.Now()
	p.must(p.inviter.kithd("init", "--site", "uni-a", "--listen", p.listen))
	p.begin(p.inviter)
	made := p.must(p.joiner.kithd("init", "--site", "lab-b", "--listen", p.inside, "--advertise", "none"))
	p.begin(p.joiner)
	p.closed("before they know each other")

	invite := p.inviter.kith("site", "invite", "lab-b")
	answer, err := invite.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	printed, err := invite.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	asks, err := invite.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := invite.Start(); err != nil {
		p.t.Fatal(err)
	}
	stop := func() { invite.Process.Kill() } //nolint:errcheck // it may have ended
	defer time.AfterFunc(2*time.Minute, stop).Stop()
	defer stop()
	text, err := bufio.NewReader(printed).ReadString('\n')
	if err != nil {
		p.t.Fatalf("kith site invite: %v", err)
	}
	accept := p.joiner.kith("site", "accept", strings.TrimSpace(text))
	var accepted bytes.Buffer
	accept.Stdout, accept.Stderr = &accepted, &accepted
	if err := accept.Start(); err != nil {
		p.t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() {
		err := accept.Wait()
		if err != nil {
			stop() // nobody comes
		}
		over <- err
	}()
	question := readUntil(asks, "[y/N] ")
	if m, n := fingerprint.FindStringSubmatch(made), fingerprint.FindStringSubmatch(question); m == nil || n == nil || m[1] != n[1] ||
		!strings.Contains(question, "addresses    none: it dials this site") {
		accept.Process.Kill() //nolint:errcheck // it may have ended
		p.t.Fatalf("kithd init at lab-b said:\n%s\nkith site invite:\n%s\nkith site accept, %v:\n%s", made, question, <-over, accepted.String())
	}
	if _, err := io.WriteString(answer, "y\n"); err != nil {
		p.t.Fatal(err)
	}
	if err := <-over; err != nil {
		p.t.Fatalf("kith site accept: %v: %s", err, accepted.String())
	}
	if err := invite.Wait(); err != nil {
		p.t.Fatalf("kith site invite: %v: %s", err, question)
	}
	p.must(p.inviter.kith("submit", "--wait", "--", "hostname"))
	p.t.Logf("five commands: %v", time.Since(began).Round(time.Millisecond))
}

// readUntil reads up to an end; what came before that did not come.
func readUntil(r io.Reader, end string) string {
	var got []byte
	for b := make([]byte, 1); ; {
		if _, err := r.Read(b); err != nil {
			return string(got)
		}
		if got = append(got, b[0]); bytes.HasSuffix(got, []byte(end)) {
			return string(got)
		}
	}
}

// closed demands that nobody comes in at the joiner from where the inviter is, although
// it listens. So it is the network that keeps others out.
func (p *pair) closed(when string) {
	p.t.Helper()
	if err := p.joiner.dial(p.inside); err != nil {
		p.t.Fatalf("%s lab-b does not listen: %v", when, err)
	}
	if err := p.inviter.dial(p.inside); err == nil {
		p.t.Fatalf("%s uni-a can connect to lab-b, which shall dial out only", when)
	}
}

// lines demands a stream and a lane of gossip between the sites, both dialled by the
// joiner, and that both sites show each other as connected, with a load.
func (p *pair) lines() {
	p.t.Helper()
	for site, m := range map[string]machine{"lab-b": p.inviter, "uni-a": p.joiner} {
		p.eventually("it is connected to "+site+" and knows its load", func() bool {
			return p.peer(m, site).Connected && p.shown(m, site).Processors > 0
		})
	}
	var come, left []string
	p.eventually("a stream and a lane are up, both dialled by lab-b", func() bool {
		come, left = established(p.inviter.sockets(), 1), established(p.joiner.sockets(), 2)
		return len(come) == 2 && len(left) == 2
	})
	if out, in := established(p.inviter.sockets(), 2), established(p.joiner.sockets(), 1); len(out)+len(in) > 0 {
		p.t.Errorf("connections that lab-b did not dial: %v, %v", out, in)
	}
}

// established returns the connections that have port 7410 at an end: 1 for the own one, 2 for
// the other. Those of a machine with itself do not count.
func established(table string, end int) (found []string) {
	const port, up = ":1CF2", "01" // 7410
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 4 || f[3] != up || !strings.HasSuffix(f[end], port) {
			continue
		}
		if own, _, _ := strings.Cut(f[1], ":"); strings.HasPrefix(f[2], own+":") {
			continue
		}
		found = append(found, f[1]+" "+f[2])
	}
	return found
}

// known is a row of "kith site peers".
type known struct {
	SiteID    string `json:"siteId"`
	Connected bool   `json:"connected"`
	Sequence  int    `json:"bundleSequence,string"`
}

func (p *pair) peer(m machine, name string) known {
	p.t.Helper()
	var list struct {
		Sites []known `json:"sites"`
	}
	p.decode(m.kith("site", "peers", "--output", "json"), &list)
	for _, k := range list.Sites {
		if k.SiteID == name {
			return k
		}
	}
	return known{}
}

// shownSite is a row of "kith sites".
type shownSite struct {
	ID         string `json:"id"`
	Processors int    `json:"processors"`
	Draining   bool   `json:"draining"`
}

func (p *pair) shown(m machine, name string) shownSite {
	p.t.Helper()
	var list struct {
		Sites []shownSite `json:"sites"`
	}
	p.decode(m.kith("sites", "--output", "json"), &list)
	for _, s := range list.Sites {
		if s.ID == name {
			return s
		}
	}
	return shownSite{}
}

func (p *pair) decode(c *exec.Cmd, into any) {
	p.t.Helper()
	if out := p.must(c); json.Unmarshal([]byte(out), into) != nil {
		p.t.Fatalf("%s: %s", strings.Join(c.Args, " "), out)
	}
}

// work has a job of one site run at the other, which gets its input of several pieces from
// there and brings as much output back.
func (p *pair) work(origin string, m machine, host string) {
	other := p.inviter
	if m == p.inviter {
		other = p.joiner
	}
	p.must(m.kith("drain", "--reason", "jobs run elsewhere"))
	p.eventually(host+" has heard of the drain", func() bool { return p.shown(other, origin).Draining })
	defer func() {
		p.must(m.kith("resume"))
		p.eventually(host+" has heard of its end", func() bool { return !p.shown(other, origin).Draining })
	}()
	data := make([]byte, 9<<20)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(data) // never fails
	file := m.put("words", data)
	const script = "echo ran at $KITH_SITE; cp words back; cat words >> back"
	id := strings.TrimSpace(p.must(m.kith("submit", "--parsable", "--time", "10", "--input", file, "--output-file", "back", "--wrap", script)))
	p.must(m.kith("wait", id))
	if out, want := p.must(m.kith("logs", id)), "ran at "+host+"\n"; out != want {
		p.t.Errorf("a job of %s wrote %q, not %q", origin, out, want)
	}
	folder := filepath.Join(filepath.Dir(file), "results")
	p.must(m.kith("fetch", "--force", id, folder))
	if back := m.get(folder, "back"); sha256.Sum256(back) != sha256.Sum256(append(data, data...)) {
		p.t.Errorf("a job of %s that ran at %s: %d bytes came back, not twice those %d", origin, host, len(back), len(data))
	}
	// What it writes can be read at its origin while it runs elsewhere.
	id = strings.TrimSpace(p.must(m.kith("submit", "--parsable", "--time", "10", "--wrap", "echo begun; while [ ! -e stop ]; do sleep 0.2; done")))
	p.eventually("the first line of a running job is here", func() bool { out, err := m.kith("logs", id).Output(); return err == nil && string(out) == "begun\n" })
	p.must(m.kith("cancel", id))
	p.eventually("the running job is cancelled", func() bool {
		var r struct {
			Job struct {
				Status struct{ State string }
			}
		}
		p.decode(m.kith("show", id, "--output", "json"), &r)
		return r.Job.Status.State == "STATE_CANCELLED"
	})
}

// begin starts a site and waits until it answers.
func (p *pair) begin(m machine) {
	p.t.Helper()
	m.begin()
	p.eventually("the site answers", func() bool { return m.kith("site", "peers").Run() == nil })
}

// temporary makes a folder that other accounts may enter. The path of a socket is short; that
// of a test's folder may not be.
func temporary(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kith-e2e-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })      //nolint:errcheck // a temporary folder
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // see above
		t.Fatal(err)
	}
	return dir
}
