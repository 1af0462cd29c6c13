package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"kith/internal/identity"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
)

// What breaks the bound of its field is refused before a handler sees it, with the
// field, its length and what to do; other services are left alone.
func TestTextsBeyondTheirBoundsAreRefusedAtTheBorder(t *testing.T) {
	s := testServer()
	s.Node = untouched{t: t}
	call := func(server, req any) error {
		_, err := s.Unary(t.Context(), req, &grpc.UnaryServerInfo{Server: server, FullMethod: "/kith.v1.JobService/X"},
			func(context.Context, any) (any, error) { return nil, nil })
		return err
	}
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		req  any
		want string
	}{
		{&kithv1.GetJobRequest{JobId: long}, "job_id: has 1048576 bytes, at most 128; shorten it"},
		{&kithv1.ListJobsRequest{Users: []string{"a", long}}, "users[1]: has 1048576 bytes, at most 256; shorten it"},
		{&kithv1.ListJobsRequest{Labels: map[string]string{"a": long}}, `labels: entry "a": has 1048576 bytes, at most 256; shorten it`},
		{&kithv1.WatchJobsRequest{Cursor: long}, "cursor: has 1048576 bytes, at most 64; shorten it"},
		{&kithv1.CancelJobRequest{Reason: long}, "reason: has 1048576 bytes, at most 256; shorten it"},
		{&kithv1.ForgetSiteRequest{SiteId: long}, "site_id: has 1048576 bytes, at most 32; shorten it"},
	} {
		w := onWire(t, call(s, c.req))
		if w.code != codes.InvalidArgument || len(w.fields) != 1 || w.fields[0] != c.want {
			t.Errorf("%T: %+v, want %s", c.req, w, c.want)
		}
	}
	if err := call(nil, &kithv1.GetJobRequest{JobId: long}); err != nil {
		t.Errorf("a call of another service: %v", err)
	}
	// A submission is told of all that is wrong with it at once.
	j := goodJob()
	j.Processors, j.Tasks = 0, 0
	j.Inputs = []*kithv1.InputFile{{Path: "p", Content: &kithv1.InputFile_Source{Source: long}}}
	_, err := s.SubmitJob(t.Context(), &kithv1.SubmitJobRequest{Job: j})
	if w := onWire(t, err); len(w.fields) != 2 || !strings.Contains(strings.Join(w.fields, "\n"), "job.inputs[0].source: has 1048576 bytes, at most 4096") {
		t.Errorf("a submission: %+v", w)
	}
}

// uploading is a stream of UploadFile on which a test sends.
type uploading struct {
	grpc.ServerStream
	ctx    context.Context
	pieces chan []byte
}

func (u *uploading) Context() context.Context                      { return u.ctx }
func (u *uploading) SendAndClose(*kithv1.UploadFileResponse) error { return nil }

func (u *uploading) Recv() (*kithv1.UploadFileRequest, error) {
	select {
	case p, ok := <-u.pieces:
		if !ok {
			return nil, io.EOF
		}
		return &kithv1.UploadFileRequest{Data: p}, nil
	case <-u.ctx.Done():
		return nil, u.ctx.Err()
	}
}

// slowFiles reads uploads and takes its time for each piece.
type slowFiles struct {
	Files
	pause time.Duration
}

func (f slowFiles) Upload(_ context.Context, r io.Reader) (id transfer.UploadID, err error) {
	b := make([]byte, 64<<10)
	for {
		n, err := r.Read(b)
		id.Size += int64(n)
		if errors.Is(err, io.EOF) {
			return id, nil
		}
		if err != nil {
			return id, err
		}
		time.Sleep(f.pause)
	}
}

// upload begins an upload from an address; its stream ends with the test.
func upload(t *testing.T, s *Server, address string) (*uploading, <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(identity.With(t.Context(), identity.Caller{Address: address}))
	u := &uploading{ctx: ctx, pieces: make(chan []byte)}
	done := make(chan error, 1)
	go func() {
		err := s.UploadFile(u)
		cancel() // as gRPC does
		done <- err
	}()
	return u, done
}

// An upload that does not begin, or stops, or crawls gives its place up; one that is
// slow but goes on keeps it, and so does one that waits for the site's own disk.
func TestStalledUploadsGiveTheirPlaceUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer()
		s.Files = slowFiles{}
		began := time.Now()
		_, silent := upload(t, s, "10.0.0.1:1")
		if err := <-silent; !errors.Is(err, ErrStalled) || time.Since(began) != firstByteWait {
			t.Errorf("no byte: %v after %v", err, time.Since(began))
		}
		one, stopped := upload(t, s, "10.0.0.1:1")
		one.pieces <- []byte("x")
		began = time.Now()
		if err := <-stopped; !errors.Is(err, ErrStalled) || time.Since(began) != uploadPatience {
			t.Errorf("one byte: %v after %v", err, time.Since(began))
		}
		crawl, crawled := upload(t, s, "10.0.0.1:1")
		go func() {
			for crawl.ctx.Err() == nil {
				select {
				case crawl.pieces <- []byte("x"):
				case <-crawl.ctx.Done():
				}
				time.Sleep(time.Second)
			}
		}()
		if err := <-crawled; !errors.Is(err, ErrStalled) {
			t.Errorf("a byte a second: %v", err)
		}
		slow, ended := upload(t, s, "10.0.0.1:1")
		for range 20 {
			slow.pieces <- make([]byte, slowestUpload)
			time.Sleep(uploadPatience - time.Second)
		}
		close(slow.pieces)
		if err := <-ended; err != nil {
			t.Errorf("slow, but it goes on: %v", err)
		}
		s.Files = slowFiles{pause: 10 * uploadPatience}
		waits, stored := upload(t, s, "10.0.0.1:1")
		for range 5 {
			waits.pieces <- []byte("x")
		}
		close(waits.pieces)
		if err := <-stored; err != nil {
			t.Errorf("while the site stores: %v", err)
		}
		if n := s.uploads.Taken(); n != 0 {
			t.Errorf("places that are still taken: %d", n)
		}
	})
}

// One address cannot take all places for uploads, nor a /64 of them.
func TestUploadsOfOneAddressLeavePlacesForOthers(t *testing.T) {
	t.Run("one of IPv4", func(t *testing.T) { testUploadsOfOne(t, "10.0.0.1:%d", "10.0.0.2:1") })
	t.Run("a subnet of IPv6", func(t *testing.T) { testUploadsOfOne(t, "[2001:db8::%d]:1", "[2001:db8:0:1::1]:1") })
}

func testUploadsOfOne(t *testing.T, one, another string) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer()
		s.Files = slowFiles{}
		var refused int
		try := func(address string) {
			_, done := upload(t, s, address)
			synctest.Wait()
			select {
			case err := <-done:
				if !errors.Is(err, ErrBusy) {
					t.Errorf("%s: %v", address, err)
				}
				refused++
			default:
			}
		}
		for n := range mostUploads {
			try(fmt.Sprintf(one, n))
		}
		if refused != mostUploads-mostUploadsOne {
			t.Errorf("%d of %d from one address were refused", refused, mostUploads)
		}
		if try(another); refused != mostUploads-mostUploadsOne {
			t.Error("another address found no place")
		}
		time.Sleep(firstByteWait)
		synctest.Wait()
	})
}
