package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestTestbed is one story: each chapter goes on where the one before ended,
// and at the end every job must have run exactly once.
func TestTestbed(t *testing.T) {
	b := start(t)
	lost := map[string]bool{} // jobs whose host lost its power
	for _, chapter := range []struct {
		name string
		tell func()
	}{
		{"every way in", b.waysIn},
		{"jobs run where there is room", b.spread},
		{"script, files and exit code", b.scriptAndFiles},
		{"a container is stopped while its jobs wait", b.stopWhileWaiting},
		{"a site is cut off and healed", b.cutAndHeal},
		{"a daemon is killed while jobs run", b.killDaemon},
		{"a container is restarted while it runs jobs", func() { b.restartContainer(lost) }},
		{"the engine disconnects, pauses and kills", b.chaos},
	} {
		before := time.Now()
		b.t = t
		if !t.Run(chapter.name, func(t *testing.T) { b.t = t; chapter.tell() }) {
			b.t = t
			return
		}
		b.t = t
		t.Logf("%s: %v", chapter.name, time.Since(before).Round(time.Millisecond))
	}
	b.everyJobOnce(lost)
}

// everyJobOnce demands one end and one signature for every job.
func (b *bed) everyJobOnce(lost map[string]bool) {
	signed := b.ledger()
	for id, tag := range b.submitted {
		s, err := b.status(id)
		switch {
		case err != nil:
			b.t.Errorf("%s: %v", id, err)
		case lost[id] && s.State != "STATE_LOST":
			b.t.Errorf("%s lost its machine and is %s", id, s.State)
		case !lost[id] && s.State != "STATE_COMPLETED" && s.State != "STATE_FAILED":
			b.t.Errorf("%s is %s: %s", id, s.State, s.Reason)
		}
		if n := len(signed[tag]); n != 1 && strings.HasPrefix(tag, "job-") {
			b.t.Errorf("%s was started %d times: %v", id, n, signed[tag])
		}
	}
	for _, s := range sites {
		var r struct{ RemoteCopies []any }
		if err := b.call(s, "kith.v1.JobService/ListJobs", job{"include_remote": true}, &r); err != nil || len(r.RemoteCopies) > 0 {
			b.t.Errorf("%s still holds copies: %v, %v", s.name, r.RemoteCopies, err)
		}
	}
	b.t.Logf("%d jobs, each started once", len(b.submitted))
}

// waysIn submits as the documentation says: on the machine of a site with nothing but the
// path of its socket, from elsewhere with its CA file and a token. Without them nobody
// comes in.
func (b *bed) waysIn() {
	s := siteOf("alpha")
	id := b.submitJob(s, "hi", job{"name": "hi", "command": []string{"/bin/echo", "hello"}, "processors": 1, "walltime": "60s", "copies": 3})
	b.wait(id, "COMPLETED")
	if out := b.output(id, ""); out != "hello\n" {
		b.t.Errorf("output %q", out)
	}
	if out := b.exec("alpha", "kith", "submit", "--wait", "--", "/bin/echo", "hello"); out != "hello\n" {
		b.t.Errorf("kith at the socket: %q", out)
	}
	const oneJob = `{"job":{"command":["/bin/echo","hello"],"processors":1,"walltime":"60s"}}`
	for _, way := range []*exec.Cmd{b.overSocket(s, oneJob, "kith.v1.JobService/SubmitJob"), b.overTLS(s, oneJob, "kith.v1.JobService/SubmitJob")} {
		var r struct{ JobID string }
		if out := b.must(way); json.Unmarshal([]byte(out), &r) != nil || r.JobID == "" {
			b.t.Errorf("%s: %q", strings.Join(way.Args, " "), out)
			continue
		}
		b.wait(r.JobID, "COMPLETED")
	}
	kith := func(args ...string) *exec.Cmd {
		return exec.Command("../image/usr/bin/kith", append([]string{"--site", s.address}, args...)...)
	}
	if out := b.must(kith("--ca", b.file("alpha.crt"), "--token", b.file("alpha.token"), "submit", "--wait", "--", "/bin/echo", "hello")); out != "hello\n" {
		b.t.Errorf("kith from elsewhere: %q", out)
	}
	for what, way := range map[string]*exec.Cmd{
		"without a token":        kith("--ca", b.file("alpha.crt"), "sites"),
		"with another's CA file": kith("--ca", b.file("beta.crt"), "--token", b.file("alpha.token"), "sites"),
		"with another's token":   kith("--ca", b.file("alpha.crt"), "--token", b.file("beta.token"), "sites"),
		"in plaintext":           kith("sites", "--timeout", "10s"),
		"without a token, by grpcurl": exec.Command(b.file("grpcurl"), "-cacert", b.file("alpha.crt"), "-authority", "alpha", "-max-time", "20",
			s.address, "list"),
		"in plaintext, by grpcurl":                 exec.Command(b.file("grpcurl"), "-plaintext", "-max-time", "20", s.address, "list"),
		"as the account of kithd, which jobs have": exec.Command("docker", "exec", "--user", "kith", container("beta"), "kith", "sites"),
	} {
		if out, err := way.CombinedOutput(); err == nil {
			b.t.Errorf("%s: it was answered: %s", what, out)
		}
	}
}

// spread submits more at a small site than it can take: others help.
func (b *bed) spread() {
	var ids []string
	for range 10 {
		ids = append(ids, b.submit(siteOf("beta"), 1, "sleep 2; echo ran at $KITH_SITE"))
	}
	hosts := map[string]bool{}
	for _, id := range ids {
		s := b.wait(id, "COMPLETED")
		hosts[s.HostSiteID] = true
		if out := b.output(id, "stdout"); out != "ran at "+s.HostSiteID+"\n" {
			b.t.Errorf("%s at %s wrote %q", id, s.HostSiteID, out)
		}
	}
	if len(hosts) < 3 {
		b.t.Errorf("10 jobs of 2 s at a site of 2 processors ran only at %v", hosts)
	}
}

func (b *bed) scriptAndFiles() {
	script := "#!/bin/sh\necho job-files $KITH_ATTEMPT $KITH_SITE >> /ledger/ledger\ntr a-z A-Z < in/words.txt > out.txt\necho on stderr >&2\nexit 7\n"
	id := b.submitJob(siteOf("delta"), "job-files", job{
		"name": "files", "script": script, "processors": 3, "walltime": "60s",
		"inputs":  []job{{"path": "in/words.txt", "data": "d29yZHMK"}},
		"outputs": []job{{"path": "out.txt"}},
	})
	s := b.wait(id, "FAILED")
	if s.Outcome.ExitCode != 7 || b.output(id, "out.txt") != "WORDS\n" || b.output(id, "stderr") != "on stderr\n" {
		b.t.Errorf("exit code %d, out.txt %q, stderr %q", s.Outcome.ExitCode, b.output(id, "out.txt"), b.output(id, "stderr"))
	}
}

// fill keeps all processors of all sites busy for some seconds.
func (b *bed) fill(seconds int) []string {
	var ids []string
	for _, s := range sites {
		id := b.submit(s, s.processors, fmt.Sprintf("sleep %d", seconds))
		ids = append(ids, id)
	}
	for _, id := range ids {
		b.wait(id, "RUNNING")
	}
	return ids
}

// stopWhileWaiting: the origin is away, its copies wait at other sites, and
// start only after it is back.
func (b *bed) stopWhileWaiting() {
	busy := b.fill(8)
	var waiting []string
	for range 4 {
		waiting = append(waiting, b.submit(siteOf("gamma"), 1, "true"))
	}
	b.docker("stop", "--time", "3", container("gamma"))
	for _, id := range busy {
		if originOf(id).name != "gamma" {
			b.wait(id, "COMPLETED")
		}
	}
	time.Sleep(3 * time.Second) // copies at the others claim in vain
	signed := b.ledger()
	for _, id := range waiting {
		if n := len(signed[b.submitted[id]]); n != 0 {
			b.t.Errorf("%s was started %d times while its origin was away", id, n)
		}
	}
	b.docker("start", container("gamma"))
	for _, id := range waiting {
		b.wait(id, "COMPLETED")
	}
	// What ran at gamma itself went down with its container.
	for _, id := range busy {
		if originOf(id).name == "gamma" {
			b.wait(id, "LOST")
			delete(b.submitted, id)
		}
	}
	b.connected()
}

// cutAndHeal: a job that runs at a site that is cut off goes on, and its
// result arrives when the cut heals.
func (b *bed) cutAndHeal() {
	id := b.submit(siteOf("delta"), 3, "sleep 1") // keeps delta busy for a moment
	away := b.submit(siteOf("delta"), 2, "sleep 6; echo survived")
	host := b.wait(away, "RUNNING").HostSiteID
	if host == "delta" {
		b.t.Fatalf("%s runs at its origin", away)
	}
	b.wan("cut delta *")
	waiting := b.submit(siteOf("delta"), 1, "true") // a site that is cut off works on
	b.wait(waiting, "COMPLETED")
	time.Sleep(8 * time.Second) // the job ends meanwhile, and all sites have noticed the cut
	if s, err := b.status(away); err != nil || s.State != "STATE_RUNNING" {
		b.t.Errorf("while cut off: %v, %v", s, err)
	}
	b.wan("heal all")
	b.wait(away, "COMPLETED")
	b.wait(id, "COMPLETED")
	if out := b.output(away, ""); out != "survived\n" {
		b.t.Errorf("output %q", out)
	}
	b.connected()
}

// killDaemon kills two daemons with SIGKILL while jobs run at their sites.
func (b *bed) killDaemon() {
	here := b.submit(siteOf("alpha"), 8, "sleep 5; echo here")
	b.wait(here, "RUNNING")
	away := b.submit(siteOf("alpha"), 2, "sleep 5; echo away")
	host := b.wait(away, "RUNNING").HostSiteID
	for _, name := range []string{"alpha", host} {
		b.exec(name, "/bin/sh", "-c", "kill -9 $(pidof kithd)")
	}
	b.connected()
	for id, want := range map[string]string{here: "here\n", away: "away\n"} {
		b.wait(id, "COMPLETED")
		if out := b.output(id, ""); out != want {
			b.t.Errorf("%s wrote %q", id, out)
		}
	}
}

// restartContainer takes a machine down with all that runs on it: its jobs end
// as lost, once, and nothing else is disturbed.
func (b *bed) restartContainer(lost map[string]bool) {
	doomed := b.submit(siteOf("beta"), 2, "sleep 100")
	b.wait(doomed, "RUNNING")
	fine := b.submit(siteOf("beta"), 1, "sleep 3; echo fine")
	if host := b.wait(fine, "RUNNING").HostSiteID; host == "beta" {
		b.t.Fatalf("%s runs at its origin", fine)
	}
	b.docker("restart", "--time", "2", container("beta"))
	s := b.wait(doomed, "LOST")
	lost[doomed] = true
	if s.Reason == "" {
		b.t.Error("nothing says why the job is lost")
	}
	b.wait(fine, "COMPLETED")
	b.connected()
}
