package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/scratch"
	"kith/testbed/programs"
)

// Two sites are real processes here, operated by the commands of docs/operations.md and
// nothing else.

// machine is where the programs are.
type machine struct {
	t    *testing.T
	bin  *programs.Set
	root string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short: it builds the programs and runs daemons")
	}
	bin, err := programs.Build(t.Context(), programs.Kith, programs.Kithd, programs.Shim)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bin.Remove() }) //nolint:errcheck // a temporary folder
	// The path of a socket is short; that of a test's folder may not be.
	root, err := os.MkdirTemp("", "kith-join-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) }) //nolint:errcheck // likewise
	return &machine{t, bin, root}
}

// daemonSite is a site and its process.
type daemonSite struct {
	*machine
	name, config, socket, address string
	process                       *exec.Cmd
	log                           *os.File
}

// init makes a site with processors, by "kithd init" and what one account needs for both
// roles.
func (m *machine) init(name string, processors int) *daemonSite {
	m.t.Helper()
	s := &daemonSite{machine: m, name: name, address: scratch.Address(m.t), config: filepath.Join(m.root, name+".toml")}
	data := filepath.Join(m.root, name)
	m.must(m.command(programs.Kithd, "init", "--site", name, "--data", data, "--listen", s.address, "--config", s.config))
	f, err := os.OpenFile(s.config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	// The tables are after [listen], whose last key is added first.
	if _, err := fmt.Fprintf(f, "allow_own_uid = true\n\n[scheduler]\nprocessors = %d\n\n[placement]\ncopies = 2\n", processors); err != nil {
		m.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		m.t.Fatal(err)
	}
	s.socket = filepath.Join(data, "kith.sock")
	return s
}

func (m *machine) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(m.bin.Path(name), args...) //nolint:gosec // the test's own
	cmd.Env = append(os.Environ(), "KITH_AS_ROOT=1")
	return cmd
}

// must runs a command that works and returns its stdout.
func (m *machine) must(cmd *exec.Cmd) string {
	m.t.Helper()
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args[1:], " "), err, out, problems.String())
	}
	return string(out)
}

func (s *daemonSite) start() {
	s.t.Helper()
	s.begin()
	s.eventually("it answers", func() bool { return s.kith("sites").Run() == nil })
}

// begin starts the process.
func (s *daemonSite) begin() {
	s.t.Helper()
	var err error
	if s.log, err = os.OpenFile(s.config+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.process = s.command(programs.Kithd, "--config", s.config)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		s.stop(syscall.SIGKILL)
		if text, err := os.ReadFile(s.config + ".log"); err == nil && s.t.Failed() {
			s.t.Logf("log of %s:\n%s", s.name, text[max(0, len(text)-4000):])
		}
	})
}

// stop ends the process and waits for that.
func (s *daemonSite) stop(signal os.Signal) {
	if s.process == nil {
		return
	}
	s.process.Process.Signal(signal) //nolint:errcheck // it may have ended
	s.process.Wait()                 //nolint:errcheck // likewise
	s.process = nil
	s.log.Close() //nolint:errcheck // the process wrote it
}

func (s *daemonSite) restart(signal os.Signal) {
	s.t.Helper()
	s.stop(signal)
	s.start()
}

// kith is a command to the site.
func (s *daemonSite) kith(args ...string) *exec.Cmd {
	return s.command(programs.Kith, append([]string{"--site", "unix:" + s.socket}, args...)...)
}

func (s *daemonSite) eventually(what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(90 * time.Second); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("site %s: not so after 90 s: %s", s.name, what)
		}
	}
}

// peer is a row of "kith site peers".
type peer struct {
	SiteID    string `json:"siteId"`
	State     string `json:"state"`
	Connected bool   `json:"connected"`
}

func (s *daemonSite) peer(name string) (p peer) {
	s.t.Helper()
	var list struct {
		Sites []peer `json:"sites"`
	}
	out := s.must(s.kith("site", "peers", "--output", "json"))
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	for _, p = range list.Sites {
		if p.SiteID == name {
			return p
		}
	}
	return peer{}
}

func (s *daemonSite) connected(to string) {
	s.t.Helper()
	s.eventually("a stream to "+to, func() bool { return s.peer(to).Connected && s.processorsOf(to) > 0 })
}

// processorsOf returns what a site has said that it has, 0 if it has said nothing yet.
func (s *daemonSite) processorsOf(name string) int {
	s.t.Helper()
	var list struct {
		Sites []struct {
			ID         string `json:"id"`
			Processors int    `json:"processors"`
		} `json:"sites"`
	}
	out := s.must(s.kith("sites", "--output", "json"))
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	for _, l := range list.Sites {
		if l.ID == name {
			return l.Processors
		}
	}
	return 0
}

// invite returns the text and the id of a new invitation.
func (s *daemonSite) invite(name string) (text, id string) {
	s.t.Helper()
	var made struct {
		Text string `json:"text"`
		ID   string `json:"invitationId"`
	}
	if err := json.Unmarshal([]byte(s.must(s.kith("site", "invite", name, "--detach", "--output", "json"))), &made); err != nil {
		s.t.Fatal(err)
	}
	return made.Text, made.ID
}

// inviteAndAsk is "kith site invite" with an operator who gives an answer; it returns the
// text and what waits for the end of the command.
func (s *daemonSite) inviteAndAsk(name, answer string) (text string, wait func() (string, error)) {
	s.t.Helper()
	cmd := s.kith("site", "invite", name)
	cmd.Stdin = strings.NewReader(answer)
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	var asked bytes.Buffer
	cmd.Stderr = &asked
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { cmd.Process.Kill() }) //nolint:errcheck // it may have ended
	if text, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		s.t.Fatalf("%v: %s", err, asked.String())
	}
	return strings.TrimSpace(text), func() (string, error) {
		err := cmd.Wait()
		return asked.String(), err
	}
}

// background runs a command and returns what waits for it.
func (m *machine) background(cmd *exec.Cmd) func() (string, error) {
	m.t.Helper()
	var all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &all, &all
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	m.t.Cleanup(func() { cmd.Process.Kill() }) //nolint:errcheck // it may have ended
	return func() (string, error) {
		select {
		case err := <-over:
			return all.String(), err
		case <-time.After(90 * time.Second):
			return "", context.DeadlineExceeded
		}
	}
}

// hostOf runs a job for two processors from a site and returns where it ran.
func (s *daemonSite) hostOf(args ...string) string {
	s.t.Helper()
	id := strings.TrimSpace(s.must(s.kith(append([]string{"submit", "--parsable", "--time", "5"}, append(args, "--", "/bin/sh", "-c", "exit 0")...)...)))
	s.must(s.kith("wait", id))
	var shown struct {
		Job struct {
			Status struct {
				Host string `json:"hostSiteId"`
			} `json:"status"`
		} `json:"job"`
	}
	out := s.must(s.kith("show", id, "--output", "json"))
	if err := json.Unmarshal([]byte(out), &shown); err != nil || shown.Job.Status.Host == "" {
		s.t.Fatalf("%v: %s", err, out)
	}
	return shown.Job.Status.Host
}

// From nothing to the first remote job, a restart of both, and the end of the trust.
func TestTwoSitesJoin(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	began := time.Now()
	alpha, beta := m.init("alpha", 1), m.init("beta", 2)
	alpha.start()
	beta.start()

	text, invited := alpha.inviteAndAsk("beta", "y\n")
	if out := m.must(beta.kith("site", "accept", text)); !strings.Contains(out, "Joined site alpha") {
		t.Fatalf("accept: %s", out)
	}
	if out, err := invited(); err != nil || !strings.Contains(out, "fingerprint") || !strings.Contains(out, "Admit site beta? [y/N]") ||
		!strings.Contains(out, "warning: the text names 127.0.0.1:") || !strings.Contains(out, "--address HOST:PORT") {
		t.Fatalf("invite: %v\n%s", err, out)
	}
	alpha.connected("beta")
	if at := alpha.hostOf("--ntasks", "2"); at != "beta" {
		t.Errorf("a job for two processors of alpha, which has one, ran at %s", at)
	}
	t.Logf("from kithd init to the end of the first remote job: %v", time.Since(began).Round(time.Millisecond))

	if out, err := m.background(beta.kith("site", "accept", text))(); err != nil || !strings.Contains(out, "Joined site alpha") {
		t.Errorf("the same site by the same text: %v\n%s", err, out)
	}
	gamma := m.init("gamma", 1)
	gamma.start()
	if out, err := gamma.kith("site", "accept", text).CombinedOutput(); err == nil {
		t.Errorf("another site by a used text: %s", out)
	}

	// An operator who presses return says no.
	forGamma, invited := alpha.inviteAndAsk("gamma", "\n")
	if out, err := gamma.kith("site", "accept", forGamma).CombinedOutput(); err == nil || !strings.Contains(string(out), "operator said no") {
		t.Errorf("accept without a yes: %v: %s", err, out)
	}
	if out, err := invited(); err == nil || !strings.Contains(out, "not admitted") {
		t.Errorf("invite: %v: %s", err, out)
	}

	alpha.restart(syscall.SIGTERM)
	beta.restart(syscall.SIGKILL)
	alpha.connected("beta")
	beta.connected("alpha")
	if at := alpha.hostOf("--ntasks", "2"); at != "beta" {
		t.Errorf("after a restart the job ran at %s", at)
	}

	revoked := time.Now()
	m.must(alpha.kith("site", "revoke", "beta", "--reason", "test"))
	beta.eventually("its stream is closed", func() bool { return !beta.peer("alpha").Connected })
	t.Logf("from kith site revoke to the closed stream, seen at the other site: %v", time.Since(revoked).Round(time.Millisecond))
	if p := alpha.peer("beta"); p.State != "STATE_REVOKED" || p.Connected {
		t.Errorf("at alpha: %+v", p)
	}
	// beta goes on dialling; it is refused from the first byte on.
	alpha.eventually("a handshake of beta is refused", func() bool {
		return strings.Contains(m.must(m.command(programs.Kith, "audit", "show", filepath.Join(m.root, "alpha", "audit"))), "refused-handshake")
	})
	if beta.peer("alpha").Connected {
		t.Error("beta is connected again")
	}
}

// An inviter that is killed while its operator is asked still has the joiner's name and
// fingerprint when it is back, and the joiner comes again by itself.
func TestInviterIsKilledBeforeItsOperatorDecides(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	alpha, beta := m.init("alpha", 1), m.init("beta", 2)
	alpha.start()
	beta.start()
	text, id := alpha.invite("beta")
	accepted := m.background(beta.kith("site", "accept", text))
	asked := m.background(alpha.kith("site", "admit", id, "--fingerprint", "none")) // ends when a site has come
	if out, err := asked(); err == nil || !strings.Contains(out, "is not admitted") {
		t.Fatalf("%v: %s", err, out)
	}
	// So does a script without an answer: that is not a no.
	if out, err := alpha.kith("site", "admit", id).CombinedOutput(); err == nil || !strings.Contains(string(out), "no answer was given") {
		t.Fatalf("%v: %s", err, out)
	}
	alpha.restart(syscall.SIGKILL)
	if p := alpha.peer("beta"); p.SiteID != "" {
		t.Fatalf("nobody decided, and the table has %+v", p)
	}
	m.must(alpha.kith("site", "admit", id, "--yes"))
	if out, err := accepted(); err != nil || !strings.Contains(out, "Joined site alpha") {
		t.Fatalf("accept: %v\n%s", err, out)
	}
	alpha.connected("beta")
}
