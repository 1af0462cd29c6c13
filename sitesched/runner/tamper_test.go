package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/api"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
)

// scriptPayload is a job of beta with a script that says that it runs and waits.
func scriptPayload(t *testing.T, script string) []byte {
	t.Helper()
	set := transfer.Set{Files: []transfer.File{{Path: api.ScriptPath, Executable: true, Size: int64(len(script)), Inline: []byte(script)}}}
	raw, err := proto.Marshal(&kithv1.Payload{
		Job: &kithv1.Job{Processors: 1, Walltime: durationpb.New(time.Minute)}, Inputs: set.Proto(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A job that puts a FIFO in the place of its script, or of what the site wrote beside
// its folder, held up every later daemon for ever. It has run once, and ends.
func TestAJobCannotHoldUpARestart(t *testing.T) {
	t.Parallel()
	for place, path := range map[string]func(r *Runner, a job.AttemptID) string{
		"script": func(r *Runner, a job.AttemptID) string {
			return filepath.Join(r.system.Files(a).Work, filepath.FromSlash(api.ScriptPath))
		},
		"mark": func(r *Runner, a job.AttemptID) string { return r.system.Files(a).Mark },
	} {
		for kind, put := range map[string]func(string) error{
			"fifo":        func(p string) error { return unix.Mkfifo(p, 0o600) },
			"folder":      func(p string) error { return os.Mkdir(p, 0o700) },
			"link":        func(p string) error { return os.Symlink("/dev/zero", p) },
			"nothing":     func(string) error { return nil },
			"sparse file": func(p string) error { return errorsOf(os.WriteFile(p, nil, 0o600), os.Truncate(p, 1<<30)) },
		} {
			t.Run(kind+" for "+place, func(t *testing.T) {
				t.Parallel()
				count := filepath.Join(t.TempDir(), "count")
				h := newHouse(t, "")
				script := "#!/bin/sh\necho x >>" + count + "; while [ ! -e " + count + ".go ]; do sleep 0.05; done; exit 0\n"
				h.raw = scriptPayload(t, script)
				h.runner.Launch(meta.Launch{Attempt: own(1), Request: request})
				if ev, started := h.next().(meta.AttemptStarted); !started {
					t.Fatalf("%T %+v", ev, ev)
				}
				h.eventually("it runs", func() bool { b, _ := os.ReadFile(count); return len(b) > 0 }) //nolint:gosec // a file of the test
				p := path(h.runner, own(1))
				if err := errorsOf(os.RemoveAll(p), put(p)); err != nil {
					t.Fatal(err)
				}
				boot := h.runner.BootID()
				h.reopen()
				done := make(chan struct{})
				go func() {
					defer close(done)
					h.runner.Adopt(meta.Adopt{Attempt: own(1), Request: request, BootID: boot})
				}()
				select {
				case <-done:
				case <-time.After(20 * time.Second):
					t.Fatal("the next daemon hangs")
				}
				if ev, started := h.next().(meta.AttemptStarted); !started {
					t.Fatalf("%T %+v", ev, ev)
				}
				if err := os.WriteFile(count+".go", nil, 0o600); err != nil {
					t.Fatal(err)
				}
				h.ends(job.Success)
				if text, err := os.ReadFile(count); err != nil || string(text) != "x\n" { //nolint:gosec // a file of the test
					t.Errorf("it ran %d times: %v", len(text)/2, err)
				}
			})
		}
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// What a host runs is what it has accepted: the folder that was checked is the one in
// which the job runs, and what is wrong with a submission is wrong with a payload.
func TestAPayloadIsWhatWasAccepted(t *testing.T) {
	t.Parallel()
	accepted := job.Request{Name: "n", Processors: 2, MemoryBytes: 1 << 20, Walltime: time.Minute}
	for field, spoil := range map[string]func(j *kithv1.Job){
		"":                     func(*kithv1.Job) {},
		"working_directory":    func(j *kithv1.Job) { j.WorkingDirectory = "/etc" },
		"working_directory ..": func(j *kithv1.Job) { j.WorkingDirectory = "../../.." },
		"processors":           func(j *kithv1.Job) { j.Processors = 4 },
		"memory_bytes":         func(j *kithv1.Job) { j.MemoryBytes = 1 << 30 },
		"name":                 func(j *kithv1.Job) { j.Name = "other" },
		"tasks":                func(j *kithv1.Job) { j.Tasks = -5 },
		"on_site_lost":         func(j *kithv1.Job) { j.OnSiteLost = kithv1.Job_ON_SITE_LOST_RERUN },
		"environment":          func(j *kithv1.Job) { j.Environment = map[string]string{"a=b": "c"} },
		"command":              func(j *kithv1.Job) { j.Command = []string{"true\x00"} },
	} {
		j := &kithv1.Job{Name: "n", Command: []string{"true"}, Processors: 2, MemoryBytes: 1 << 20, Walltime: durationpb.New(time.Hour)}
		spoil(j)
		raw, err := proto.Marshal(&kithv1.Payload{Job: j})
		if err != nil {
			t.Fatal(err)
		}
		p, err := parsePayload(raw)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.spec(own(1), &accepted, "beta", "/x", nil)
		name, _, _ := strings.Cut(field, " ")
		if (field == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), "job."+name) {
			t.Errorf("%q: %v", field, err)
		}
	}
}
