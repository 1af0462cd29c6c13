package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// TestDependenciesOutliveAKill has jobs and bags wait for a job and a bag whose ends come
// after the daemon was killed.
func TestDependenciesOutliveAKill(t *testing.T) {
	t.Parallel()
	k := newKilled(t)
	dir := t.TempDir()
	gate := filepath.Join(dir, "gate")
	wait := "until [ -e '" + gate + "' ]; do sleep 0.05; done; exit "
	after := func(id string, c kithv1.Dependency_Condition) []*kithv1.Dependency {
		return []*kithv1.Dependency{{Id: id, Condition: c}}
	}
	dependent := func(id string, c kithv1.Dependency_Condition) string {
		j := shell("true")
		j.After = after(id, c)
		return k.submit(j)
	}
	named := func(text string) string {
		j := shell(text)
		j.Name, j.Singleton = "nightly", true
		return k.submit(j)
	}

	good, bad := named(wait+"0"), k.submit(shell(wait+"3"))
	ok, notOK := kithv1.Dependency_CONDITION_OK, kithv1.Dependency_CONDITION_NOT_OK
	goes := []string{dependent(good, ok), dependent(bad, notOK), dependent(bad, kithv1.Dependency_CONDITION_ANY), named("true")}
	broken := []string{dependent(good, notOK), dependent(bad, ok)}
	broken = append(broken, dependent(broken[1], ok))
	r, err := k.bags.SubmitBag(k.ctx(), &kithv1.SubmitBagRequest{Bag: &kithv1.Bag{Job: shell("true"), Indices: "0-2", After: after(good, ok)}})
	if err != nil {
		t.Fatal(err)
	}
	afterBag := dependent(r.GetBagId(), ok)
	unknown := shell("true")
	unknown.After = after(job.ID{Origin: "alpha", Generation: 1, Seq: 999}.String(), ok)
	if _, err := k.jobs.SubmitJob(k.ctx(), &kithv1.SubmitJobRequest{Job: unknown}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("after an unknown job: %v", err)
	}

	k.kill()
	k.run()
	for _, id := range append([]string{afterBag}, append(goes, broken...)...) {
		if s := k.get(id).GetStatus().GetState(); s != kithv1.JobStatus_STATE_BLOCKED {
			t.Errorf("%s is %v after the restart", id, s)
		}
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range append(goes, afterBag) {
		k.waitState(id, kithv1.JobStatus_STATE_COMPLETED)
	}
	for _, id := range broken {
		if j := k.waitState(id, kithv1.JobStatus_STATE_CANCELLED); j.GetAfter()[0].GetState() != kithv1.Dependency_STATE_BROKEN {
			t.Errorf("%s is cancelled with %v", id, j.GetAfter())
		}
	}
	k.kill()
	k.run()
	for _, id := range append(goes, afterBag) {
		k.waitState(id, kithv1.JobStatus_STATE_COMPLETED)
	}
}
