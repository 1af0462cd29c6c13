package api

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
)

// endless is output that always has another piece.
type endless struct{}

func (endless) Read(context.Context, job.AttemptID, string, int64, time.Duration) ([]byte, bool, error) {
	return make([]byte, transfer.MaxPieceBytes), false, nil
}

// unread is the stream of a caller that does not read: sending waits until it goes.
type unread struct {
	grpc.ServerStreamingServer[kithv1.GetJobOutputResponse]
	ctx  context.Context
	most *int
}

func (u unread) Context() context.Context { return u.ctx }

func (u unread) Send(r *kithv1.GetJobOutputResponse) error {
	*u.most = max(*u.most, len(r.GetData()))
	<-u.ctx.Done()
	return u.ctx.Err()
}

// Callers that ask for output and do not read it cost little each, and those of one
// address leave slots for others.
func TestUnreadOutputIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer()
		s.Output = endless{}
		ctx, cancel := context.WithCancel(t.Context())
		largest := make([]int, mostReadersOne+2)
		refused := 0
		read := func(n int, address string) {
			g := unread{ctx: identity.With(ctx, identity.Caller{Address: address}), most: &largest[n]}
			done := make(chan error, 1)
			go func() { done <- s.GetJobOutput(&kithv1.GetJobOutputRequest{JobId: "a.1.1"}, g) }()
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
		for n := range mostReadersOne + 1 {
			read(n, fmt.Sprint("10.0.0.1:", n))
		}
		if refused != 1 {
			t.Errorf("%d of %d from one address were refused, want 1", refused, mostReadersOne+1)
		}
		if read(mostReadersOne+1, "10.0.0.2:1"); refused != 1 {
			t.Error("another address found no slot")
		}
		for _, n := range largest {
			if n > outputPart {
				t.Errorf("%d bytes were sent at once, at most %d are wanted", n, outputPart)
				break
			}
		}
		cancel()
		synctest.Wait()
		if n := s.readers.Taken(); n != 0 {
			t.Errorf("slots that are still taken: %d", n)
		}
	})
}
