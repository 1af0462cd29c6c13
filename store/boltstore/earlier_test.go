package boltstore_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"kith/internal/job"
	"kith/store"
	"kith/store/boltstore"
	"kith/store/codec"
)

// earlier unpacks a file that an earlier version of Kith wrote.
func earlier(t *testing.T, name string) string {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("testdata", name+".db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), boltstore.FileName)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// bagTables returns how many tables of bags a file has.
func bagTables(t *testing.T, path string) (n int) {
	t.Helper()
	format(t, path, func(tx *bolt.Tx) error {
		for _, name := range codec.BagTables() {
			if tx.Bucket([]byte(name)) != nil {
				n++
			}
		}
		return nil
	})
	return n
}

// Files of earlier formats open with all that they have, stay what they are while there is
// nothing new in them, and become ones of this format with the first bag or bundle.
func TestFilesOfEarlierFormats(t *testing.T) {
	for name, was := range map[string]byte{"format1": codec.PlainFormat, "format2": codec.TrustFormat} {
		t.Run(name, func(t *testing.T) {
			path := earlier(t, name)
			with := func(change func(*boltstore.Store, *store.State)) {
				t.Helper()
				b, err := boltstore.Open(path, "alpha")
				if err != nil {
					t.Fatal(err)
				}
				s, err := b.Load()
				if err != nil {
					t.Fatal(err)
				}
				change(b, s)
				if err := errors.Join(b.Seal(s).Commit(), b.Close()); err != nil {
					t.Fatal(err)
				}
			}
			with(func(b *boltstore.Store, s *store.State) {
				first := job.ID{Origin: "alpha", Generation: s.Site().Generation, Seq: 1}
				j := s.Job(first)
				if j == nil || j.State != job.Completed || j.Request.Name != "first" || s.JobCount() != 2 || s.CopyCount() != 1 || s.BagCount() != 0 || s.Site().Runs != 0 {
					t.Fatalf("job %+v of %d, %d copies, %d bags", j, s.JobCount(), s.CopyCount(), s.BagCount())
				}
				payload, err1 := b.Payload(first)
				outputs, err2 := b.Outputs(first)
				if string(payload) != "run me" || string(outputs) != "files" {
					t.Errorf("payload %q, %v, outputs %q, %v", payload, err1, outputs, err2)
				}
				if trusts := s.TrustedSite("beta") != nil; trusts != (was == codec.TrustFormat) {
					t.Errorf("it trusts beta: %v", trusts)
				}
				// Bags that are not there are none, not an error.
				if r, err := b.TaskResults(first, 0); r != nil || err != nil {
					t.Errorf("results %v, %v", r, err)
				}
				if _, err := b.HeldPayload(job.AttemptID{}); !errors.Is(err, store.ErrUnknown) {
					t.Errorf("payload of a bundle: %v", err)
				}
				if err := s.Apply(store.SubmitJob{ID: s.NextID(), Request: job.Request{Processors: 1, Walltime: time.Hour}}); err != nil {
					t.Fatal(err)
				}
			})
			if n, _ := format(t, path, nil); n != was || bagTables(t, path) != 0 {
				t.Fatalf("without a bag it has format %d and %d tables of bags: the earlier version cannot read it", n, bagTables(t, path))
			}
			with(func(_ *boltstore.Store, s *store.State) {
				if err := endGuest(s); err != nil {
					t.Fatal(err)
				}
			})
			with(func(b *boltstore.Store, s *store.State) {
				if p, err := b.Past(0); len(p) != 1 || err != nil {
					t.Errorf("what is past: %+v, %v", p, err)
				}
				if _, next := s.PastNumbers(); next != 2 {
					t.Errorf("the next number is %d", next)
				}
			})
			if n, _ := format(t, path, nil); n != was {
				t.Fatalf("with an attempt that has ended it has format %d: the earlier version cannot read it", n)
			}
			var id job.ID
			with(func(_ *boltstore.Store, s *store.State) {
				id = s.NextID()
				if err := s.Apply(store.SubmitBag{ID: id, Indices: job.FirstIndices(5), Request: job.Request{Processors: 1, Walltime: time.Hour}, Payload: []byte("tasks")}); err != nil {
					t.Fatal(err)
				}
			})
			if n, trust := format(t, path, nil); n != codec.BagFormat || trust != len(codec.TrustTables()) || bagTables(t, path) != len(codec.BagTables()) {
				t.Fatalf("with a bag it has format %d, %d tables of trust, %d of bags", n, trust, bagTables(t, path))
			}
			with(func(b *boltstore.Store, s *store.State) {
				if s.Bag(id) == nil || s.JobCount() != 3 {
					t.Errorf("bag %+v, %d jobs", s.Bag(id), s.JobCount())
				}
				if p, err := b.Payload(id); string(p) != "tasks" || err != nil {
					t.Errorf("payload %q, %v", p, err)
				}
			})
			with(func(_ *boltstore.Store, s *store.State) {
				after := []job.Dependency{{On: id, Condition: job.AfterOK}}
				if err := s.Apply(store.SubmitJob{ID: s.NextID(), Request: job.Request{Processors: 1, Walltime: time.Hour}, After: after}); err != nil {
					t.Fatal(err)
				}
			})
			if n, _ := format(t, path, nil); n != codec.AfterFormat {
				t.Fatalf("with a job that waits it has format %d", n)
			}
			with(func(_ *boltstore.Store, s *store.State) {
				last := s.NextID()
				last.Seq--
				if j := s.Job(last); j == nil || j.State != job.Blocked || job.Waiting(s.After(last)) != 1 || s.After(last)[0].On != id {
					t.Errorf("job %+v, after %v", j, s.After(last))
				}
			})
			var left job.AttemptID
			with(func(_ *boltstore.Store, s *store.State) {
				var err error
				if left, err = demote(s); err != nil {
					t.Fatal(err)
				}
			})
			if n, _ := format(t, path, nil); n != codec.Format {
				t.Fatalf("with a job that goes on from a checkpoint it has format %d", n)
			}
			with(func(b *boltstore.Store, s *store.State) {
				if f, err := b.AttemptFiles(left); string(f) != "state" || err != nil {
					t.Errorf("it left %q, %v", f, err)
				}
				if r := s.Job(left.Job).Resume(); r.Attempt != 1 || r.Sequence != 4 {
					t.Errorf("it goes on from %+v", r)
				}
			})
			format(t, path, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(codec.Results)) })
			if _, err := boltstore.Open(path, "alpha"); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("without its results: %v, want ErrCorrupt", err)
			}
		})
	}
}

// demote takes a new job to the end of an attempt that it goes on from.
func demote(s *store.State) (job.AttemptID, error) {
	a := job.AttemptID{Job: s.NextID(), Number: 1}
	for _, c := range []store.Command{
		store.SubmitJob{ID: a.Job, Request: job.Request{Processors: 1, Walltime: time.Hour, Checkpoint: true}},
		store.OpenAttempt{Attempt: a, Sites: []job.SiteID{"alpha"}}, store.GrantClaim{Attempt: a, Site: "alpha"},
		store.RecordOutcome{Attempt: a, Site: "alpha", Outcome: job.Outcome{Kind: job.Demoted, Start: 1, End: 2, Files: []byte("state"), Checkpoint: 4}},
		store.RequeueJob{Attempt: a, Site: "alpha"},
	} {
		if err := s.Apply(c); err != nil {
			return a, err
		}
	}
	return a, nil
}

// endGuest takes an attempt of another site's job through its life.
func endGuest(s *store.State) error {
	guest := job.AttemptID{Job: job.ID{Origin: "gamma", Generation: 1, Seq: 1}, Number: 1}
	for _, c := range []store.Command{
		store.AcceptCopy{Attempt: guest, Request: job.Request{Processors: 1, Walltime: time.Hour}}, store.BeginAttempt{Attempt: guest},
		store.EndAttempt{Attempt: guest, Outcome: job.Outcome{Kind: job.Success, Start: 1, End: 2}}, store.ForgetAttempt{Attempt: guest},
	} {
		if err := s.Apply(c); err != nil {
			return err
		}
	}
	return nil
}
