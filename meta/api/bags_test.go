package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// bagSite is a site whose engine makes a fact of each request about a bag and does nothing
// more: what hosts do, the test does.
type bagSite struct {
	*memorySite
	bags   *Changes
	events []meta.Event
	// left is what tasks leave, by ordinals.
	left map[uint32][]transfer.File
}

// serveBags returns a server of such a site.
func serveBags(t testing.TB) (*Server, *bagSite) {
	t.Helper()
	s, m := serve(t)
	b := &bagSite{memorySite: m, bags: NewChanges(7)}
	s.Node, s.BagChanges = b, b.bags
	return s, b
}

// Ask implements Node.
func (b *bagSite) Ask(_ context.Context, event func(uint64) meta.Event) (meta.Reply, error) {
	b.mu.Lock()
	ev := event(1)
	b.events = append(b.events, ev)
	b.now = b.now.Add(time.Second)
	var c store.Command
	var id job.ID
	switch ev := ev.(type) {
	case meta.SubmitBag:
		if old := b.state.BagOfRequest(ev.RequestID); old != nil {
			b.mu.Unlock()
			if old.BodyHash != ev.BodyHash {
				return meta.Reply{}, fmt.Errorf("request_id %q: %w", ev.RequestID, meta.ErrRequestReused)
			}
			return meta.Reply{Job: old.ID}, nil
		}
		id = b.state.NextID()
		c = store.SubmitBag{
			ID: id, Request: ev.Request, Indices: ev.Indices, RequestID: ev.RequestID, BodyHash: ev.BodyHash, Priority: ev.Priority,
			Policies: ev.Policies, MaxRunning: ev.MaxRunning, Budget: ev.Budget, Retries: ev.Retries, Payload: ev.Payload, Actor: ev.Actor, Time: b.now,
		}
	case meta.CancelBag:
		id, c = ev.Bag, store.CancelBag{Bag: ev.Bag, Tasks: ev.Tasks, Actor: ev.Actor, Reason: ev.Reason, Time: b.now}
	case meta.HoldBag:
		id, c = ev.Bag, store.HoldBag{Bag: ev.Bag, Actor: ev.Actor, Reason: ev.Reason, Time: b.now}
	case meta.ReleaseBag:
		id, c = ev.Bag, store.ReleaseBag{Bag: ev.Bag, Actor: ev.Actor, Time: b.now}
	case meta.SetPolicies:
		if bag := b.state.Bag(ev.Bag); bag != nil && ev.Version != bag.Policies.Version {
			b.mu.Unlock()
			return meta.Reply{}, meta.ErrStalePolicies
		}
		id, c = ev.Bag, store.SetPolicies{Bag: ev.Bag, Texts: ev.Texts, Version: ev.Version, Actor: ev.Actor, Time: b.now}
	case meta.SetBudget:
		id, c = ev.Bag, store.SetBudget{Bag: ev.Bag, Budget: ev.Budget, Actor: ev.Actor, Time: b.now}
	case meta.RetryTasks:
		id, c = ev.Bag, store.RetryTasks{Bag: ev.Bag, Tasks: ev.Tasks, RequestID: ev.RequestID, Actor: ev.Actor, Time: b.now}
	}
	b.mu.Unlock()
	if err := b.fact(c); err != nil {
		return meta.Reply{}, map[bool]error{true: meta.ErrUnknownBag, false: meta.ErrBagEnded}[errors.Is(err, store.ErrUnknown)]
	}
	b.bags.Add(id)
	return meta.Reply{Job: id}, nil
}

// fact makes facts durable.
func (b *bagSite) fact(commands ...store.Command) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range commands {
		if err := b.state.Apply(c); err != nil {
			return err
		}
	}
	return b.Seal(b.state).Commit()
}

// run has a site end the next tasks of a bag, each as the test says.
func (b *bagSite) run(t testing.TB, id job.ID, site job.SiteID, n int, end func(ordinal uint32) job.TaskResult) {
	t.Helper()
	for n > 0 {
		bag := b.state.Bag(id)
		bundle := job.AttemptID{Job: id, Number: bag.Number + 1}
		tasks := bag.NextTasks(n)
		var results []job.TaskResult
		var files []store.TaskFiles
		for task := range tasks.All {
			r := end(task)
			r.Ordinal = task
			results = append(results, r)
			if len(b.left[task]) > 0 {
				for i, f := range b.left[task] {
					b.left[task][i].Size = max(f.Size, int64(len(f.Inline)))
				}
				files = append(files, store.TaskFiles{Ordinal: task, Set: encoded(t, transfer.Set{Files: b.left[task]})})
			}
		}
		n -= tasks.Count()
		if err := b.fact(
			store.GrantBundle{Bundle: bundle, Site: site, Stamp: uint64(bundle.Number), Generation: 1, Tasks: tasks, Time: b.now},
			store.RecordResults{Bundle: bundle, Site: site, Batch: 1, Results: results, Files: files, Time: b.now},
		); err != nil {
			t.Fatal(err)
		}
		b.bags.Add(id)
	}
}

func encoded(t testing.TB, set transfer.Set) []byte {
	t.Helper()
	b, err := set.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// tenth fails every task whose ordinal ends with 7.
func tenth(task uint32) job.TaskResult {
	if task%10 == 7 {
		return job.TaskResult{Kind: job.Failure, ExitCode: 1, Start: 5, Run: time.Second}
	}
	return job.TaskResult{Kind: job.Success, Start: 5, Run: 2 * time.Second, CPUTime: time.Second, MaxRSSBytes: 1 << 20, FilesLost: task == 3}
}

func submitBag(t testing.TB, s *Server, change func(*kithv1.Bag)) job.ID {
	t.Helper()
	b := goodBag()
	if change != nil {
		change(b)
	}
	r, err := s.SubmitBag(t.Context(), &kithv1.SubmitBagRequest{Bag: b})
	if err != nil {
		t.Fatal(err)
	}
	id, err := job.ParseID(r.GetBagId())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestSubmitBag(t *testing.T) {
	s, m := serveBags(t)
	ctx := identity.With(t.Context(), identity.Caller{Actor: "eve", Proof: identity.PeerCredential})
	bag := func() *kithv1.Bag {
		b := withMatrix("a=1..5,b=x,y")
		b.Job.Name, b.Job.Command, b.MaxRunning, b.Retries, b.Priority = "", []string{"/bin/echo", "{{a}}"}, 50, 2, 3
		b.Job.OnSiteLost = kithv1.Job_ON_SITE_LOST_UNSPECIFIED
		return b
	}
	first, err := s.SubmitBag(ctx, &kithv1.SubmitBagRequest{Bag: bag(), RequestId: "r"})
	if err != nil || first.GetTaskCount() != 10 {
		t.Fatal(first, err)
	}
	id, _ := job.ParseID(first.GetBagId())
	rec := m.state.Bag(id)
	if rec.Request.User != "eve" || rec.Request.Name != "echo" || rec.Request.OnSiteLost != job.Rerun || rec.MaxRunning != 50 ||
		rec.Retries != 2 || rec.Priority != 3 || rec.Submitter != "eve" {
		t.Errorf("the record is %+v", rec)
	}
	if again, err := s.SubmitBag(ctx, &kithv1.SubmitBagRequest{Bag: bag(), RequestId: "r"}); err != nil || again.GetBagId() != first.GetBagId() {
		t.Errorf("a repeated submission: %v, %v", again, err)
	}
	_, err = s.SubmitBag(ctx, &kithv1.SubmitBagRequest{Bag: goodBag(), RequestId: "r"})
	if w := onWire(t, err); w.code != codes.AlreadyExists || w.reason != "REQUEST_ID_REUSED" {
		t.Errorf("another bag of the same request: %+v", w)
	}
	asked := len(m.events)
	if r, err := s.SubmitBag(ctx, &kithv1.SubmitBagRequest{Bag: bag(), ValidateOnly: true}); err != nil || r.GetTaskCount() != 10 || r.GetBagId() != "" || len(m.events) != asked {
		t.Errorf("validate_only: %v, %v, the engine was asked %d times more", r, err, len(m.events)-asked)
	}
	// What was submitted comes back, without rows.
	got, err := s.GetBag(ctx, &kithv1.GetBagRequest{BagId: first.GetBagId()})
	if err != nil {
		t.Fatal(err)
	}
	b := got.GetBag()
	if b.GetMatrix() != "a=1..5,b=x,y" || b.GetIndices() != "0-9" || !slices.Equal(b.GetJob().GetCommand(), []string{"/bin/echo", "{{a}}"}) ||
		!slices.Equal(b.GetStatus().GetParameterNames(), []string{"a", "b"}) || b.GetStatus().GetTasks().GetWaiting() != 10 ||
		b.GetStatus().GetState() != kithv1.BagStatus_STATE_OPEN || b.GetStatus().GetUser() != "eve" || len(b.GetStatus().GetActs()) != 1 {
		t.Errorf("the bag is %v", b)
	}
	for name, other := range map[string]*kithv1.Bag{
		"x":    withValues("secret", "b"),
		"line": withTable(kithv1.TaskTable_FORMAT_LINES, "secret\nb\n"),
		"":     goodBag(),
	} {
		id := submitBag(t, s, func(b *kithv1.Bag) { b.Indices, b.Parameters = other.Indices, other.Parameters })
		got, err := s.GetBag(ctx, &kithv1.GetBagRequest{BagId: id.String()})
		if err != nil || strings.Join(got.GetBag().GetStatus().GetParameterNames(), ",") != name || strings.Contains(got.String(), "secret") {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
}

func TestBagRequestsThatAreRefused(t *testing.T) {
	s, m := serveBags(t)
	id := submitBag(t, s, nil).String()
	asked := len(m.events)
	ctx := t.Context()
	long := strings.Repeat("x", 300)
	err := func(_ any, err error) error { return err }
	for name, c := range map[string]struct {
		err  error
		want string // a field, or a reason
	}{
		"get nothing":         {err(s.GetBag(ctx, &kithv1.GetBagRequest{})), "bag_id"},
		"get a task":          {err(s.GetBag(ctx, &kithv1.GetBagRequest{BagId: "alpha.1.1_7"})), "bag_id: alpha.1.1_7 is a task; the bag is alpha.1.1 and its index 7"},
		"get another":         {err(s.GetBag(ctx, &kithv1.GetBagRequest{BagId: "alpha.1.99"})), "BAG_NOT_FOUND"},
		"get one elsewhere":   {err(s.GetBag(ctx, &kithv1.GetBagRequest{BagId: "beta.1.1"})), "JOB_OF_ANOTHER_SITE"},
		"long request id":     {err(s.CancelBag(ctx, &kithv1.CancelBagRequest{BagId: id, RequestId: long})), "request_id"},
		"long reason":         {err(s.CancelBag(ctx, &kithv1.CancelBagRequest{BagId: id, Reason: long})), "reason"},
		"long reason to hold": {err(s.HoldBag(ctx, &kithv1.HoldBagRequest{BagId: id, Reason: long})), "reason"},
		"cancel no index":     {err(s.CancelBag(ctx, &kithv1.CancelBagRequest{BagId: id, Indices: "5-12"})), "indices: index 10: the bag has no task with it; there are 0-9"},
		"cancel nonsense":     {err(s.CancelBag(ctx, &kithv1.CancelBagRequest{BagId: id, Indices: "9-5"})), `indices: "9-5" runs backwards; write "5-9"`},
		"cancel with a limit": {err(s.CancelBag(ctx, &kithv1.CancelBagRequest{BagId: id, Indices: "5%2"})), "indices: '%' and a number behind it have no meaning here"},
		"cancel another":      {err(s.CancelBag(ctx, &kithv1.CancelBagRequest{BagId: "alpha.1.99", Indices: "1"})), "BAG_NOT_FOUND"},
		"retry none":          {err(s.RetryTasks(ctx, &kithv1.RetryTasksRequest{BagId: id})), "NO_TASK_FAILED"},
		"retry another":       {err(s.RetryTasks(ctx, &kithv1.RetryTasksRequest{BagId: "alpha.1.99"})), "BAG_NOT_FOUND"},
		"list a large page":   {err(s.ListBags(ctx, &kithv1.ListBagsRequest{PageSize: 1001})), "page_size: 1001: must be 0 to 1000"},
		"list from nowhere":   {err(s.ListBags(ctx, &kithv1.ListBagsRequest{PageToken: "2"})), "page_token"},
		"tasks of nothing":    {err(s.ListTasks(ctx, &kithv1.ListTasksRequest{})), "bag_id"},
		"tasks from nowhere":  {err(s.ListTasks(ctx, &kithv1.ListTasksRequest{BagId: id, PageToken: "x"})), "page_token"},
		"tasks in no state":   {err(s.ListTasks(ctx, &kithv1.ListTasksRequest{BagId: id, States: []kithv1.Task_State{1, 9}})), "states[1]: 9 is not one of its values"},
		"tasks of no index":   {err(s.ListTasks(ctx, &kithv1.ListTasksRequest{BagId: id, Indices: "10"})), "indices"},
		"watch another":       {s.WatchBag(&kithv1.WatchBagRequest{BagId: "alpha.1.99"}, &watchingBag{ctx: ctx}), "BAG_NOT_FOUND"},
		"output twice":        {s.GetTaskOutput(&kithv1.GetTaskOutputRequest{BagId: id, Path: "x", AllFiles: true}, &taskOutputStream{ctx: ctx}), "path"},
		"output too soon":     {s.GetTaskOutput(&kithv1.GetTaskOutputRequest{BagId: id, Indices: "3"}, &taskOutputStream{ctx: ctx}), "OUTPUT_NOT_FOUND"},
	} {
		w := onWire(t, c.err)
		if w.reason != c.want && (len(w.fields) != 1 || !strings.HasPrefix(w.fields[0], c.want)) {
			t.Errorf("%s: %+v, want %s", name, w, c.want)
		}
	}
	if len(m.events) != asked {
		t.Errorf("the engine was asked: %+v", m.events[asked:])
	}
}

func TestActsOnBags(t *testing.T) {
	s, m := serveBags(t)
	ctx := identity.With(t.Context(), identity.Caller{Actor: "eve", Proof: identity.PeerCredential})
	id := submitBag(t, s, func(b *kithv1.Bag) { b.Indices = "10-30:2" })
	name := id.String()
	status := func() *kithv1.BagStatus {
		r, err := s.GetBag(ctx, &kithv1.GetBagRequest{BagId: name})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetBag().GetStatus()
	}
	if r, err := s.HoldBag(ctx, &kithv1.HoldBagRequest{BagId: name, Reason: "lunch"}); err != nil || r.GetState() != kithv1.BagStatus_STATE_HELD {
		t.Fatal(r, err)
	}
	if got := status().GetReason(); got != "held by eve: lunch" {
		t.Errorf("reason %q", got)
	}
	if r, err := s.ReleaseBag(ctx, &kithv1.ReleaseBagRequest{BagId: name}); err != nil || r.GetState() != kithv1.BagStatus_STATE_OPEN {
		t.Fatal(r, err)
	}
	if r, err := s.CancelBag(ctx, &kithv1.CancelBagRequest{BagId: name, Indices: "28,30"}); err != nil || r.GetState() != kithv1.BagStatus_STATE_OPEN {
		t.Fatal(r, err)
	}
	if got := m.events[len(m.events)-1].(meta.CancelBag); got.Tasks.String() != "9-10" || got.Actor != "eve" {
		t.Errorf("the event is %+v", got)
	}
	m.run(t, id, "beta", 9, tenth) // 17 does not exist; ordinal 7 is index 24
	if err := m.fact(store.CloseBag{Bag: id, Time: m.now}); err != nil {
		t.Fatal(err)
	}
	st := status()
	want := "completed:8 failed:1 cancelled:2"
	if got := fmt.Sprintf("completed:%d failed:%d cancelled:%d", st.GetTasks().GetCompleted(), st.GetTasks().GetFailed(), st.GetTasks().GetCancelled()); got != want || st.GetState() != kithv1.BagStatus_STATE_FAILED {
		t.Errorf("%s in %v, want %s", got, st.GetState(), want)
	}
	if f := st.GetFailures(); len(f) != 1 || f[0].GetExitCode() != 1 || f[0].GetCount() != 1 || !slices.Equal(f[0].GetIndices(), []int32{24}) || f[0].GetEnding() != kithv1.Task_ENDING_FAILURE {
		t.Errorf("failures %v", f)
	}
	if got := st.GetSites(); len(got) != 1 || got[0].GetSiteId() != "beta" || got[0].GetCompleted() != 8 || got[0].GetRunTime().AsDuration() != 17*time.Second {
		t.Errorf("sites %v", got)
	}
	_, err := s.CancelBag(ctx, &kithv1.CancelBagRequest{BagId: name, Indices: "10"})
	if w := onWire(t, err); w.reason != "BAG_ENDED" {
		t.Errorf("cancel after the end: %+v", w)
	}
	_, err = s.RetryTasks(ctx, &kithv1.RetryTasksRequest{BagId: name, RequestId: strings.Repeat("r", 65)})
	if w := onWire(t, err); len(w.fields) != 1 {
		t.Errorf("a long request id: %+v", w)
	}
	again := &kithv1.RetryTasksRequest{BagId: name, RequestId: "r7"}
	if r, err := s.RetryTasks(ctx, again); err != nil || r.GetTaskCount() != 1 || r.GetState() != kithv1.BagStatus_STATE_OPEN {
		t.Fatal(r, err)
	}
	if got := m.events[len(m.events)-1].(meta.RetryTasks); got.Tasks.String() != "7" {
		t.Errorf("tasks %s run again", got.Tasks.String())
	}
	events := len(m.events)
	if r, err := s.RetryTasks(ctx, again); err != nil || r.GetTaskCount() != 1 || r.GetState() != kithv1.BagStatus_STATE_OPEN || len(m.events) != events {
		t.Errorf("the same request again: %v, %v", r, err)
	}
	if st := status(); st.GetEndTime() != nil || st.GetTasks().GetWaiting() != 1 {
		t.Errorf("after the retry: %v", st)
	}
	if acts := status().GetActs(); len(acts) != 5 || acts[3].GetTaskCount() != 2 || acts[4].GetKind() != kithv1.JobAct_KIND_RETRY || acts[4].GetTaskCount() != 1 {
		t.Errorf("acts %v", acts)
	}
	if r, err := s.RetryTasks(ctx, &kithv1.RetryTasksRequest{BagId: name, Indices: "10,28"}); err != nil || r.GetTaskCount() != 2 {
		t.Errorf("retry by indices: %v, %v", r, err)
	}
}

func TestListBags(t *testing.T) {
	s, _ := serveBags(t)
	var ids []string
	for i := range 5 {
		ids = append(ids, submitBag(t, s, func(b *kithv1.Bag) { b.Job.Name = fmt.Sprint("n", i%2) }).String())
	}
	if _, err := s.CancelBag(t.Context(), &kithv1.CancelBagRequest{BagId: ids[0]}); err != nil {
		t.Fatal(err)
	}
	list := func(r *kithv1.ListBagsRequest) (got []string) {
		for {
			page, err := s.ListBags(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range page.GetBags() {
				got = append(got, b.GetId())
			}
			if r.PageToken = page.GetNextPageToken(); r.PageToken == "" {
				return got
			}
		}
	}
	for name, c := range map[string]struct {
		r    *kithv1.ListBagsRequest
		want []string
	}{
		"all in pages":    {&kithv1.ListBagsRequest{PageSize: 2}, ids}, // a cancelled bag is still on its way home
		"by name":         {&kithv1.ListBagsRequest{Names: []string{"n1"}}, []string{ids[1], ids[3]}},
		"by user":         {&kithv1.ListBagsRequest{Users: []string{"bob"}}, nil},
		"by state":        {&kithv1.ListBagsRequest{States: []kithv1.BagStatus_State{kithv1.BagStatus_STATE_RETURNING}}, ids[:1]},
		"in every state":  {&kithv1.ListBagsRequest{AllStates: true, States: []kithv1.BagStatus_State{1}}, ids},
		"that have ended": {&kithv1.ListBagsRequest{States: []kithv1.BagStatus_State{kithv1.BagStatus_STATE_CANCELLED}}, nil},
	} {
		if got := list(c.r); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// watchingBag is a stream of WatchBag.
type watchingBag struct {
	grpc.ServerStream
	ctx  context.Context
	sent []*kithv1.WatchBagResponse
	at   []time.Time
}

func (w *watchingBag) Context() context.Context { return w.ctx }
func (w *watchingBag) Send(r *kithv1.WatchBagResponse) error {
	w.sent, w.at = append(w.sent, r), append(w.at, time.Now())
	return nil
}

// A bag that changes all the time is told of four times a second, the last state always,
// and the watch ends with the bag.
func TestWatchBag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serveBags(t)
		id := submitBag(t, s, func(b *kithv1.Bag) { b.Indices = "0-999" })
		w := &watchingBag{ctx: t.Context()}
		over := make(chan error)
		go func() { over <- s.WatchBag(&kithv1.WatchBagRequest{BagId: id.String()}, w) }()
		synctest.Wait()
		if len(w.sent) != 1 || w.sent[0].GetBag().GetStatus().GetTasks().GetWaiting() != 1000 {
			t.Fatalf("at first: %v", w.sent)
		}
		for range 1000 {
			time.Sleep(time.Millisecond)
			m.run(t, id, "beta", 1, tenth)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(w.sent); n < 4 || n > 6 || w.sent[n-1].GetBag().GetStatus().GetTasks().GetCompleted() != 900 {
			t.Errorf("%d responses within a second, the last %v", n, w.sent[n-1])
		}
		for i := 1; i < len(w.at); i++ {
			if d := w.at[i].Sub(w.at[i-1]); d < watchPause {
				t.Errorf("response %d came after %v", i, d)
			}
		}
		n := len(w.sent)
		m.bags.Add(id) // nothing has changed
		time.Sleep(time.Second)
		if synctest.Wait(); len(w.sent) != n {
			t.Error("the same was sent twice")
		}
		if err := m.fact(store.CloseBag{Bag: id, Time: m.now}); err != nil {
			t.Fatal(err)
		}
		m.bags.Add(id)
		if err := <-over; err != nil || w.sent[len(w.sent)-1].GetBag().GetStatus().GetState() != kithv1.BagStatus_STATE_FAILED {
			t.Errorf("it ended with %v, %v", err, w.sent[len(w.sent)-1])
		}
	})
}
