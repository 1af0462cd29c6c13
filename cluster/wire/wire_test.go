package wire

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"kith/cluster"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

func TestDigestRoundTrip(t *testing.T) {
	d := cluster.Digest{
		Site: "beta", Incarnation: 5, Sequence: 6, Address: "h:1", Processors: 7, MemoryBytes: 8,
		Load: job.Load{Work: 1.5, Procs: 2.5, Free: 3, Queued: 4, Running: 5, Blocked: true}, Policy: "easy", Speed: 1.25,
		Draining: true, Time: 99, Version: "v", HomeJobs: cluster.HomeJobsFirst,
		NotStarting: true, Settings: 9, GuestWalltime: 10, KeptFree: 11, TimesFreed: 12, Owner: &cluster.Owner{}, Level: &cluster.Level{Rank: 1, Queue: 2, Run: 1},
		Head: &cluster.AuditHead{Number: 7, Hash: [32]byte{1, 31: 2}, Time: 98, Signature: []byte("s")},
	}
	for i, v := 0, reflect.ValueOf(d); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not tried", v.Type().Field(i).Name)
		}
	}
	got, err := Digest(DigestMessage(&d))
	if err != nil || !reflect.DeepEqual(got, d) {
		t.Errorf("got %+v, %v; want %+v", got, err, d)
	}
	for name, h := range map[string]*kithv1.AuditHead{"line 0": {Hash: make([]byte, 32)}, "a short hash": {Number: 1, Hash: make([]byte, 31)}} {
		if _, err := Digest(&kithv1.LoadDigest{SiteId: "beta", AuditHead: h}); !errors.Is(err, cluster.ErrImpossible) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Digest(&kithv1.LoadDigest{SiteId: "No Site"}); err == nil {
		t.Error("a digest of no site was accepted")
	}
}

// What another site says is a bound of work counts only if it is one.
func TestBoundOfAnOutcome(t *testing.T) {
	t.Parallel()
	for said, want := range map[float64]float64{0: 0, 7: 7, 1e18: 1e18, -1: 0, 2e18: 0, math.Inf(1): 0, math.NaN(): 0} {
		if got := Outcome(&kithv1.AttemptOutcome{Kind: uint32(job.Demoted), Bound: said}); got == nil || got.Bound != want {
			t.Errorf("a bound of %v is taken as %+v, want %v", said, got, want)
		}
	}
}
