package runner

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store/blobstore"
)

// gated is an origin that answers when the test lets it.
type gated struct {
	*staging
	asks chan []byte   // the chunk that was asked for
	pass chan struct{} // one for each answer
	data map[blobstore.Sum][]byte
}

// ReadFile implements Peers.
func (g *gated) ReadFile(ctx context.Context, _ job.SiteID, r *kithv1.FileRequest) (*kithv1.FileReply, error) {
	sum := blobstore.Sum(r.GetChunk())
	select {
	case g.asks <- sum[:]:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-g.pass:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &kithv1.FileReply{Data: g.data[sum][r.GetOffset():]}, nil
}

// nothing is a list of live chunks: no record names any.
func nothing(func(blobstore.Sum, error) bool) {}

func (s *staging) launch() meta.Launch {
	a := job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 7}, Number: 1}
	return meta.Launch{Attempt: a, Request: job.Request{Processors: 1, Walltime: time.Minute}, Payload: s.payload}
}

// slowOrigin is a staging whose origin has two files and is in no hurry.
func slowOrigin(t *testing.T) *gated {
	t.Helper()
	g := &gated{
		staging: newStaging(t), asks: make(chan []byte), pass: make(chan struct{}), data: make(map[blobstore.Sum][]byte),
	}
	g.cfg.Peers = g
	var set transfer.Set
	for _, name := range []string{"in", "other"} {
		data := append([]byte(name), make([]byte, 5000-len(name))...)
		sum := blobstore.SumOf(data)
		g.data[sum] = data
		set.Files = append(set.Files, transfer.File{Path: name, Size: 5000, Chunks: []blobstore.Sum{sum}})
	}
	g.payload = payloadOf(t, set, `test $(cat in other | wc -c) = 10000`)
	return g
}

// An origin that is slow does not hold processors for longer than the bound: the
// attempt gives them back, its inputs go on coming, and its next turn starts it with
// what came meanwhile.
func TestSlowOriginGivesProcessorsBack(t *testing.T) {
	t.Parallel()
	s := slowOrigin(t)
	s.fetcher = transfer.NewFetcher(s.files.blobs, transfer.FetchConfig{Requests: 1})
	s.cfg.Staging = 50 * time.Millisecond
	launch := s.launch()
	s.Launch(launch)
	<-s.asks
	if ev := <-s.events; ev != (meta.AttemptMissing{Attempt: launch.Attempt, Bringing: true}) {
		t.Fatalf("%+v while its inputs are on their way", ev)
	}
	s.pass <- struct{}{}
	<-s.asks // the second file, without processors
	s.Launch(launch)
	if ev := <-s.events; ev != (meta.AttemptMissing{Attempt: launch.Attempt, Bringing: true}) {
		t.Fatalf("%+v in its second turn", ev)
	}
	s.pass <- struct{}{}
	if ev := <-s.events; ev != (meta.FilesHere{Attempt: launch.Attempt}) {
		t.Fatalf("%+v when its inputs are here", ev)
	}
	s.Launch(launch)
	if got := s.outcome(); got.Kind != job.Success {
		t.Errorf("%+v", got)
	}
	s.Clear(launch.Attempt)
	if len(s.brings) > 0 {
		t.Error("something of it is still being brought")
	}
}

// No sweep takes a file of an attempt that is being staged, however long that takes.
func TestSweepSparesWhatIsStaged(t *testing.T) {
	t.Parallel()
	s := slowOrigin(t)
	s.fetcher = transfer.NewFetcher(s.files.blobs, transfer.FetchConfig{Requests: 1})
	s.Launch(s.launch())
	for range s.data {
		<-s.asks
		if _, err := s.files.blobs.Sweep(t.Context(), nothing, 0); err != nil {
			t.Fatal(err)
		}
		s.pass <- struct{}{}
	}
	if got := s.outcome(); got.Kind != job.Success {
		t.Errorf("%+v", got)
	}
	s.Clear(s.launch().Attempt)
	time.Sleep(time.Millisecond) // the store's clock goes on
	if report, err := s.files.blobs.Sweep(t.Context(), nothing, 0); err != nil || report.Kept > 0 {
		t.Errorf("%+v is left and not needed, %v", report, err)
	}
}

// A drain takes back what has not been started, and the log says that it was the drain.
func TestUnstage(t *testing.T) {
	t.Parallel()
	s := slowOrigin(t)
	var lines bytes.Buffer
	s.log = slog.New(slog.NewTextHandler(&lines, nil))
	launch := s.launch()
	s.Launch(launch)
	<-s.asks
	s.Unstage(launch.Attempt)
	if ev := <-s.events; ev != (meta.AttemptMissing{Attempt: launch.Attempt}) {
		t.Errorf("%+v after it was taken back", ev)
	}
	if text := lines.String(); !strings.Contains(text, "as the site drains") || strings.Contains(text, "level=WARN") {
		t.Errorf("the log says %s", text)
	}
	s.Clear(launch.Attempt)
	s.Unstage(launch.Attempt) // it is known no more
}

// One chunk named many times writes as many times its size: that is checked before the
// first byte is, and what fits for now is taken out of the quota.
func TestChunkBomb(t *testing.T) {
	t.Parallel()
	s := newStaging(t)
	s.files.cfg.QuotaBytes = 1 << 20
	var set transfer.Set
	sum := blobstore.SumOf(s.chunk)
	for i := range 300 {
		set.Files = append(set.Files, transfer.File{Path: "in" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Size: 5000, Chunks: []blobstore.Sum{sum}})
	}
	s.payload = payloadOf(t, set, "true")
	launch := s.launch()
	s.Launch(launch)
	got := s.outcome()
	if got.Kind != job.Failure {
		t.Errorf("%+v: 1.5 MB were written under a quota of 1 MiB", got)
	}
	if entries, _ := s.system.Folders(); len(entries) > 0 {
		t.Errorf("something was written for %v", entries)
	}
}
