package runner

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	"kith/internal/params"
	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/batch"
	"kith/store"
	"kith/store/memstore"
)

// The table of a bag stays until the bag is purged, also after the bag has ended and the
// upload is long forgotten. One that nobody submits goes.
func TestTableOfABagIsNotSwept(t *testing.T) {
	backend, err := memstore.Open(&memstore.Disk{}, "alpha", 1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := backend.Load()
	if err != nil {
		t.Fatal(err)
	}
	cfg := meta.Default()
	cfg.Self = meta.Self{Processors: 4, Speed: 1}
	e, err := meta.New(cfg, s, batch.New(4))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var passed atomic.Int64 // what was held is let go on another goroutine, which looks at the clock
	f, err := OpenFiles(FilesConfig{
		Site: "alpha", Dir: t.TempDir(), MaxFileBytes: 64 << 20, Backend: backend, Log: slog.New(slog.DiscardHandler), now: func() time.Time { return began.Add(time.Duration(passed.Load())) },
		Look: func(_ context.Context, see func(job.Time, meta.Views)) error {
			see(1, e.Views())
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	table := strings.Repeat("a row of the table\n", 1000)
	upload := func(text string) string {
		t.Helper()
		id, err := f.Upload(t.Context(), strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return id.String()
	}
	there := func(text string) bool { return f.blobs.Has(sha256.Sum256([]byte(text))) } // a look by its id would hold it
	later := func(d time.Duration) {
		t.Helper()
		passed.Add(int64(d))
		f.sweep(t.Context())
	}
	nobodys := table + "another\n"
	mine := upload(table)
	upload(nobodys)
	if !there(nobodys) {
		t.Fatal("an upload is no chunk of its own")
	}
	index, err := params.Scan(strings.NewReader(table), params.Lines)
	if err != nil {
		t.Fatal(err)
	}
	set, answered, err := f.pack(t.Context(), []transfer.Input{{Path: ".kith/table", UploadID: mine}})
	if err != nil {
		t.Fatal(err)
	}
	file := set.Proto().GetFiles()[0]
	raw, err := proto.Marshal(&kithv1.BagPayload{
		Template: &kithv1.Job{Command: []string{"echo", "{{line}}"}}, Indices: "0-999",
		Parameters: &kithv1.BagPayload_Table{Table: &kithv1.ParameterTable{
			File: file, Format: uint32(params.Lines), Names: index.Names, Count: index.Count, Widths: []uint32{uint32(index.Widths[0])}, Offsets: index.Offsets,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	fact := func(c store.Command) {
		t.Helper()
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
		if err := backend.Seal(s).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	bag := s.NextID()
	fact(store.SubmitBag{ID: bag, Indices: job.FirstIndices(1000), Request: job.Request{Processors: 1, Walltime: time.Hour}, Payload: raw})
	answered()
	later(30 * time.Minute)
	if !there(nobodys) {
		t.Error("an upload is gone after half an hour")
	}
	later(3 * time.Hour)
	later(3 * time.Hour)
	if there(nobodys) {
		t.Error("an upload that nobody submits stays")
	}
	some := job.TaskRange(700, 702)
	held, err := f.BundlePayload(job.AttemptID{Job: bag, Number: 1}, &some)
	if err != nil || strings.Count(string(held), "a row of the table") != 2 {
		t.Errorf("a bundle of two tasks has %d rows, %v", strings.Count(string(held), "a row of the table"), err)
	}
	fact(store.CancelBag{Bag: bag, Time: 1})
	fact(store.CloseBag{Bag: bag, Time: 2})
	later(3 * time.Hour)
	if !f.blobs.Has(set.Files[0].Chunks[0]) {
		t.Fatal("the table of a bag that may run again is gone")
	}
	fact(store.PurgeBag{Bag: bag})
	later(3 * time.Hour)
	if f.blobs.Has(set.Files[0].Chunks[0]) {
		t.Error("the table of a purged bag stays")
	}
}
