package bench

import (
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/check/flood"
)

// ended is a stream that the server has ended: who sends hears that alone, as gRPC has it,
// and who reads hears why.
type ended struct {
	flood.Stream
	late time.Duration // until it is heard why
}

func (ended) Send(*kithv1.ConnectRequest) error { return io.EOF }

func (e ended) Recv() (*kithv1.ConnectResponse, error) {
	time.Sleep(e.late)
	return nil, status.Error(codes.ResourceExhausted, "too much of it")
}

// What is said of a stream that the site has ended is why, also where the next question
// notices it first, and it is not asked again over it.
func TestAskTellsWhyTheStreamEnded(t *testing.T) {
	for _, late := range []time.Duration{0, 50 * time.Millisecond} {
		h := &honest{stream: ended{late: late}, answers: make(chan uint64, 1)}
		go h.listen()
		began := time.Now()
		err := patiently(t.Context(), h.ask)
		if err == nil || !strings.Contains(err.Error(), "too much of it") || !strings.Contains(err.Error(), "has ended") || time.Since(began) > 10*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	}
}
