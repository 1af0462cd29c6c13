package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// site is a site of the testbed as compose.yaml has it.
type site struct {
	name string
	// address is where users reach it from this machine; "" of delta, which is asked
	// at its socket.
	address    string
	processors int
}

var sites = []site{
	{"alpha", "127.0.0.1:7411", 8}, {"beta", "127.0.0.1:7412", 2}, {"gamma", "127.0.0.1:7413", 4}, {"delta", "", 3},
}

// socket is where a site in a container is asked by who is on its machine.
const socket = "/var/lib/kith/kith.sock"

func siteOf(name string) site {
	return sites[slices.IndexFunc(sites, func(s site) bool { return s.name == name })]
}

// bed is the running testbed.
type bed struct {
	t *testing.T
	// dir has grpcurl, and of each site that has an address its NAME.crt and NAME.token.
	dir string
	// submitted are the jobs of this run, by id.
	submitted map[string]string // id → tag
	tags      int
}

// needEngine skips the test where no container engine is wanted or there.
func needEngine(t *testing.T) {
	t.Helper()
	if os.Getenv("KITH_E2E") != "1" {
		t.Skip("KITH_E2E is not 1: the container testbed needs a Docker engine and takes minutes")
	}
	if out, err := exec.Command("docker", "info").CombinedOutput(); err != nil {
		t.Skipf("no Docker engine answers: %v\n%s", err, out)
	}
}

// start builds and starts the testbed, and ends it with the test.
func start(t *testing.T) *bed {
	t.Helper()
	needEngine(t)
	b := &bed{t: t, dir: t.TempDir(), submitted: map[string]string{}}
	build := b.command("../..", "go", "build", "-modfile=tools/go.mod", "-o", b.file("grpcurl"), "github.com/fullstorydev/grpcurl/cmd/grpcurl")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // it runs in containers, too
	b.must(build)
	b.must(b.command("..", "./down"))
	t.Cleanup(func() {
		if t.Failed() {
			b.dump()
		}
		b.must(b.command("..", "./down"))
	})
	b.must(b.command("..", "./up"))
	for _, s := range sites {
		b.docker("cp", b.file("grpcurl"), container(s.name)+":/usr/bin/grpcurl")
		if s.address != "" {
			b.write(s.name+".crt", b.exec(s.name, "cat", "/var/lib/kith/keys/ca.crt"))
			b.write(s.name+".token", b.exec(s.name, "kith", "token", "create", "--user", "ann", "--expires", "12h"))
		}
	}
	b.connected()
	return b
}

func (b *bed) file(name string) string { return filepath.Join(b.dir, name) }

func (b *bed) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(b.file(name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) command(dir, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = dir
	return c
}

// must runs a command and returns what it prints.
func (b *bed) must(c *exec.Cmd) string {
	b.t.Helper()
	var out, errText bytes.Buffer
	c.Stdout, c.Stderr = &out, &errText
	if err := c.Run(); err != nil {
		b.t.Fatalf("%s: %v\n%s%s", strings.Join(c.Args, " "), err, out.String(), errText.String())
	}
	return out.String()
}

func (b *bed) docker(args ...string) string {
	b.t.Helper()
	return b.must(exec.Command("docker", args...))
}

func container(name string) string {
	// Compose 1 joins names with underscores, Compose 2 with dashes.
	out, err := exec.Command("docker", "ps", "--all", "--format", "{{.Names}}", "--filter", "label=com.docker.compose.project=kith-testbed",
		"--filter", "label=com.docker.compose.service="+name).Output()
	if err != nil {
		return name
	}
	return strings.TrimSpace(string(out))
}

// exec runs a command in a container as its operator.
func (b *bed) exec(name string, args ...string) string {
	b.t.Helper()
	return b.docker(append([]string{"exec", "--user", "root", container(name)}, args...)...)
}

// wan tells the network what to do.
func (b *bed) wan(command string) string {
	b.t.Helper()
	return b.exec("wan", "/usr/bin/kith-wan", "-config", "/etc/kith/wan.toml", "-do", command)
}

// overSocket is grpcurl on the machine of a site, which needs nothing but the path.
func (b *bed) overSocket(s site, data, method string) *exec.Cmd {
	return exec.Command("docker", "exec", "--user", "root", container(s.name), "grpcurl", "-plaintext", "-unix", "-max-time", "20", "-d", data, socket, method)
}

// overTLS is grpcurl from elsewhere, with the CA file of the site and a token.
func (b *bed) overTLS(s site, data, method string) *exec.Cmd {
	token, err := os.ReadFile(b.file(s.name + ".token"))
	if err != nil {
		b.t.Fatal(err)
	}
	return exec.Command(b.file("grpcurl"), "-cacert", b.file(s.name+".crt"), "-authority", s.name, "-H", "authorization: Bearer "+strings.TrimSpace(string(token)),
		"-max-time", "20", "-d", data, s.address, method)
}

func (b *bed) grpcurl(s site, data, method string) *exec.Cmd {
	if s.address == "" {
		return b.overSocket(s, data, method)
	}
	return b.overTLS(s, data, method)
}

// call calls a method of a site.
func (b *bed) call(s site, method string, request any, reply any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	c := b.grpcurl(s, string(data), method)
	var out, errText bytes.Buffer
	c.Stdout, c.Stderr = &out, &errText
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s at %s: %w: %s", method, s.name, err, errText.String())
	}
	return json.Unmarshal(out.Bytes(), reply)
}

func (b *bed) eventually(what string, ok func() bool) {
	b.t.Helper()
	for stop := time.Now().Add(90 * time.Second); time.Now().Before(stop); time.Sleep(200 * time.Millisecond) {
		if ok() {
			return
		}
	}
	b.dump()
	b.t.Fatalf("never: %s", what)
}

// connected waits until every site has a stream to every other.
func (b *bed) connected() {
	b.t.Helper()
	b.eventually("all sites are connected", func() bool {
		for _, s := range sites {
			var r struct {
				Sites []struct {
					ID, Reachability string
					Processors       int
				}
			}
			if err := b.call(s, "kith.v1.SiteService/ListSites", struct{}{}, &r); err != nil || len(r.Sites) != len(sites) {
				return false
			}
			for _, other := range r.Sites {
				if other.Reachability == "REACHABILITY_UNREACHABLE" || other.Processors != siteOf(other.ID).processors {
					return false
				}
			}
		}
		return true
	})
}

type job map[string]any

// submit submits a shell command that first signs the ledger.
func (b *bed) submit(s site, processors int, command string) string {
	b.t.Helper()
	b.tags++
	tag := fmt.Sprintf("job-%d", b.tags)
	text := "echo " + tag + " $KITH_ATTEMPT $KITH_SITE >> /ledger/ledger; " + command
	return b.submitJob(s, tag, job{"name": tag, "command": []string{"/bin/sh", "-c", text}, "processors": processors, "walltime": "300s", "copies": 3})
}

func (b *bed) submitJob(s site, tag string, j job) string {
	b.t.Helper()
	var r struct{ JobID string }
	if err := b.call(s, "kith.v1.JobService/SubmitJob", job{"job": j, "request_id": tag + fmt.Sprint(time.Now().UnixNano())}, &r); err != nil {
		b.t.Fatal(err)
	}
	if r.JobID == "" {
		b.t.Fatal("submitted, but no id came back")
	}
	b.submitted[r.JobID] = tag
	return r.JobID
}

// status is what GetJob says.
type status struct {
	State, HostSiteID, Reason string
	Outcome                   struct {
		ExitCode int
		Reason   string
	}
}

func originOf(id string) site { return siteOf(id[:strings.IndexByte(id, '.')]) }

func (b *bed) status(id string) (status, error) {
	var r struct{ Job struct{ Status status } }
	err := b.call(originOf(id), "kith.v1.JobService/GetJob", job{"job_id": id}, &r)
	return r.Job.Status, err
}

func (b *bed) wait(id string, states ...string) status {
	b.t.Helper()
	var last status
	var err error
	b.eventually(fmt.Sprintf("job %s is %v", id, states), func() bool {
		last, err = b.status(id)
		return err == nil && slices.Contains(states, strings.TrimPrefix(last.State, "STATE_"))
	})
	return last
}

func (b *bed) output(id, path string) string {
	b.t.Helper()
	c := b.grpcurl(originOf(id), fmt.Sprintf(`{"job_id":%q,"path":%q}`, id, path), "kith.v1.JobService/GetJobOutput")
	var text strings.Builder
	for d := json.NewDecoder(strings.NewReader(b.must(c))); d.More(); {
		var r struct{ Data string }
		if err := d.Decode(&r); err != nil {
			b.t.Fatal(err)
		}
		piece, err := base64.StdEncoding.DecodeString(r.Data)
		if err != nil {
			b.t.Fatal(err)
		}
		text.Write(piece)
	}
	return text.String()
}

// ledger returns who signed it: tag → attempts.
func (b *bed) ledger() map[string][]string {
	b.t.Helper()
	signed := map[string][]string{}
	for line := range strings.Lines(b.exec("wan", "/bin/sh", "-c", "cat /ledger/ledger 2>/dev/null || true")) {
		if f := strings.Fields(line); len(f) == 3 {
			signed[f[0]] = append(signed[f[0]], f[1]+" at "+f[2])
		}
	}
	return signed
}

// dump shows what the sites logged last.
func (b *bed) dump() {
	for _, s := range sites {
		out, _ := exec.Command("docker", "logs", "--tail", "25", container(s.name)).CombinedOutput()
		b.t.Logf("---- %s\n%s", s.name, out)
	}
}
