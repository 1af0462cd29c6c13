package runner

import (
	"log/slog"
	"strings"
	"syscall"
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

// payloads is a store with one payload, or an error.
type payloads struct {
	raw []byte
	err error
	// saved is what an attempt left that was demoted.
	saved []byte
}

func (p payloads) AttemptFiles(job.AttemptID) ([]byte, error) { return p.saved, p.err }

func (p payloads) Payload(job.ID) ([]byte, error)            { return p.raw, p.err }
func (p payloads) Outputs(job.ID) ([]byte, error)            { return nil, store.ErrUnknown }
func (p payloads) HeldPayload(job.AttemptID) ([]byte, error) { return p.raw, p.err }
func (p payloads) TaskFilesFrom(job.ID, uint32) ([]store.TaskFiles, error) {
	return nil, nil
}

// What a host says about the end of an attempt is taken as far as it can be true.
func TestCheckResult(t *testing.T) {
	t.Parallel()
	raw, err := proto.Marshal(&kithv1.Payload{Job: &kithv1.Job{Outputs: []*kithv1.OutputFile{{Path: "out/"}}}})
	if err != nil {
		t.Fatal(err)
	}
	backend := &payloads{raw: raw}
	f, err := OpenFiles(FilesConfig{Site: "alpha", Dir: t.TempDir(), MaxFileBytes: 1 << 20, Backend: backend, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	file := func(path string, size int64) transfer.File {
		if size < 10 {
			return transfer.File{Path: path, Size: size, Inline: make([]byte, size)}
		}
		return transfer.File{Path: path, Size: size, Chunks: []blobstore.Sum{blobstore.SumOf([]byte(path))}}
	}
	now := job.Instant(time.Now())
	good := job.Outcome{Kind: job.Success, Start: now.Add(-time.Second), End: now, FilesRemain: true}
	for name, c := range map[string]struct {
		change func(o *job.Outcome)
		files  []transfer.File
		kept   string
		says   string
		remain bool
		lost   bool
	}{
		"as it should be": {files: []transfer.File{file("out/x", 100), file("stderr", 1), file("stdout", 1)}, kept: "out/x stderr stdout", remain: true},
		"not declared":    {files: []transfer.File{file(".bashrc", 100), file("outer", 1), file("stdout", 1)}, kept: "stdout", says: `not declared: ".bashrc", "outer"`},
		"too large":       {files: []transfer.File{file("out/x", 2<<20), file("stdout", 1)}, kept: "stdout", says: "larger than", lost: true},
		"nothing is left": {files: []transfer.File{file("a", 1), file("b", 1), file("c", 1)}, says: `"a", "b" and 1 more`},
		"no list":         {change: func(o *job.Outcome) { o.Files = []byte("nonsense") }, says: "is not valid", lost: true},
		"figures": {change: func(o *job.Outcome) {
			*o = job.Outcome{Kind: job.Failure, ExitCode: -7, Signal: 3000, CPUTime: -1, MaxRSSBytes: 1 << 60, Start: now.Add(1e18), End: now.Add(2e18)}
		}, says: "out of bounds"},
		"times of 1970":           {change: func(o *job.Outcome) { o.Start, o.End, o.FilesRemain = 1, 2, false }, says: "times cannot be true"},
		"a far future":            {change: func(o *job.Outcome) { o.Start, o.End = now.Add(1e18), now.Add(2e18) }, says: "times cannot be true", remain: true},
		"before 1970":             {change: func(o *job.Outcome) { o.Start, o.End = -5, now }, says: "times cannot be true", remain: true},
		"an end before the start": {change: func(o *job.Outcome) { o.Start, o.End = now, now.Add(-time.Hour) }, says: "times cannot be true", remain: true},
		"a clock an hour ahead":   {change: func(o *job.Outcome) { o.Start, o.End = now.Add(time.Hour), now.Add(2*time.Hour) }, remain: true},
		"no end":                  {change: func(o *job.Outcome) { o.Start, o.End, o.FilesRemain = 7, 0, false }, says: "times cannot be true"},
		"it never ran":            {change: func(o *job.Outcome) { o.Kind, o.Start = job.Failure, 0 }},
		"a long reason":           {change: func(o *job.Outcome) { o.Reason = strings.Repeat("€", 1000) }, says: "€…", files: []transfer.File{file("stdout", 100)}, kept: "stdout", remain: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			if c.files != nil {
				if o.Files, err = (transfer.Set{Files: c.files}).Encode(); err != nil {
					t.Fatal(err)
				}
			}
			if c.change != nil {
				c.change(&o)
			}
			m, err := f.CheckResult("beta", meta.Result{Attempt: own(1), Outcome: o})
			if err != nil {
				t.Fatal(err)
			}
			got := m.Outcome
			set, err := transfer.Decode(got.Files)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range set.Files {
				names = append(names, f.Path)
			}
			if text := strings.Join(names, " "); text != c.kept || got.FilesLost != c.lost || c.files != nil && got.FilesRemain != c.remain {
				t.Errorf("kept %q, remain %v, lost %v", text, got.FilesRemain, got.FilesLost)
			}
			if !strings.Contains(got.Reason, c.says) || len(got.Reason) > job.MaxReasonLength || c.says == "" && got.Reason != job.ClipReason(o.Reason) {
				t.Errorf("it says %q", got.Reason)
			}
			if got.ExitCode < 0 || got.ExitCode > 255 || got.Signal > 127 || got.CPUTime < 0 {
				t.Errorf("figures %+v", got)
			}
			replaced := strings.Contains(got.Reason, "times cannot be true")
			if !replaced && (got.Start != o.Start || got.End != o.End) || got.End != 0 && got.Start > got.End ||
				replaced && (got.Start < now.Add(-2*time.Hour) || max(got.Start, got.End) > now.Add(time.Hour)) {
				t.Errorf("figures %+v", got)
			}
		})
	}
	backend.err = syscall.EIO
	o := good
	if o.Files, err = (transfer.Set{Files: []transfer.File{file("a", 1)}}).Encode(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.CheckResult("beta", meta.Result{Attempt: own(1), Outcome: o}); err == nil {
		t.Error("a result is taken although its job cannot be read")
	}
}
