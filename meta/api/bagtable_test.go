package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store/blobstore"
)

// keptFiles keeps files as a site does, but for sweeps.
type keptFiles struct {
	Files
	dir    string
	store  *blobstore.Store
	packer *transfer.Packer
	server *transfer.Server
	opened int
}

func newKeptFiles(t testing.TB) *keptFiles {
	t.Helper()
	f := &keptFiles{dir: t.TempDir()}
	var err error
	if f.store, err = blobstore.Open(blobstore.Config{Dir: f.dir}); err != nil {
		t.Fatal(err)
	}
	f.packer, f.server = &transfer.Packer{Store: f.store}, transfer.NewServer(f.store, transfer.ServeConfig{})
	t.Cleanup(func() {
		if err := errors.Join(f.server.Close(), f.store.Close()); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *keptFiles) Pack(ctx context.Context, inputs []transfer.Input) (transfer.Set, error) {
	set, _, err := f.packer.Pack(ctx, inputs)
	return set, err
}

func (f *keptFiles) Uploaded(_ context.Context, id string, most int64) (transfer.File, io.ReaderAt, error) {
	f.opened++
	file, _, err := f.packer.Uploaded(id, most)
	return file, f.server.FileAt(file), err
}

func (f *keptFiles) upload(t testing.TB, text string) string {
	t.Helper()
	id, _, err := transfer.Upload(t.Context(), f.store, strings.NewReader(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

// lose removes all chunks from the disk.
func (f *keptFiles) lose(t *testing.T) {
	t.Helper()
	chunks, err := filepath.Glob(filepath.Join(f.dir, "chunks", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chunks {
		if err := os.Remove(c); err != nil {
			t.Fatal(err)
		}
	}
}

func withUpload(id string, words ...string) *kithv1.Bag {
	b := withTable(kithv1.TaskTable_FORMAT_CSV, "")
	b.GetTable().Content = &kithv1.TaskTable_UploadId{UploadId: id}
	if len(words) > 0 {
		b.Job.Command = words
	}
	return b
}

func longTable(rows int) string {
	var text strings.Builder
	text.WriteString("case,note\n")
	for n := range rows {
		fmt.Fprintf(&text, "%d,%s\n", n, strings.Repeat("n", 90))
	}
	return text.String()
}

// A table that was uploaded is kept as a file beside the bag, of which no task gets all; what
// the tasks of a bundle get are their rows.
func TestUploadedTable(t *testing.T) {
	s, site := serveBags(t)
	files := newKeptFiles(t)
	s.Files = files
	id := files.upload(t, longTable(60_000)) // two chunks
	b := withUpload(id, "run", "{{case}}")
	b.Job.Inputs = []*kithv1.InputFile{{Path: "data", Content: &kithv1.InputFile_Data{Data: []byte("x")}}}
	r, err := s.SubmitBag(t.Context(), &kithv1.SubmitBagRequest{Bag: b})
	if err != nil || r.GetTaskCount() != 60_000 {
		t.Fatal(r, err)
	}
	bag, err := job.ParseID(r.GetBagId())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := site.Payload(bag)
	if err != nil {
		t.Fatal(err)
	}
	var p kithv1.BagPayload
	if err := proto.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	if n := len(p.GetTable().GetFile().GetChunks()); n != 2 || len(p.GetInputs().GetFiles()) != 1 || p.GetInputs().GetFiles()[0].GetPath() != "data" {
		t.Errorf("%d chunks of the table, and inputs %v", n, p.GetInputs())
	}
	if len(raw) > 4096 {
		t.Errorf("a record of %d bytes", len(raw))
	}
	got, err := s.GetBag(t.Context(), &kithv1.GetBagRequest{BagId: r.GetBagId()})
	if err != nil || fmt.Sprint(got.GetBag().GetStatus().GetParameterNames()) != "[case note]" {
		t.Errorf("%v, %v", got, err)
	}
}

// The same request again gets the same bag, also when the upload is gone: nothing is read.
// Another request under its id is refused.
func TestUploadedTableAgain(t *testing.T) {
	s, _ := serveBags(t)
	files := newKeptFiles(t)
	s.Files = files
	id := files.upload(t, longTable(300))
	request := func(words ...string) *kithv1.SubmitBagRequest {
		return &kithv1.SubmitBagRequest{RequestId: "r1", Bag: withUpload(id, words...)}
	}
	first, err := s.SubmitBag(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	files.lose(t)
	opened := files.opened
	again, err := s.SubmitBag(t.Context(), request())
	if err != nil || !proto.Equal(first, again) || files.opened != opened {
		t.Errorf("%v, then %v, %v, the upload opened %d times", first, again, err, files.opened-opened)
	}
	if _, err := s.SubmitBag(t.Context(), request("other")); onWire(t, err).reason != "REQUEST_ID_REUSED" {
		t.Errorf("another bag under its request id: %v", err)
	}
}

// An upload that is not there, not whole or too large, or a text that names none, is an
// error of its field; one that another bag has named is as good as new, and so is anybody's:
// it names a content.
func TestUploadsThatAreNone(t *testing.T) {
	s, _ := serveBags(t)
	files := newKeptFiles(t)
	s.Files = files
	good := files.upload(t, longTable(300))
	sum := good[strings.IndexByte(good, '-'):]
	elsewhere := newKeptFiles(t).upload(t, longTable(301))
	for name, c := range map[string]struct{ id, reason, want string }{
		"a text":                {"u", "INVALID_ARGUMENT", `upload id "u": an upload id reads SIZE-SHA256`},
		"a size that is wrong":  {"17" + sum, "INVALID_ARGUMENT", "an upload id reads SIZE-SHA256, as UploadFile returned it"},
		"larger than allowed":   {"536870913" + sum, "INVALID_ARGUMENT", "536870913 bytes, at most 536870912 are allowed here"},
		"an upload elsewhere":   {elsewhere, "INPUT_NOT_FOUND", "it has expired or was not made at this site; upload it again"},
		"no row":                {files.upload(t, "a,b\n"), "INVALID_ARGUMENT", "no row"},
		"an empty upload":       {files.upload(t, ""), "INVALID_ARGUMENT", "no row"},
		"cut off within quotes": {files.upload(t, "a\n1\n\"2"), "INVALID_ARGUMENT", "line 3: the quotes of value 1 (a) never close"},
	} {
		for _, only := range []bool{true, false} {
			_, err := s.SubmitBag(t.Context(), &kithv1.SubmitBagRequest{Bag: withUpload(c.id), ValidateOnly: only})
			w := onWire(t, err)
			if w.code != codes.InvalidArgument || w.reason != c.reason || len(w.fields) != 1 || !strings.HasPrefix(w.fields[0], "bag.table.upload_id: ") || !strings.Contains(w.fields[0], c.want) {
				t.Errorf("%s: %+v, want %q", name, w, c.want)
			}
		}
	}
	for range 2 {
		if _, err := s.SubmitBag(t.Context(), &kithv1.SubmitBagRequest{Bag: withUpload(good)}); err != nil {
			t.Error(err)
		}
	}
	files.lose(t)
	if _, err := s.SubmitBag(t.Context(), &kithv1.SubmitBagRequest{Bag: withUpload(good)}); onWire(t, err).reason != "INPUT_NOT_FOUND" {
		t.Errorf("rows that vanished: %v", err)
	}
}

// brokenFiles has an upload of which a part cannot be read.
type brokenFiles struct {
	Files
	err error
}

func (f brokenFiles) Uploaded(context.Context, string, int64) (transfer.File, io.ReaderAt, error) {
	return transfer.File{Size: 1 << 20}, f, nil
}

func (f brokenFiles) ReadAt(p []byte, offset int64) (int, error) {
	if offset > 0 {
		return 0, f.err
	}
	return copy(p, strings.Repeat("a\n", len(p)/2)), nil
}

// What the site cannot read is not the table's fault.
func TestTableThatCannotBeRead(t *testing.T) {
	s, _ := serveBags(t)
	for err, want := range map[error]string{
		os.ErrPermission:      "INTERNAL",
		blobstore.ErrNotFound: "INTERNAL",
		transfer.ErrNotFound:  "INPUT_NOT_FOUND",
	} {
		s.Files = brokenFiles{err: err}
		_, err := s.SubmitBag(t.Context(), &kithv1.SubmitBagRequest{Bag: withUpload("1-x")})
		if w := onWire(t, err); w.reason != want || len(w.fields) != 0 {
			t.Errorf("%v is %+v, want %s", err, w, want)
		}
	}
	s.Files = newKeptFiles(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	id := s.Files.(*keptFiles).upload(t, longTable(300))
	if _, err := s.SubmitBag(ctx, &kithv1.SubmitBagRequest{Bag: withUpload(id)}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was given up reads on: %v", err)
	}
}

// Few tables are looked at at a time.
func TestTablesAtATime(t *testing.T) {
	s, _ := serveBags(t)
	s.Files = newKeptFiles(t)
	for n := range mostTablesOne {
		if err := enter(&s.tables, "tables", callerHost(t.Context())); err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := s.SubmitBag(t.Context(), &kithv1.SubmitBagRequest{Bag: withUpload("1-x")}); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
}
