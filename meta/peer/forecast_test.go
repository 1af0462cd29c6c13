package peer

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/forecast"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// Questions for forecasts and their answers come over as they were.
func TestForecastsOnTheWire(t *testing.T) {
	a := job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 1, Seq: 2}, Number: 3}
	r := sampleRequest
	r.Runs = [9]uint16{1, 2, 3, 4, 5, 6, 7, 8, 9}
	for _, m := range []meta.Message{
		meta.StartQuery{Query: 1, Request: r, Draws: 50, Attempt: a},
		meta.StartAnswer{Query: 1, Wait: time.Hour, Waits: forecast.Waits{0, 0, 1, 2, 3, 4, 5, 6, time.Hour}, Basis: forecast.ByLimits},
	} {
		got, err := fromProto(toProto(m))
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v, then %+v, %v", m, got, err)
		}
	}
}

// A forecast with a start in the past, never, with quantiles that fall, with too few of
// them, or of a basis that is not known, is no answer. An answer that gives a reason
// keeps that.
func TestForecastsThatAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		waits  []int64
		basis  uint32
		reason job.Reason
	}{
		"the past": {[]int64{-1, 0, 0, 0, 0, 0, 0, 0, 0}, 1, 0}, "never": {[]int64{0, 0, 0, 0, 0, 0, 0, 0, math.MaxInt64}, 1, 0},
		"falls": {[]int64{9, 8, 7, 6, 5, 4, 3, 2, 1}, 1, 0}, "none": {nil, 1, 0}, "too few": {make([]int64, 8), 2, 0},
		"a later basis": {make([]int64, 9), 4, 0}, "far beyond": {make([]int64, 9), math.MaxUint32, 0}, "with a reason": {nil, 1, job.Draining},
	} {
		m, err := fromProto(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_StartAnswer{StartAnswer: &kithv1.StartAnswer{
			Query: 7, Wait: durationpb.New(-time.Hour), WaitQuantilesNs: c.waits, Basis: c.basis, Reason: uint32(c.reason),
		}}})
		want := meta.StartAnswer{Query: 7, Reason: job.NoAnswer}
		if c.reason != 0 {
			want.Reason = c.reason
		}
		if err != nil || m != want {
			t.Errorf("%s: %+v, %v; want %+v", name, m, err, want)
		}
	}
	m, err := fromProto(&kithv1.PeerMessage{Message: &kithv1.PeerMessage_StartAnswer{StartAnswer: &kithv1.StartAnswer{WaitQuantilesNs: make([]int64, 10), Basis: 1}}})
	if err == nil || !strings.Contains(err.Error(), "start_answer.wait_quantiles_ns") {
		t.Errorf("ten quantiles: %+v, %v", m, err)
	}
}
