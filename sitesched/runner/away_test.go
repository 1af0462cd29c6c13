package runner

import (
	"context"
	"errors"
	"testing"

	"kith/internal/job"
	"kith/meta/api"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
	"kith/store/blobstore"
)

// holder is a site that has output of this one's job, and is busy at first.
type holder struct {
	*staging
	busy int // answers until it is not
	gone bool
}

// ReadFile implements Peers.
func (h *holder) ReadFile(_ context.Context, site job.SiteID, r *kithv1.FileRequest) (*kithv1.FileReply, error) {
	switch h.busy--; {
	case site != "delta":
		h.t.Errorf("%s is asked", site)
	case h.gone:
		return &kithv1.FileReply{Error: kithv1.FileReply_ERROR_DENIED}, nil
	case h.busy >= 0:
		return &kithv1.FileReply{Error: kithv1.FileReply_ERROR_BUSY}, nil
	}
	return &kithv1.FileReply{Data: make([]byte, r.GetLimit())}, nil
}

// Output that is read at its host, as there is no room for it at home: a host that is busy is
// asked again, and is not taken for one without the file. Who has read the begin there reads
// on when the rest is on its way home, and is not told that it ends.
func TestOutputAtABusyHost(t *testing.T) {
	h := &holder{staging: newStaging(t), busy: 3}
	h.cfg.Peers = h
	file := transfer.File{Path: transfer.Stdout, Size: 5000, Chunks: []blobstore.Sum{blobstore.SumOf(h.chunk)}}
	encoded, err := transfer.Set{Files: []transfer.File{file}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	rec := &store.Job{ID: job.ID{Origin: "beta", Generation: 1, Seq: 7}, State: job.Returning, Holder: "delta", Attempt: 1}
	read := func(offset int64) ([]byte, bool, error) {
		return h.readHome(t.Context(), rec, encoded, transfer.Stdout, offset, 0)
	}
	if data, end, err := read(0); len(data) != 0 || end || err != nil {
		t.Errorf("on its way home %d bytes are read, %v, %v", len(data), end, err)
	}
	h.setAway(rec.AttemptID(), "delta")
	if data, end, err := read(0); len(data) != 5000 || !end || err != nil {
		t.Errorf("at a host that was busy %d bytes are read, %v, %v", len(data), end, err)
	}
	h.setAway(rec.AttemptID(), "")
	if data, end, err := read(1000); len(data) != 4000 || !end || err != nil {
		t.Errorf("behind the begin %d bytes are read, %v, %v", len(data), end, err)
	}
	h.gone = true
	if _, _, err := read(1000); !errors.Is(err, errMoved) || !errors.Is(err, api.ErrNoOutput) {
		t.Errorf("of a host that has it no more: %v", err)
	}
	h.gone, h.busy = false, mostBusy+1
	if _, _, err := read(1000); !errors.Is(err, api.ErrBusy) {
		t.Errorf("of a host that stays busy: %v", err)
	}
}
