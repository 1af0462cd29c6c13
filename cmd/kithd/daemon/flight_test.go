package daemon

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/meta/flight"
	kithv1 "kith/proto/gen/kith/v1"
)

// flights returns the recordings in a data folder, the oldest first.
func flights(t *testing.T, data string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, flight.Folder, "*"+flight.Suffix))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

// played is what came of a recording.
type played struct {
	steps, states int
	ended         string
	kinds         map[string]int
}

// playFlight plays a recording. It must come to what was recorded.
func playFlight(t *testing.T, path string) played {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := flight.Open(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	r := played{kinds: make(map[string]int)}
	for {
		s, err := p.Next()
		if errors.Is(err, io.EOF) {
			r.states, r.ended = p.States(), p.Ended()
			return r
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		r.kinds[flight.Kind(s.Event)]++
		r.steps++
	}
}

// What a site did until it was killed, and what the next daemon did on the same folder, plays
// again bit for bit, also where the last record is torn. Nothing of what jobs ran, read or
// wrote is in a file.
func TestAKilledSitePlaysAgain(t *testing.T) {
	t.Parallel()
	const secret = "planted-5ecret"
	k := newKilled(t)
	ended := k.submit(&kithv1.Job{
		Script: "#!/bin/sh\n# " + secret + "\necho " + secret + "\necho " + secret + " >&2\nexit 3\n", Processors: 1, Walltime: durationpb.New(time.Minute),
		Arguments: []string{secret}, Environment: map[string]string{"TOKEN": secret},
		Inputs: []*kithv1.InputFile{{Path: "in", Content: &kithv1.InputFile_Data{Data: []byte(secret)}}},
	})
	k.waitState(ended, kithv1.JobStatus_STATE_FAILED)
	bag := k.submitBag(&kithv1.Bag{
		Job: &kithv1.Job{
			Script: "#!/bin/sh\necho " + secret + " $KITH_TASK_INDEX >&2\nexit 4\n", Environment: map[string]string{"TOKEN": secret}, Processors: 1, Walltime: durationpb.New(time.Minute),
		},
		Indices: "0-11",
	})
	k.eventually("the bag ends", func() bool { return k.bag(bag).GetState() == kithv1.BagStatus_STATE_FAILED })
	running := k.submit(shell("while [ ! -e " + filepath.Join(k.cfg.Data, "go") + " ]; do sleep 0.02; done"))
	k.waitState(running, kithv1.JobStatus_STATE_RUNNING)
	k.kill()
	first := flights(t, k.cfg.Data)
	if len(first) != 1 {
		t.Fatalf("recordings of the first life: %v", first)
	}
	whole := playFlight(t, first[0])
	if whole.kinds["Submit"] != 2 || whole.kinds["SubmitBag"] != 1 || whole.kinds["AttemptEnded"] == 0 || !strings.HasPrefix(whole.ended, "it breaks off: the daemon was killed") {
		t.Errorf("the first life: %+v", whole)
	}
	tear(t, first[0])
	if torn := playFlight(t, first[0]); torn.steps > whole.steps || !strings.HasPrefix(torn.ended, "it breaks off within a record") {
		t.Errorf("with its last record torn: %+v, whole %+v", torn, whole)
	}

	k.run()
	if err := os.WriteFile(filepath.Join(k.cfg.Data, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.waitState(running, kithv1.JobStatus_STATE_COMPLETED)
	k.stdin.Close() //nolint:errcheck // it ends then
	if err := k.process.Wait(); err != nil {
		t.Error(err)
	}
	both := flights(t, k.cfg.Data)
	if len(both) != 2 {
		t.Fatalf("recordings of both lives: %v", both)
	}
	if next := playFlight(t, both[1]); next.kinds["AttemptEnded"] == 0 || next.states == 0 || next.ended != "the daemon stops" {
		t.Errorf("the second life: %+v", next)
	}
	for _, f := range both {
		if b, err := os.ReadFile(f); err != nil || bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s: a secret is in it, or %v", f, err)
		}
	}
	k.run() // for the end of the test
}

// tear cuts the last bytes off a file, as a machine that loses power may.
func tear(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, info.Size()-3)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever lies in the folder of recordings, the site starts, and leaves alone what it has not
// written.
func TestHostileFlightFolders(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]struct {
		make    func(t *testing.T, data, outside string)
		records bool
	}{
		"a pipe in the place of the next file": {func(t *testing.T, data, _ string) {
			must(t, os.Mkdir(filepath.Join(data, flight.Folder), 0o700))
			must(t, syscall.Mkfifo(filepath.Join(data, flight.Folder, "0000000001.flight"), 0o600))
			must(t, syscall.Mkfifo(filepath.Join(data, flight.Folder, "0000000002.flight"), 0o600))
		}, true},
		"a link in the place of the next file": {func(t *testing.T, data, outside string) {
			must(t, os.Mkdir(filepath.Join(data, flight.Folder), 0o700))
			must(t, os.Symlink(outside, filepath.Join(data, flight.Folder, "0000000009.flight")))
			must(t, os.Symlink(outside, filepath.Join(data, flight.Folder, "0000000010.flight")))
		}, true},
		"the folder is a link out of the data folder": {func(t *testing.T, data, outside string) {
			must(t, os.Symlink(filepath.Dir(outside), filepath.Join(data, flight.Folder)))
		}, false},
		"the folder is a pipe": {func(t *testing.T, data, _ string) {
			must(t, syscall.Mkfifo(filepath.Join(data, flight.Folder), 0o600))
		}, false},
		"the folder is a file": {func(t *testing.T, data, _ string) {
			must(t, os.WriteFile(filepath.Join(data, flight.Folder), []byte("x"), 0o600))
		}, false},
		"folders in the place of files": {func(t *testing.T, data, _ string) {
			must(t, os.MkdirAll(filepath.Join(data, flight.Folder, "0000000001.flight", "full"), 0o700))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			outside := filepath.Join(top, "precious")
			must(t, os.WriteFile(outside, []byte("precious"), 0o600))
			cfg := killedConfig("alpha", filepath.Join(top, "alpha"), "127.0.0.1:0")
			must(t, os.Mkdir(cfg.Data, 0o700))
			plant.make(t, cfg.Data, outside)
			s := startSite(t, cfg)
			s.waitState(s.submit(shell("exit 0")), kithv1.JobStatus_STATE_COMPLETED)
			if !plant.records {
				if !s.logged("no flight recording; the site goes on") {
					t.Error("it does not say that it records nothing")
				}
			} else {
				s.eventually("it records", func() bool { return s.d.flight.Figures().Bytes > 0 })
			}
			if b, err := os.ReadFile(outside); err != nil || string(b) != "precious" {
				t.Errorf("what lies outside is %q, %v", b, err)
			}
			if entries, err := os.ReadDir(top); err != nil || len(entries) != 2 {
				t.Errorf("beside the data folder: %v, %v", entries, err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
