package codec

import (
	"bytes"
	"testing"

	"kith/internal/job"
	statev1 "kith/proto/gen/kith/state/v1"
	"kith/store"
)

// A record that was written before actors were recorded is read, and says that
// they are unknown.
func TestRecordsWithoutActors(t *testing.T) {
	id := job.ID{Origin: "alpha", Generation: 3, Seq: 1}
	old := &statev1.JobRecord{
		Id: jobName(id), Request: requestMessage(&job.Request{Processors: 1, Walltime: 1}), State: uint32(job.Cancelled), CancelRequested: true,
	}
	var r Reader
	if err := r.Site(seal(&statev1.SiteRecord{SiteId: "alpha", Generation: 3, NextSeq: 2, Draining: true, DrainReason: "disk"}), "alpha"); err != nil {
		t.Fatal(err)
	}
	if err := r.Job(seal(old)); err != nil {
		t.Fatal(err)
	}
	s, err := r.State()
	if err != nil {
		t.Fatal(err)
	}
	j, site := s.Job(id), s.Site()
	if j.Submitter.String() != "unknown" || len(j.Acts) != 0 || j.Version != 0 {
		t.Errorf("the job says %q, acts %v, version %d", j.Submitter, j.Acts, j.Version)
	}
	if site.DrainActor.String() != "unknown" || site.DrainChanged != 0 || site.DrainReason != "disk" {
		t.Errorf("the site says %+v", site)
	}
}

func TestKeysOrderAsIDsDo(t *testing.T) {
	ids := []job.AttemptID{
		{Job: job.ID{Origin: "a", Generation: 1, Seq: 1}, Number: 1}, {Job: job.ID{Origin: "a", Generation: 1, Seq: 1}, Number: 2},
		{Job: job.ID{Origin: "a", Generation: 1, Seq: 256}, Number: 1}, {Job: job.ID{Origin: "a", Generation: 2, Seq: 1}, Number: 1},
		{Job: job.ID{Origin: "a-b", Generation: 1, Seq: 1}, Number: 1}, {Job: job.ID{Origin: "ab", Generation: 0, Seq: 0}, Number: 1},
	}
	for i := 1; i < len(ids); i++ {
		if ids[i-1].Compare(ids[i]) >= 0 || bytes.Compare(copyKey(ids[i-1]), copyKey(ids[i])) >= 0 {
			t.Errorf("%v and %v: order of keys differs from order of ids", ids[i-1], ids[i])
		}
	}
}

// Whatever is on a disk, reading it is an error or a state, never a panic.
func FuzzRead(f *testing.F) {
	s := store.NewState("alpha", 3)
	id := s.NextID()
	for _, c := range []store.Command{
		store.SubmitJob{ID: id, RequestID: "r"}, store.OpenAttempt{Attempt: job.AttemptID{Job: id, Number: 1}, Sites: []job.SiteID{"alpha"}},
		store.AcceptCopy{Attempt: job.AttemptID{Job: id, Number: 1}},
		store.AdmitSite{Site: "beta", Bundle: store.Bundle{Data: []byte("b"), Keys: []store.KeyID{{1}}, Sequence: 1}},
		store.OpenInvitation{ID: "i", Name: "gamma", Verifier: []byte("v"), Expires: 9}, store.RevokeToken{ID: "t", Unlisted: true, Expires: 9},
		store.SubmitBag{ID: job.ID{Origin: "alpha", Generation: 3, Seq: 2}, Indices: job.FirstIndices(9), Retries: 1},
		store.GrantBundle{Bundle: job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 3, Seq: 2}, Number: 1}, Site: "beta", Tasks: job.TaskRange(0, 5)},
		store.RecordResults{
			Bundle: job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 3, Seq: 2}, Number: 1}, Site: "beta", Batch: 1,
			Results: []job.TaskResult{{Kind: job.Success}, {Ordinal: 1, Kind: job.Failure, ExitCode: 1}},
		},
		store.AcceptBundle{Bundle: job.AttemptID{Job: id, Number: 1}, Tasks: job.TaskRange(0, 5)},
		store.EndTasks{Bundle: job.AttemptID{Job: id, Number: 1}, Results: []job.TaskResult{{Ordinal: 1, Kind: job.Success}}},
	} {
		if err := s.Apply(c); err != nil {
			f.Fatal(err)
		}
	}
	for _, w := range Writes(s) {
		f.Add(w.Value[4:], w.Value[4:])
	}
	f.Fuzz(func(t *testing.T, jobData, copyData []byte) {
		var r Reader
		if err := r.Site(seal(siteMessage(store.Site{ID: "alpha", Generation: 3, NextSeq: 9})), ""); err != nil {
			t.Fatal(err)
		}
		r.Job(sealBytes(jobData))   //nolint:errcheck // an error is fine
		r.Copy(sealBytes(copyData)) //nolint:errcheck // an error is fine
		for _, read := range r.TrustReaders() {
			read(sealBytes(jobData))  //nolint:errcheck // an error is fine
			read(sealBytes(copyData)) //nolint:errcheck // an error is fine
		}
		for _, t := range r.BagReaders() {
			t.Read(sealBytes(jobData))  //nolint:errcheck // an error is fine
			t.Read(sealBytes(copyData)) //nolint:errcheck // an error is fine
		}
		if s, err := r.State(); err == nil {
			Dump(s)
		}
		r.Job(jobData)     //nolint:errcheck // no checksum
		Decision(copyData) //nolint:errcheck // no checksum
	})
}
