package runner

import (
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
	"kith/store/blobstore"
)

func savingPayload(t *testing.T) []byte {
	t.Helper()
	raw, err := proto.Marshal(&kithv1.Payload{Job: &kithv1.Job{
		Command: []string{"true"}, Outputs: []*kithv1.OutputFile{{Path: "out"}}, Checkpoint: &kithv1.Checkpoint{Paths: []string{"state-*"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func openFilesFor(t *testing.T, backend *payloads) *Files {
	t.Helper()
	f, err := OpenFiles(FilesConfig{Site: "alpha", Dir: t.TempDir(), MaxFileBytes: 1 << 20, Backend: backend, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func saved(name, content string) transfer.File {
	return transfer.File{Path: ".kith/checkpoint/" + name, Size: int64(len(content)), Inline: []byte(content)}
}

// What a host says that a job has saved counts if it can be true; else the job goes on from
// what it had saved before.
func TestCheckSavedOfAnotherSite(t *testing.T) {
	t.Parallel()
	f := openFilesFor(t, &payloads{raw: savingPayload(t)})
	done, state, stdout := saved("DONE", "7\n"), saved("state-1", "x"), transfer.File{Path: "stdout", Size: 1, Inline: []byte("s")}
	large := transfer.File{Path: ".kith/checkpoint/state-2", Size: 2 << 20, Chunks: []blobstore.Sum{{1}}}
	now := job.Instant(time.Now())
	for name, c := range map[string]struct {
		files  []transfer.File
		number uint64
		kind   job.OutcomeKind
		counts bool
		says   string
	}{
		"whole":           {files: []transfer.File{done, state, stdout}, number: 7, counts: true},
		"another number":  {files: []transfer.File{done, state, stdout}, number: 8, says: "no checkpoint: its host numbered it 8"},
		"no number":       {files: []transfer.File{done, state, stdout}, says: "its host gave it no number"},
		"without DONE":    {files: []transfer.File{state, stdout}, number: 7, says: "its host did not name DONE"},
		"without a state": {files: []transfer.File{done, stdout}, number: 7, says: `its host has no ".kith/checkpoint/state-*"`},
		"too large":       {files: []transfer.File{done, state, large, stdout}, number: 7, says: `state-2" was not taken`},
		"a stranger":      {files: []transfer.File{done, saved("other", "x"), state, stdout}, number: 7, says: `other" was not taken`},
		"an output":       {files: []transfer.File{done, state, {Path: "out", Size: 1, Inline: []byte("o")}, stdout}, number: 7, counts: true, says: `not declared: "out"`},
		"no files":        {number: 7},
		"none":            {files: []transfer.File{stdout}},
		"of a failure":    {files: []transfer.File{done, state, stdout}, number: 7, kind: job.Failure, says: "not declared"},
	} {
		o := job.Outcome{Kind: job.Demoted, Checkpoint: c.number, Start: now.Add(-time.Second), End: now}
		if c.kind != 0 {
			o.Kind = c.kind
		}
		if len(c.files) > 0 {
			var err error
			if o.Files, err = (transfer.Set{Files: c.files}).Encode(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		got, err := f.CheckResult("beta", meta.Result{Attempt: job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 1}, Number: 1}, Outcome: o})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		set, err := transfer.Decode(got.Outcome.Files)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, has := set.Find(".kith/checkpoint/DONE")
		if has != c.counts || o.Kind == job.Demoted && (got.Outcome.Checkpoint == c.number && c.number != 0) != c.counts || !strings.Contains(got.Outcome.Reason, c.says) {
			t.Errorf("%s: checkpoint %d, DONE %v, %q", name, got.Outcome.Checkpoint, has, got.Outcome.Reason)
		}
	}
}

// What the next attempt runs is what was submitted with what was saved, and nothing else of
// what the attempt left. Without the files of its checkpoint it is not run.
func TestResumed(t *testing.T) {
	t.Parallel()
	set, err := transfer.Set{Files: []transfer.File{saved("DONE", "7"), saved("state-1", "x"), {Path: "stdout", Size: 1, Inline: []byte("s")}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	raw := savingPayload(t)
	backend := &payloads{raw: raw, saved: set}
	f := openFilesFor(t, backend)
	id := job.ID{Origin: "alpha", Generation: 1, Seq: 1}
	if got, err := f.Resumed(id, raw, store.Resume{}); err != nil || string(got) != string(raw) {
		t.Errorf("a first start: %v", err)
	}
	got, err := f.Resumed(id, raw, store.Resume{Attempt: 2, Demotions: 3, Sequence: 7, Used: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	p, err := parsePayload(got)
	if err != nil || len(p.saved.Files) != 2 || len(p.inputs.Files) != 0 {
		t.Fatalf("%v, saved %v", err, p.saved)
	}
	if c := p.checkpoint("/work"); c.Dir != "/work/.kith/checkpoint" || c.Sequence != 7 || c.Demotions != 3 || c.Used != time.Hour {
		t.Errorf("it is told %+v", c)
	}
	if got, err = f.Resumed(id, raw, store.Resume{Demotions: 3, Used: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if p, err = parsePayload(got); err != nil || len(p.saved.Files) != 0 || p.checkpoint("/work").Demotions != 3 {
		t.Errorf("without a checkpoint: %v, %+v", err, p)
	}
	backend.saved = nil
	if _, err := f.Resumed(id, raw, store.Resume{Attempt: 2, Demotions: 3, Sequence: 7}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without its files: %v", err)
	}

	// A set that would write elsewhere is none.
	strange := &kithv1.Payload{Job: &kithv1.Job{}, Resume: &kithv1.Resume{Files: transfer.Set{Files: []transfer.File{{Path: "x", Size: 1, Inline: []byte("x")}}}.Proto()}}
	if raw, err = proto.Marshal(strange); err != nil {
		t.Fatal(err)
	}
	if _, err := parsePayload(raw); !errors.Is(err, errPayload) {
		t.Errorf("a checkpoint outside its folder: %v", err)
	}
}
