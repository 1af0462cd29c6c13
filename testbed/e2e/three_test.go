package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// machines are those of the site omega of the testbed.
var machines = []string{"omega-one", "omega-two", "omega-three"}

// TestASiteOfThree has a site of three machines beside others, submits at it while its leader is
// killed, paused and cut off and while most of its machines are, and demands that what was
// acknowledged ran once.
func TestASiteOfThree(t *testing.T) {
	needEngine(t)
	b := &bed{t: t, dir: t.TempDir(), submitted: map[string]string{}}
	b.must(b.command("..", "./down"))
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range append([]string{"alpha", "gamma"}, machines...) {
				out, _ := exec.Command("docker", "logs", "--tail", "25", container(name)).CombinedOutput()
				t.Logf("---- %s\n%s", name, out)
			}
		}
		b.must(b.command("..", "./down"))
	})
	began := time.Now()
	b.must(b.command("..", "./up", "--three"))
	t.Logf("from nothing to a site of three beside two others: %v", time.Since(began).Round(time.Second))
	three := &omega{b}
	three.submit()
	b.eventually("a first job ran", func() bool { return len(b.ledger()) == 1 })

	for _, fault := range []struct {
		name     string
		do, undo func(machine string)
	}{
		{
			"its daemon is killed",
			func(machine string) { b.exec(machine, "/bin/sh", "-c", "kill -9 $(pidof kithd)") },
			func(string) {},
		},
		{
			"it is paused", func(machine string) { b.docker("pause", container(machine)) },
			func(machine string) { b.docker("unpause", container(machine)) },
		},
		{"it is cut off", three.cut, three.heal},
		{
			"its machine is killed", func(machine string) { b.docker("kill", container(machine)) },
			func(machine string) { b.docker("start", container(machine)) },
		},
	} {
		leader := three.leader()
		three.submit()
		fault.do(leader)
		at := time.Now()
		three.submit(leader)
		t.Logf("%s leads, and %s: a submission was answered after %v", leader, fault.name, time.Since(at).Round(time.Millisecond))
		three.submit(leader)
		fault.undo(leader)
		b.eventually(leader+" answers", func() bool { _, err := three.kith(leader, "site", "members"); return err == nil })
		three.submit()
	}

	// A minority takes nothing; what runs elsewhere goes on, and all is well when it ends.
	leader := three.leader()
	others := slices.DeleteFunc(slices.Clone(machines), func(m string) bool { return m == leader })
	three.submit()
	for _, m := range others {
		three.cut(m)
	}
	b.eventually("the machine that is left says that there is no majority", func() bool {
		out, err := three.kith(leader, "hold", "omega.1.1", "--timeout", "8s")
		return err != nil && strings.Contains(out, "must be up, and agree on one")
	})
	for _, m := range others {
		three.heal(m)
	}
	three.submit()
	if len(b.submitted) != b.tags {
		t.Errorf("%d jobs were submitted, under %d ids: %v", b.tags, len(b.submitted), b.submitted)
	}
	defer three.whyUnsigned()
	b.eventually("every job ran", func() bool { return len(b.ledger()) == b.tags })
	for id := range b.submitted {
		b.eventually("job "+id+" has ended", func() bool {
			out, err := three.kith("", "wait", id, "--timeout", "20s")
			return err == nil && !strings.Contains(out, "LOST")
		})
	}
	signed := b.ledger()
	for id, tag := range b.submitted {
		if n := len(signed[tag]); n != 1 {
			t.Errorf("job %s was started %d times: %v", id, n, signed[tag])
		}
	}
	t.Logf("%d jobs, each started once", len(b.submitted))
}

// omega is the site of three.
type omega struct{ *bed }

// kith runs a command at a machine, at any that answers if it is "".
func (o *omega) kith(machine string, args ...string) (out string, err error) {
	list := machines
	if machine != "" {
		list = []string{machine}
	}
	for _, m := range list {
		var text []byte
		text, err = exec.Command("docker", append([]string{"exec", "--user", "root", container(m), "kith"}, args...)...).CombinedOutput() //nolint:gosec // the test's own
		if out = string(text); err == nil {
			return out, nil
		}
	}
	return out, err
}

// leader returns the machine that leads.
func (o *omega) leader() (machine string) {
	o.t.Helper()
	o.eventually("a machine leads", func() bool {
		out, err := o.kith("", "site", "members", "--output", "json")
		if err != nil {
			return false
		}
		var r struct {
			Members []struct {
				Name         string
				Votes, Leads bool
			}
		}
		if json.Unmarshal([]byte(out), &r) != nil || len(r.Members) != 3 {
			return false
		}
		for _, m := range r.Members {
			if m.Leads && m.Votes {
				machine = "omega-" + m.Name
			}
		}
		return machine != ""
	})
	return machine
}

// submit submits a job that signs the ledger, at any machine but one that does not answer.
func (o *omega) submit(but ...string) {
	o.t.Helper()
	o.tags++
	tag := fmt.Sprintf("three-%d", o.tags)
	o.eventually("job "+tag+" is taken", func() bool {
		for _, m := range machines {
			if slices.Contains(but, m) {
				continue
			}
			out, err := o.kith(m, "submit", "--parsable", "--time", "5", "--request-id", tag, "--", "/bin/sh", "-c", "echo "+tag+" $KITH_ATTEMPT $KITH_SITE >>/ledger/ledger && sleep 1")
			lines := strings.Split(strings.TrimSpace(out), "\n") // kith tells on stderr that it asks again
			if id := lines[len(lines)-1]; err == nil && strings.HasPrefix(id, "omega.") {
				o.submitted[id] = tag
				return true
			}
		}
		return false
	})
}

// whyUnsigned tells of the jobs that have not signed the ledger, once the test has failed.
func (o *omega) whyUnsigned() {
	if !o.t.Failed() {
		return
	}
	signed := o.ledger()
	for id, tag := range o.submitted {
		if len(signed[tag]) == 0 {
			text, err := o.kith("", "why", id)
			o.t.Logf("job %s has not signed: %v\n%s", id, err, text)
		}
	}
}

func (o *omega) cut(machine string) {
	o.docker("network", "disconnect", "kith-testbed_omega", container(machine))
}

func (o *omega) heal(machine string) {
	o.docker("network", "connect", "--alias", machine, "kith-testbed_omega", container(machine))
}
