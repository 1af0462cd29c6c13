package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kith/testbed/programs"
)

// joinTo joins a site with another one, whose processors it then knows.
func (s *daemonSite) joinTo(other *daemonSite) {
	s.t.Helper()
	text, wait := s.inviteAndAsk(other.name, "y\n")
	if out := s.must(other.kith("site", "accept", text)); !strings.Contains(out, "Joined site "+s.name) {
		s.t.Fatalf("accept: %s", out)
	}
	if out, err := wait(); err != nil {
		s.t.Fatalf("invite: %v\n%s", err, out)
	}
	s.connected(other.name)
}

// state returns the state of a job, "" if it is not known.
func (s *daemonSite) state(id string) string {
	s.t.Helper()
	out, err := s.kith("show", id, "--output", "json").Output()
	if err != nil {
		return ""
	}
	var shown struct {
		Job struct {
			Status struct {
				State string `json:"state"`
			} `json:"status"`
		} `json:"job"`
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimPrefix(shown.Job.Status.State, "STATE_")
}

// becomes waits until a job is in a state, "" for none.
func (s *daemonSite) becomes(id, state string) {
	s.t.Helper()
	s.eventually("job "+id+" is "+state, func() bool {
		return s.state(id) == state
	})
}

// run submits a job that writes its id when it starts, with options, and returns its id.
func (s *daemonSite) run(starts, seconds string, options ...string) string {
	s.t.Helper()
	args := append([]string{"submit", "--parsable", "--time", "5"}, options...)
	return strings.TrimSpace(s.must(s.kith(append(args, "--", "/bin/sh", "-c", fmt.Sprintf("echo $KITH_JOB_ID >>%s; sleep %s; echo done >>%s.$KITH_JOB_ID", starts, seconds, starts))...)))
}

// began reports how often a job has begun.
func began(t *testing.T, starts, id string) int {
	t.Helper()
	text, err := os.ReadFile(starts)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), id+"\n")
}

// emptied is a data folder whose disk was lost: only the keys are back.
func (s *daemonSite) emptied() {
	s.t.Helper()
	data := filepath.Dir(s.socket)
	list, err := os.ReadDir(data)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range list {
		if e.Name() == "keys" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(data, e.Name())); err != nil {
			s.t.Fatal(err)
		}
	}
}

// A site loses its disk and comes back from a backup that was made while it ran. Its jobs are
// known; none begins a second time by itself, whatever became of it since the backup; what it
// does not know any more is stopped where it runs.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	alpha, host := m.init("alpha", 1), m.init("host", 8)
	alpha.start()
	host.start()
	alpha.joinTo(host)
	starts := filepath.Join(m.root, "starts")
	wide := []string{"--ntasks", "2"} // at the host alone
	ended := alpha.run(starts, "0", wide...)
	alpha.becomes(ended, "COMPLETED")
	m.must(host.kith("drain"))
	here := alpha.run(starts, "0.1") // at alpha, which has one processor
	alpha.becomes(here, "COMPLETED")
	guest := host.run(starts, "600")
	host.becomes(guest, "RUNNING")
	m.must(host.kith("resume"))
	goOn := filepath.Join(m.root, "go-on")
	goesOn, endsSince := alpha.run(starts, "0; until [ -e "+goOn+" ]; do sleep 0.1; done", wide...), alpha.run(starts, "2", wide...)
	held, releasedSince := alpha.run(starts, "0", append(wide, "--hold")...), alpha.run(starts, "0", append(wide, "--hold")...)
	alpha.becomes(goesOn, "RUNNING")
	alpha.becomes(endsSince, "RUNNING")
	waits := alpha.run(starts, "0", append(wide, "--dependency", "afterok:"+goesOn)...)
	alpha.becomes(waits, "BLOCKED")

	file := filepath.Join(m.root, "alpha.backup")
	m.must(alpha.kith("site", "backup", file))
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if out, err := alpha.kith("site", "backup", file).CombinedOutput(); err == nil || !strings.Contains(string(out), "is there already") {
		t.Errorf("a second backup in the place of the first: %v %s", err, out)
	}

	m.must(alpha.kith("release", releasedSince))
	alpha.becomes(releasedSince, "COMPLETED")
	alpha.becomes(endsSince, "COMPLETED")
	since := alpha.run(starts, "600", wide...)
	alpha.becomes(since, "RUNNING")
	sinceEnded := alpha.run(starts, "0", wide...)
	alpha.becomes(sinceEnded, "COMPLETED")

	restore := func() (string, error) {
		out, err := m.command(programs.Kithd, "restore", "--config", alpha.config, file).CombinedOutput()
		return string(out), err
	}
	alpha.stop(syscall.SIGKILL)
	if out, err := restore(); err == nil || !strings.Contains(out, "empty data folder") {
		t.Fatalf("restored over facts: %v %s", err, out)
	}
	alpha.emptied()
	out, err := restore()
	if err != nil || !strings.Contains(out, "2 jobs and bags have ended, 3 are held, 2 are at other sites, 0 ran here") {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := restore(); err == nil || !strings.Contains(out, "empty data folder") {
		t.Fatalf("restored twice: %v %s", err, out)
	}
	alpha.start()
	alpha.connected("host")
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	for id, state := range map[string]string{ended: "COMPLETED", here: "COMPLETED", held: "HELD", waits: "HELD", releasedSince: "HELD", endsSince: "LOST", goesOn: "COMPLETED", since: "", sinceEnded: ""} {
		alpha.becomes(id, state)
	}
	host.becomes(guest, "LOST")
	if text := m.must(alpha.kith("show", waits)); !strings.Contains(text, "restored from the backup of") {
		t.Errorf("it does not say why it is held:\n%s", text)
	}
	host.eventually("what alpha does not know is stopped", func() bool {
		return !strings.Contains(m.must(host.kith("queue", "--remote")), since)
	})
	if _, err := os.Stat(starts + "." + since); err == nil {
		t.Error("it ran to its end")
	}
	// Ids are not given again, and a word of its user starts what waited, under a number that is new.
	fresh := alpha.run(starts, "0", wide...)
	m.must(alpha.kith("release", held))
	m.must(alpha.kith("release", waits))
	alpha.becomes(held, "COMPLETED")
	alpha.becomes(waits, "COMPLETED")
	alpha.becomes(fresh, "COMPLETED")
	for _, id := range []string{ended, here, guest, goesOn, endsSince, waits, held, releasedSince, since, sinceEnded, fresh} {
		if n := began(t, starts, id); n != 1 {
			t.Errorf("job %s began %d times", id, n)
		}
	}
}

// A site of three is lost as a whole, and one member comes back from its backup; the others join it.
func TestBackupOfASiteOfThree(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.threeWithAHost()
	starts := filepath.Join(m.root, "starts")
	ended := s.members["two"].run(starts, "0")
	s.members["two"].becomes(ended, "COMPLETED")
	held := s.members["three"].run(starts, "0", "--hold")
	file := filepath.Join(m.root, "alpha.backup")
	m.must(s.members["three"].kith("site", "backup", file)) // it need not lead
	since := s.members["two"].run(starts, "600")
	s.members["two"].becomes(since, "RUNNING")
	for _, name := range []string{"one", "two", "three"} {
		s.members[name].stop(syscall.SIGKILL)
		s.members[name].emptied()
	}
	one := s.members["one"]
	m.must(m.command(programs.Kithd, "restore", "--config", one.config, file))
	one.start()
	for _, name := range []string{"two", "three"} {
		s.members[name].startMember()
		m.must(one.kith("site", "members", "add", name, s.members[name].address))
	}
	s.members["two"].connected("host")
	one.stop(syscall.SIGKILL) // the others have all of it
	by := s.members["three"]
	by.becomes(ended, "COMPLETED")
	by.becomes(held, "HELD")
	by.becomes(since, "")
	m.must(by.kith("release", held))
	by.becomes(held, "COMPLETED")
	for _, id := range []string{ended, held, since} {
		if n := began(t, starts, id); n != 1 {
			t.Errorf("job %s began %d times", id, n)
		}
	}
}

// A site of one machine becomes one of three, and one machine again, while its jobs wait and run
// at another site. None is lost, and none begins twice.
func TestASiteBecomesOneOfThreeAndOneAgain(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	host := m.init("host", 4)
	host.start()
	alpha := m.init("alpha", 1)
	alpha.start()
	alpha.joinTo(host)
	starts := filepath.Join(m.root, "starts")
	wide := []string{"--ntasks", "2"}
	var ids []string
	submit := func(by *daemonSite, seconds string, options ...string) string {
		t.Helper()
		id := by.run(starts, seconds, append(wide, options...)...)
		ids = append(ids, id)
		return id
	}
	runs := submit(alpha, "25")
	alpha.becomes(runs, "RUNNING")
	for range 4 {
		submit(alpha, "4") // two of them wait at the host
	}
	here := alpha.run(starts, "2")
	alpha.eventually("a job runs at alpha", func() bool { return began(t, starts, here) == 1 })

	// What runs at this machine must end first.
	s := &siteOfThree{m, make(map[string]*daemonSite), strings.TrimSpace(m.must(m.command(programs.Kithd, "members", "id")))}
	one := s.asMember(alpha, "one")
	alpha.stop(syscall.SIGTERM)
	found := func() (string, error) {
		out, err := m.command(programs.Kithd, "members", "found", "--config", one.config).CombinedOutput()
		return string(out), err
	}
	if out, err := found(); err == nil || !strings.Contains(out, "1 jobs or tasks run at this machine") {
		t.Fatalf("founded while a job runs here: %v %s", err, out)
	}
	alpha.start()
	alpha.becomes(here, "COMPLETED")
	ids = append(ids, here)
	alpha.stop(syscall.SIGTERM)
	if out, err := found(); err != nil || !strings.Contains(out, "6 jobs") {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := m.command(programs.Kithd, "--config", alpha.config).CombinedOutput(); err == nil || !strings.Contains(string(out), "kithd members end") {
		t.Fatalf("started as a site of one machine: %v %s", err, out)
	}
	one.start()
	for _, name := range []string{"two", "three"} {
		s.join("alpha", name, "one")
	}
	s.members["two"].connected("host")
	for _, id := range ids {
		if s.members["three"].state(id) == "" {
			t.Errorf("job %s is not known any more", id)
		}
	}
	held := submit(s.members["three"], "0", "--hold")
	one.stop(syscall.SIGKILL)
	submit(s.members["two"], "1")
	one.startMember()

	// And back, at a machine that was not the first.
	three := s.members["three"]
	if out, err := m.command(programs.Kithd, "members", "end", "--config", one.config).CombinedOutput(); err == nil {
		t.Fatalf("ended while it runs: %s", out)
	}
	for _, name := range []string{"one", "two"} {
		three.eventually(name+" is removed", func() bool { return three.kith("site", "members", "remove", name).Run() == nil })
		s.members[name].stop(syscall.SIGTERM)
	}
	three.eventually("it leads", func() bool { return s.leads("three") == "three" })
	three.stop(syscall.SIGTERM)
	m.must(m.command(programs.Kithd, "members", "end", "--config", three.config))
	single := s.asOne(three)
	single.start()
	single.connected("host")
	m.must(single.kith("release", held))
	for _, id := range ids {
		single.becomes(id, "COMPLETED")
		if n := began(t, starts, id); n != 1 {
			t.Errorf("job %s began %d times", id, n)
		}
	}
}

// asMember gives a site of one machine the configuration of the first member of one of three.
func (s *siteOfThree) asMember(site *daemonSite, name string) *daemonSite {
	s.t.Helper()
	d := &daemonSite{machine: s.machine, name: name, address: site.address, config: filepath.Join(s.root, site.name+"-"+name+".toml"), socket: site.socket}
	// Others copy the keys of the first one.
	if err := os.Symlink(filepath.Dir(site.socket), filepath.Join(s.root, site.name+"-"+name)); err != nil {
		s.t.Fatal(err)
	}
	s.write(d, site.name, filepath.Dir(site.socket), fmt.Sprintf("[members]\nself = %q\ncluster = %q\n", name, s.cluster))
	s.members[name] = d
	return d
}

// asOne gives the last member of a site the configuration of one machine.
func (s *siteOfThree) asOne(member *daemonSite) *daemonSite {
	s.t.Helper()
	d := &daemonSite{machine: s.machine, name: "alpha", address: member.address, config: member.config + ".one", socket: member.socket}
	s.write(d, "alpha", filepath.Dir(member.socket), "[scheduler]\nprocessors = 1\n")
	return d
}

func (s *siteOfThree) write(d *daemonSite, site, data, more string) {
	s.t.Helper()
	text := fmt.Sprintf("site = %q\ndata = %q\n[listen]\naddress = %q\nallow_own_uid = true\n%s[placement]\ncopies = 2\n[log]\nformat = \"text\"\n", site, data, d.address, more)
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}
