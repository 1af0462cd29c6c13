package wire

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// What is expected of a run time comes over as it was, or not at all: a list that falls, is
// more than the limit, too short or too long makes a request that is refused, and says why.
// There is no number that is none (NaN) among whole ones: what a peer may send are these.
func TestRunsThatAreNone(t *testing.T) {
	r := job.Request{User: "ada", Processors: 1, Walltime: time.Hour, Runs: [9]uint16{0, 0, 1, 2, 3, 4, 5, 6, math.MaxUint16}}
	if got := Request(RequestMessage(&r)); got != r || got.Validate() != nil {
		t.Errorf("%+v, then %+v", r, got)
	}
	r.Runs = [9]uint16{}
	if m := RequestMessage(&r); len(m.GetRuns()) != 0 || Request(m) != r {
		t.Errorf("of nothing known %v is said", m.GetRuns())
	}
	good := []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9}
	for name, sent := range map[string][]uint32{
		"falls": {1, 2, 3, 4, 3, 6, 7, 8, 9}, "more than the limit": {1, 2, 3, 4, 5, 6, 7, 8, 65536}, "too short": good[:8], "too long": append(slices.Clone(good), 10),
		"far too large": {math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32},
	} {
		got := Request(&kithv1.CopyRequest{User: "ada", Processors: 1, WalltimeNs: 1e9, Runs: sent})
		if err := got.Validate(); err == nil || !strings.Contains(err.Error(), "runs") {
			t.Errorf("%s: %+v, %v", name, got.Runs, err)
		}
	}
}
