package wire

import (
	"testing"

	"kith/cluster"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

func TestDigestRoundTrip(t *testing.T) {
	d := cluster.Digest{
		Site: "beta", Incarnation: 5, Sequence: 6, Address: "h:1", Processors: 7, MemoryBytes: 8,
		Load: job.Load{Work: 1.5, Procs: 2.5, Free: 3, Queued: 4, Running: 5}, Policy: "easy", Speed: 1.25,
		Draining: true, Time: 99, Version: "v", HomeJobs: cluster.HomeJobsFirst,
	}
	got, err := Digest(DigestMessage(&d))
	if err != nil || got != d {
		t.Errorf("got %+v, %v; want %+v", got, err, d)
	}
	if _, err := Digest(&kithv1.LoadDigest{SiteId: "No Site"}); err == nil {
		t.Error("a digest of no site was accepted")
	}
}
