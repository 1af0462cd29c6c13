package daemon

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// Who has only the address of a site finds the service, submits a bag, watches it to its
// end, has what failed run again, and watches that, too.
func TestBagServiceByReflection(t *testing.T) {
	s := startSite(t, testConfig(t, "alpha"))
	conn, err := grpc.NewClient(s.d.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	look, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(s.ctx())
	if err != nil {
		t.Fatal(err)
	}
	look.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}) //nolint:errcheck // Recv says why
	r, err := look.Recv()
	if err != nil || !slices.ContainsFunc(r.GetListServicesResponse().GetService(), func(v *reflectionv1.ServiceResponse) bool { return v.GetName() == "kith.v1.BagService" }) {
		t.Fatalf("services: %v, %v", r, err)
	}
	bags := kithv1.NewBagServiceClient(conn)
	once := t.TempDir() + "/once"
	submitted, err := bags.SubmitBag(s.ctx(), &kithv1.SubmitBagRequest{Bag: &kithv1.Bag{Indices: "1-8", MaxRunning: 2, Job: &kithv1.Job{
		Command: []string{"/bin/sh", "-c", "test {{index}} != 3 || test -e " + once + " || { echo; echo three is early; exit 4; } >&2"}, Processors: 1, Walltime: durationpb.New(60e9),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	id := submitted.GetBagId()
	watch := func() *kithv1.BagStatus {
		t.Helper()
		stream, err := bags.WatchBag(s.ctx(), &kithv1.WatchBagRequest{BagId: id})
		if err != nil {
			t.Fatal(err)
		}
		var last *kithv1.BagStatus
		for {
			r, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return last
			}
			if err != nil {
				t.Fatal(err)
			}
			last = r.GetBag().GetStatus()
		}
	}
	if st := watch(); st.GetState() != kithv1.BagStatus_STATE_FAILED || st.GetTasks().GetCompleted() != 7 || len(st.GetFailures()) != 1 || st.GetFailures()[0].GetIndices()[0] != 3 ||
		st.GetFailures()[0].GetErrorLine() != "three is early" {
		t.Errorf("the bag ended as %v", st)
	}
	if _, err := s.jobs.SubmitJob(s.ctx(), &kithv1.SubmitJobRequest{Job: shell("touch " + once)}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the file is there", func() bool {
		list, err := s.jobs.ListJobs(s.ctx(), &kithv1.ListJobsRequest{})
		return err == nil && len(list.GetJobs()) == 0
	})
	if r, err := bags.RetryTasks(s.ctx(), &kithv1.RetryTasksRequest{BagId: id}); err != nil || r.GetTaskCount() != 1 {
		t.Fatalf("retry: %v, %v", r, err)
	}
	if st := watch(); st.GetState() != kithv1.BagStatus_STATE_COMPLETED || st.GetTasks().GetCompleted() != 8 || st.GetRunCount() != 9 {
		t.Errorf("after the retry: %v", st)
	}
}

// A bag whose budget is used up gives nothing to sites and says so, also after a restart; with
// another budget it goes on.
func TestBudgetOfABag(t *testing.T) {
	t.Parallel()
	s := startSite(t, testConfig(t, "alpha"))
	id := s.submitBag(&kithv1.Bag{Indices: "1-40", BudgetProcessorSeconds: 1, Job: &kithv1.Job{
		Command: []string{"/bin/sleep", "0.2"}, Processors: 1, Walltime: durationpb.New(60e9),
	}})
	spent := func() bool {
		st := s.bag(id)
		return strings.Contains(st.GetReason(), "its budget of 0.0002778 processor-hours is used up") && st.GetUsedProcessorSeconds() >= 1 && st.GetTasks().GetAtSite() == 0
	}
	s.eventually("the budget is used up", spent)
	ran := s.bag(id).GetRunCount()
	s.restart()
	s.eventually("it is so after a restart", spent)
	if n := s.bag(id).GetRunCount(); n != ran || n > 20 {
		t.Errorf("%d runs, %d before the restart", n, ran)
	}
	if _, err := s.bags.SetBagBudget(s.ctx(), &kithv1.SetBagBudgetRequest{BagId: id}); err != nil {
		t.Fatal(err)
	}
	s.endsBag(id)
}

// Who cancelled a bag is in the audit log, and how much of it.
func TestCancelledBagsAreAudited(t *testing.T) {
	bag := job.ID{Origin: "alpha", Generation: 1, Seq: 7}
	some := job.TaskRange(3, 5)
	for want, ev := range map[string]meta.CancelBag{
		"eve alpha.1.7 a mistake":                     {Bag: bag, Actor: "eve", Reason: "a mistake"},
		"eve alpha.1.7 2 of its tasks: these suffice": {Bag: bag, Actor: "eve", Tasks: &some, Reason: "these suffice"},
		"eve alpha.1.7 2 of its tasks":                {Bag: bag, Actor: "eve", Tasks: &some},
	} {
		e, durable, ok := decisionOf(ev)
		if got := strings.Join([]string{e.User, e.Job, e.Text}, " "); got != want || durable || !ok || e.Kind != "cancel" {
			t.Errorf("%+v, %t, want %q", e, ok, want)
		}
	}
}
