package main_test

import (
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

// siteOfThree is a site whose members are real processes, begun by the commands of
// docs/operations.md and nothing else.
type siteOfThree struct {
	*machine
	members map[string]*daemonSite
	cluster string
}

// three begins a site of three members.
func (m *machine) three(site string) *siteOfThree {
	m.t.Helper()
	s := &siteOfThree{m, make(map[string]*daemonSite), strings.TrimSpace(m.must(m.command(programs.Kithd, "members", "id")))}
	first := s.configure(site, "one")
	m.must(m.command(programs.Kithd, "members", "found", "--config", first.config))
	first.start()
	for _, name := range []string{"two", "three"} {
		s.join(site, name, "one")
	}
	return s
}

// threeWithAHost begins a site of three, alpha, that is joined with a site with processors.
func (m *machine) threeWithAHost() *siteOfThree {
	m.t.Helper()
	host := m.init("host", 2)
	host.start()
	s := m.three("alpha")
	text, wait := s.members["two"].inviteAndAsk("host", "y\n") // by a member that need not lead
	if out := m.must(host.kith("site", "accept", text)); !strings.Contains(out, "Joined site alpha") {
		m.t.Fatalf("accept: %s", out)
	}
	if out, err := wait(); err != nil {
		m.t.Fatalf("invite: %v\n%s", err, out)
	}
	s.members["three"].connected("host")
	return s
}

// configure makes the configuration of a member; its keys are copies of those of the first.
func (s *siteOfThree) configure(site, name string) *daemonSite {
	s.t.Helper()
	d := &daemonSite{machine: s.machine, name: name, address: scratch.Address(s.t), config: filepath.Join(s.root, site+"-"+name+".toml")}
	data := filepath.Join(s.root, site+"-"+name)
	d.socket = filepath.Join(data, "kith.sock")
	if len(s.members) == 0 {
		s.must(s.command(programs.Kithd, "init", "--site", site, "--data", data, "--listen", d.address, "--config", d.config))
	} else {
		first := filepath.Join(s.root, site+"-one")
		if err := os.Mkdir(data, 0o700); err != nil {
			s.t.Fatal(err)
		}
		s.must(exec.Command("cp", "-a", filepath.Join(first, "keys"), filepath.Join(first, "history.salt"), data)) //nolint:gosec // the test's own
	}
	text := fmt.Sprintf("site = %q\ndata = %q\n[listen]\naddress = %q\nallow_own_uid = true\n[members]\nself = %q\ncluster = %q\n[placement]\ncopies = 2\n[log]\nformat = \"text\"\n[flight]\nenabled = true\n",
		site, data, d.address, name, s.cluster)
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.members[name] = d
	return d
}

// join starts a member and has another one take it in.
func (s *siteOfThree) join(site, name, by string) {
	s.t.Helper()
	d := s.configure(site, name)
	d.startMember()
	s.must(s.members[by].kith("site", "members", "add", name, d.address))
}

// startMember starts a member that need not answer yet.
func (s *daemonSite) startMember() {
	s.t.Helper()
	os.Remove(s.socket) //nolint:errcheck // that of a process that was killed
	s.begin()
	s.eventually("its socket is there", func() bool {
		_, err := os.Stat(s.socket)
		return err == nil
	})
}

// leader returns who leads, once a member says so.
func (s *siteOfThree) leader(asked string) (name string) {
	s.t.Helper()
	s.members[asked].eventually("a member leads", func() bool {
		name = s.leads(asked)
		return name != "" && s.members[name].process != nil
	})
	return name
}

func (s *siteOfThree) leads(asked string) string {
	out, err := s.members[asked].kith("site", "members", "--output", "json").Output()
	if err != nil {
		return ""
	}
	var list struct {
		Members []struct {
			Name  string `json:"name"`
			Leads bool   `json:"leads"`
		} `json:"members"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	for _, m := range list.Members {
		if m.Leads {
			return m.Name
		}
	}
	return ""
}

// other returns a member that is up and is not the given one.
func (s *siteOfThree) other(but string) string {
	for _, name := range []string{"one", "two", "three"} {
		if name != but && s.members[name].process != nil {
			return name
		}
	}
	s.t.Fatal("no member is up")
	return ""
}

// submit submits a job that writes that it has started, and returns its id.
func (s *daemonSite) submit(starts, seconds string) string {
	s.t.Helper()
	return strings.TrimSpace(s.must(s.kith("submit", "--parsable", "--time", "5", "--", "/bin/sh", "-c",
		fmt.Sprintf("echo $KITH_JOB_ID >>%s; sleep %s; echo done", starts, seconds))))
}

// A site of three loses its leader by SIGKILL, again and again, while its jobs run at another
// site: what was acknowledged is there, what runs goes on, and every job starts once.
func TestASiteOfThreeLosesItsLeader(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.threeWithAHost()
	starts := filepath.Join(m.root, "starts")
	var ids []string
	for round := range 3 {
		leader := s.leader(s.other(""))
		long := s.members[s.other(leader)].submit(starts, "4")
		ids = append(ids, long)
		s.eventuallyStarted(starts, long)
		for range 3 {
			ids = append(ids, s.members[s.other("")].submit(starts, "0.1"))
		}
		killed := time.Now()
		s.members[leader].stop(syscall.SIGKILL)
		ids = append(ids, s.members[s.other(leader)].submit(starts, "0.1"))
		t.Logf("round %d: from SIGKILL of the leader %s to the answer to a submission: %v", round, leader, time.Since(killed).Round(time.Millisecond))
		s.members[leader].startMember()
	}
	by := s.members[s.other("")]
	for _, id := range ids {
		m.must(by.kith("wait", id))
		if out := m.must(by.kith("logs", id)); strings.TrimSpace(out) != "done" {
			t.Errorf("job %s left %q", id, out)
		}
	}
	s.startedOnce(starts, ids)

	// A leader that is stopped hands over.
	leader := s.leader(s.other(""))
	began := time.Now()
	s.members[leader].stop(syscall.SIGTERM)
	s.members[s.other(leader)].submit(starts, "0.1")
	t.Logf("from SIGTERM of the leader to the answer to a submission: %v", time.Since(began).Round(time.Millisecond))
	s.playsAgain(t, 4)
}

func (s *siteOfThree) eventuallyStarted(starts, id string) {
	s.t.Helper()
	s.members[s.other("")].eventually("job "+id+" runs", func() bool {
		text, _ := os.ReadFile(starts)
		return strings.Contains(string(text), id)
	})
}

// A leader is paused, which closes nothing, and goes on later: another one leads meanwhile, what
// was acknowledged is there, and every job starts once.
func TestASiteOfThreeWhoseLeaderIsPaused(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.threeWithAHost()
	starts := filepath.Join(m.root, "starts")
	if n := s.members["three"].processorsOf("alpha"); n != 0 {
		t.Errorf("a site without processors says that it has %d", n)
	}
	var ids []string
	for round := range 2 {
		leader := s.leader("one")
		by := s.members[s.other(leader)]
		ids = append(ids, by.submit(starts, "2"))
		paused := s.members[leader].process.Process
		began := time.Now()
		if err := paused.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, by.submit(starts, "0.1"), by.submit(starts, "0.1"))
		t.Logf("round %d: from SIGSTOP of the leader %s to the answers to two submissions: %v", round, leader, time.Since(began).Round(time.Millisecond))
		m.must(by.kith("wait", ids[len(ids)-1]))
		t.Logf("round %d: to the end of one of them at the host: %v", round, time.Since(began).Round(time.Millisecond))
		if err := paused.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.members[leader].submit(starts, "0.1"))
	}
	for _, id := range ids {
		m.must(s.members["two"].kith("wait", id))
	}
	s.startedOnce(starts, ids)
}

// startedOnce checks that each job has said once that it has started.
func (s *siteOfThree) startedOnce(starts string, ids []string) {
	s.t.Helper()
	text, err := os.ReadFile(starts)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, id := range ids {
		if n := strings.Count(string(text), id+"\n"); n != 1 {
			s.t.Errorf("job %s started %d times", id, n)
		}
	}
}

// Machines are replaced and come back with an empty disk, and the site has its facts all the time.
func TestMembersAreReplaced(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.threeWithAHost()
	id := strings.TrimSpace(m.must(s.members["two"].kith("submit", "--parsable", "--hold", "--", "true")))
	has := func(name string) {
		t.Helper()
		s.members[name].eventually("it has job "+id, func() bool { return s.members[name].kith("show", id).Run() == nil })
	}
	four := s.configure("alpha", "four")
	four.startMember()
	m.must(s.members["two"].kith("site", "members", "replace", "three", "four", four.address))
	s.members["three"].stop(syscall.SIGTERM)
	has("four")

	// The disk of one is lost. It does not come back by itself.
	two := s.members["two"]
	two.stop(syscall.SIGKILL)
	data := filepath.Dir(two.socket)
	if err := os.RemoveAll(filepath.Join(data, "members")); err != nil {
		t.Fatal(err)
	}
	four.eventually("two is seen to be down", func() bool { return strings.Contains(m.must(four.kith("site", "members")), "not reached: ") })
	two.startMember()
	four.eventually("two is seen to be left out", func() bool {
		return strings.Contains(m.must(four.kith("site", "members")), "not reached: it has a vote and an empty folder")
	})
	if out, err := four.kith("site", "members", "add", "two", two.address).CombinedOutput(); err == nil || !strings.Contains(string(out), "remove it and add it again") {
		t.Errorf("a member that has a vote and an empty disk is added: %v: %s", err, out)
	}
	m.must(four.kith("site", "members", "remove", "two"))
	m.must(four.kith("site", "members", "add", "two", two.address))
	has("two")

	if out, err := four.kith("site", "members", "add", "five", "127.0.0.1:1").CombinedOutput(); err == nil || !strings.Contains(string(out), "connection refused") {
		t.Errorf("a member that is not up is added: %v: %s", err, out)
	}

	// One that has a log is not added again.
	m.must(four.kith("site", "members", "remove", "one"))
	four.eventually("one is refused, as it has a log", func() bool {
		out, err := four.kith("site", "members", "add", "one", s.members["one"].address).CombinedOutput()
		if err == nil {
			t.Fatalf("a member that was removed is added with its log: %s", out)
		}
		return strings.Contains(string(out), "has a log already")
	})
	has("four")
}

// Of three machines one is left. It shows jobs, and says how old that is; it takes nothing, and says
// when to come back; a job that runs goes on, and its end comes home when there is a majority again.
func TestOneOfThreeIsLeft(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.threeWithAHost()
	starts, goOn := filepath.Join(m.root, "starts"), filepath.Join(m.root, "go-on")
	one, two, three := s.members["one"], s.members["two"], s.members["three"]
	runs := two.run(starts, "0; until [ -e "+goOn+" ]; do sleep 0.1; done")
	two.becomes(runs, "RUNNING")
	held := two.run(starts, "0", "--hold")
	three.becomes(held, "HELD")
	time.Sleep(time.Second) // the leader's next sign of life says that this stands
	one.stop(syscall.SIGKILL)
	two.stop(syscall.SIGKILL)
	gone := time.Now()

	three.eventually("it shows a job and how old that is", func() bool {
		out, err := three.kith("show", held, "--timeout", "10s").CombinedOutput()
		return err == nil && strings.Contains(string(out), "has no leader at present: this is what one of its machines knew at") && strings.Contains(string(out), "HELD")
	})
	t.Logf("from the loss of two machines to the job as the third one knows it: %v", time.Since(gone).Round(time.Millisecond))
	var shown struct {
		AsOf time.Time `json:"asOfTime"`
	}
	if err := json.Unmarshal([]byte(m.must(three.kith("show", runs, "--output", "json"))), &shown); err != nil || shown.AsOf.Before(gone.Add(-5*time.Second)) || shown.AsOf.After(gone.Add(2*time.Second)) {
		t.Errorf("two machines were lost at %v, and what is left says as of %v, %v", gone, shown.AsOf, err)
	}
	if out := m.must(three.kith("queue")); !strings.Contains(out, held) || !strings.Contains(out, runs) || !strings.Contains(out, "RUNNING") {
		t.Errorf("its queue: %s", out)
	}
	if out, err := three.kith("bag", "list").CombinedOutput(); err != nil || !strings.Contains(string(out), "has no leader at present") {
		t.Errorf("its bags: %v: %s", err, out)
	}
	for _, args := range [][]string{{"release", held}, {"submit", "--", "true"}, {"cancel", runs}, {"site", "members"}} {
		if out, err := three.kith(append(args, "--timeout", "6s")...).CombinedOutput(); err == nil || !strings.Contains(string(out), "no leader at present") {
			t.Errorf("kith %s: %v: %s", args[0], err, out)
		}
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	three.eventually("the job goes on at the host", func() bool {
		_, err := os.Stat(starts + "." + runs)
		return err == nil
	})
	two.startMember()
	three.becomes(runs, "COMPLETED")
	if out := m.must(three.kith("show", held, "--output", "json")); strings.Contains(out, "asOfTime") {
		t.Errorf("with a leader: %s", out)
	}
	if n := began(t, starts, runs); n != 1 {
		t.Errorf("it began %d times", n)
	}
}
