package api

import (
	"testing"

	"google.golang.org/protobuf/proto"

	kithv1 "kith/proto/gen/kith/v1"
)

// A submission that is repeated as no answer came finds its job or bag, though what it took
// along is gone: an upload goes some time after the job that named it.
func TestSubmittedAgainWithoutItsInputs(t *testing.T) {
	s, _ := serveBags(t)
	files := newKeptFiles(t)
	s.Files = files
	id := files.upload(t, "text")
	inputs := []*kithv1.InputFile{{Path: "in", Content: &kithv1.InputFile_UploadId{UploadId: id}}}
	alone := func(word string) *kithv1.SubmitJobRequest {
		j := withUpload(id).GetJob()
		j.Command, j.Inputs, j.Processors = []string{word}, inputs, 1
		j.Tasks = 1
		return &kithv1.SubmitJobRequest{RequestId: "job", Job: j}
	}
	bag := func(word string) *kithv1.SubmitBagRequest {
		return &kithv1.SubmitBagRequest{RequestId: "bag", Bag: &kithv1.Bag{Indices: "0-9", Job: alone(word).GetJob()}}
	}
	plain, _ := serve(t)
	plain.Files = files
	job, err := plain.SubmitJob(t.Context(), alone("a"))
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := s.SubmitBag(t.Context(), bag("a"))
	if err != nil {
		t.Fatal(err)
	}
	files.lose(t)
	if again, err := plain.SubmitJob(t.Context(), alone("a")); err != nil || !proto.Equal(job, again) {
		t.Errorf("job %v, then %v, %v", job, again, err)
	}
	if again, err := s.SubmitBag(t.Context(), bag("a")); err != nil || !proto.Equal(tasks, again) {
		t.Errorf("bag %v, then %v, %v", tasks, again, err)
	}
	if _, err := plain.SubmitJob(t.Context(), alone("b")); onWire(t, err).reason != "REQUEST_ID_REUSED" {
		t.Errorf("another job under its request id: %v", err)
	}
	if _, err := s.SubmitBag(t.Context(), bag("b")); onWire(t, err).reason != "REQUEST_ID_REUSED" {
		t.Errorf("another bag under its request id: %v", err)
	}
}
