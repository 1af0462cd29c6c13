package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// fakeTime is when all happens at a fake site.
var fakeTime = time.Date(2026, 11, 21, 9, 42, 3, 0, time.UTC)

// fakeBags are the bags of a fake site.
type fakeBags struct {
	kithv1.UnimplementedBagServiceServer
	f    *fakeSite
	bags []*fakeBag
}

// fakeBag is a bag and its tasks, all of which wait until the test says otherwise.
type fakeBag struct {
	bag     *kithv1.Bag
	tasks   []*kithv1.Task
	outputs map[string]string // by index and path
}

// update counts the tasks. The mutex of the site is held.
func (b *fakeBag) update() {
	s := b.bag.GetStatus()
	s.Version++
	n := &kithv1.TaskCounts{Total: int64(len(b.tasks))}
	s.Tasks, s.Failures = n, nil
	for _, t := range b.tasks {
		switch t.GetState() {
		case kithv1.Task_STATE_WAITING:
			n.Waiting++
		case kithv1.Task_STATE_AT_SITE:
			n.AtSite++
		case kithv1.Task_STATE_COMPLETED:
			n.Completed++
		case kithv1.Task_STATE_CANCELLED:
			n.Cancelled++
		case kithv1.Task_STATE_FAILED:
			n.Failed++
			k := slices.IndexFunc(s.Failures, func(k *kithv1.TaskFailures) bool {
				return k.GetExitCode() == t.GetExitCode() && k.GetSignal() == t.GetSignal() && k.GetEnding() == t.GetEnding()
			})
			if k < 0 {
				k = len(s.Failures)
				s.Failures = append(s.Failures, &kithv1.TaskFailures{Ending: t.GetEnding(), ExitCode: t.GetExitCode(), Signal: t.GetSignal(), ErrorLine: "oh no"})
			}
			if s.Failures[k].Count++; len(s.Failures[k].Indices) < 3 {
				s.Failures[k].Indices = append(s.Failures[k].Indices, t.GetIndex())
			}
		}
	}
	switch {
	case n.Waiting+n.AtSite > 0:
		if s.State != kithv1.BagStatus_STATE_HELD {
			s.State = kithv1.BagStatus_STATE_OPEN
		}
	case n.Failed > 0:
		s.State = kithv1.BagStatus_STATE_FAILED
	case n.Cancelled > 0:
		s.State = kithv1.BagStatus_STATE_CANCELLED
	default:
		s.State = kithv1.BagStatus_STATE_COMPLETED
	}
}

func (b *fakeBags) find(id string) (*fakeBag, error) {
	for _, bag := range b.bags {
		if bag.bag.GetId() == id {
			return bag, nil
		}
	}
	return nil, siteError(codes.NotFound, "bag "+id+": no such bag", "BAG_NOT_FOUND", 0)
}

// chosen returns the tasks of some indices and states.
func (b *fakeBag) chosen(indices string, states []kithv1.Task_State) (tasks []*kithv1.Task) {
	x, _, err := job.ParseIndices(indices)
	for _, t := range b.tasks {
		_, named := x.Ordinal(uint32(t.GetIndex()))
		if (err != nil || named) && (len(states) == 0 || slices.Contains(states, t.GetState())) {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

func (b *fakeBags) SubmitBag(_ context.Context, r *kithv1.SubmitBagRequest) (*kithv1.SubmitBagResponse, error) {
	indices := r.GetBag().GetIndices()
	if rows := r.GetBag().GetValues().GetRows(); len(rows) > 0 {
		indices = fmt.Sprintf("0-%d", len(rows)-1)
	}
	x, _, err := job.ParseIndices(indices)
	if err != nil {
		x = job.FirstIndices(3)
	}
	if r.GetValidateOnly() {
		return &kithv1.SubmitBagResponse{TaskCount: int64(x.Count())}, nil
	}
	id := ""
	b.f.change(func() {
		if id = b.f.byID[r.GetRequestId()]; id != "" {
			return
		}
		id = fmt.Sprintf("uni-a.2.%d", len(b.bags)+1)
		b.f.byID[r.GetRequestId()] = id
		bag := &fakeBag{bag: proto.CloneOf(r.GetBag()), outputs: map[string]string{}}
		bag.bag.Id = id
		bag.bag.Status = &kithv1.BagStatus{OriginSiteId: "uni-a", User: "ada", SubmitTime: timestamppb.New(fakeTime)}
		for i := range x.Count() {
			bag.tasks = append(bag.tasks, &kithv1.Task{Index: int32(x.Index(i)), State: kithv1.Task_STATE_WAITING})
		}
		bag.update()
		b.bags = append(b.bags, bag)
	})
	return &kithv1.SubmitBagResponse{BagId: id, TaskCount: int64(x.Count())}, nil
}

func (b *fakeBags) GetBag(_ context.Context, r *kithv1.GetBagRequest) (*kithv1.GetBagResponse, error) {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	bag, err := b.find(r.GetBagId())
	if err != nil {
		return nil, err
	}
	return &kithv1.GetBagResponse{Bag: proto.CloneOf(bag.bag)}, nil
}

func (b *fakeBags) ListBags(_ context.Context, r *kithv1.ListBagsRequest) (*kithv1.ListBagsResponse, error) {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	list := &kithv1.ListBagsResponse{}
	for _, bag := range b.bags {
		if r.GetAllStates() || !bagEnded(bag.bag.GetStatus().GetState()) {
			list.Bags = append(list.Bags, proto.CloneOf(bag.bag))
		}
	}
	return list, nil
}

func (b *fakeBags) WatchBag(r *kithv1.WatchBagRequest, g grpc.ServerStreamingServer[kithv1.WatchBagResponse]) error {
	sent := int64(-1)
	for {
		b.f.mu.Lock()
		bag, err := b.find(r.GetBagId())
		var now *kithv1.Bag
		if err == nil {
			now = proto.CloneOf(bag.bag)
		}
		changed := b.f.changed
		b.f.mu.Unlock()
		if err != nil {
			return err
		}
		if now.GetStatus().GetVersion() != sent {
			if err := g.Send(&kithv1.WatchBagResponse{Bag: now}); err != nil {
				return err
			}
			sent = now.GetStatus().GetVersion()
		}
		if bagEnded(now.GetStatus().GetState()) {
			return nil
		}
		select {
		case <-changed:
		case <-g.Context().Done():
			return g.Context().Err()
		}
	}
}

func (b *fakeBags) ListTasks(_ context.Context, r *kithv1.ListTasksRequest) (*kithv1.ListTasksResponse, error) {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	bag, err := b.find(r.GetBagId())
	if err != nil {
		return nil, err
	}
	list := &kithv1.ListTasksResponse{}
	from := 0
	_, _ = fmt.Sscan(r.GetPageToken(), &from)
	for _, t := range bag.chosen(r.GetIndices(), r.GetStates())[from:] {
		if len(list.Tasks) == min(b.f.page, int(r.GetPageSize())) {
			list.NextPageToken = fmt.Sprint(from + len(list.Tasks))
			return list, nil
		}
		list.Tasks = append(list.Tasks, proto.CloneOf(t))
	}
	return list, nil
}

func (b *fakeBags) GetTaskOutput(r *kithv1.GetTaskOutputRequest, g grpc.ServerStreamingServer[kithv1.GetTaskOutputResponse]) error {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	bag, err := b.find(r.GetBagId())
	if err != nil {
		return err
	}
	for _, t := range bag.chosen(r.GetIndices(), r.GetStates()) {
		if t.GetOutputLost() {
			why := fmt.Sprintf("task %s_%d: some of its output is lost", r.GetBagId(), t.GetIndex())
			if err := g.Send(&kithv1.GetTaskOutputResponse{Index: t.GetIndex(), Missing: why}); err != nil || !r.GetAllFiles() {
				return err
			}
		}
		paths := []string{orDefault(r.GetPath(), stdoutName)}
		if r.GetAllFiles() {
			paths = []string{"out/data", "stderr", "stdout", "sneaked"}
		}
		for _, path := range paths {
			text, ok := bag.outputs[fmt.Sprint(t.GetIndex(), path)]
			switch {
			case !ok && r.GetAllFiles():
				continue
			case !ok:
				if err := g.Send(&kithv1.GetTaskOutputResponse{Index: t.GetIndex(), Path: path, Missing: fmt.Sprintf("task %s_%d has not ended", r.GetBagId(), t.GetIndex())}); err != nil {
					return err
				}
				continue
			}
			half := len(text) / 2 // so that there are several pieces
			for _, p := range []*kithv1.GetTaskOutputResponse{{Data: []byte(text[:half])}, {Data: []byte(text[half:]), Offset: int64(half)}} {
				p.Index, p.Path = t.GetIndex(), path
				if err := g.Send(p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// act changes tasks and returns the state of the bag then.
func (b *fakeBags) act(id string, do func(*fakeBag) error) (state kithv1.BagStatus_State, err error) {
	b.f.change(func() {
		var bag *fakeBag
		if bag, err = b.find(id); err == nil {
			if err = do(bag); err == nil {
				bag.update()
				state = bag.bag.GetStatus().GetState()
			}
		}
	})
	return state, err
}

func (b *fakeBags) CancelBag(_ context.Context, r *kithv1.CancelBagRequest) (*kithv1.CancelBagResponse, error) {
	state, err := b.act(r.GetBagId(), func(bag *fakeBag) error {
		if bagEnded(bag.bag.GetStatus().GetState()) {
			return siteError(codes.FailedPrecondition, "bag "+r.GetBagId()+": bag has ended", "BAG_ENDED", 0)
		}
		for _, t := range bag.chosen(r.GetIndices(), nil) {
			switch t.GetState() {
			case kithv1.Task_STATE_WAITING:
				t.State = kithv1.Task_STATE_CANCELLED
			case kithv1.Task_STATE_AT_SITE:
				t.State = kithv1.Task_STATE_STOPPING
			}
		}
		return nil
	})
	return &kithv1.CancelBagResponse{State: state}, err
}

func (b *fakeBags) HoldBag(_ context.Context, r *kithv1.HoldBagRequest) (*kithv1.HoldBagResponse, error) {
	state, err := b.act(r.GetBagId(), func(bag *fakeBag) error {
		bag.bag.Status.State = kithv1.BagStatus_STATE_HELD
		return nil
	})
	return &kithv1.HoldBagResponse{State: state}, err
}

func (b *fakeBags) ReleaseBag(_ context.Context, r *kithv1.ReleaseBagRequest) (*kithv1.ReleaseBagResponse, error) {
	state, err := b.act(r.GetBagId(), func(bag *fakeBag) error {
		bag.bag.Status.State = kithv1.BagStatus_STATE_OPEN
		return nil
	})
	return &kithv1.ReleaseBagResponse{State: state}, err
}

func (b *fakeBags) RetryTasks(_ context.Context, r *kithv1.RetryTasksRequest) (*kithv1.RetryTasksResponse, error) {
	count := int64(0)
	state, err := b.act(r.GetBagId(), func(bag *fakeBag) error {
		states := []kithv1.Task_State{kithv1.Task_STATE_FAILED}
		if r.GetIndices() != "" {
			states = nil
		}
		for _, t := range bag.chosen(r.GetIndices(), states) {
			t.State, t.Ending, t.ExitCode = kithv1.Task_STATE_WAITING, 0, 0
			count++
		}
		if count == 0 {
			return siteError(codes.FailedPrecondition, "bag "+r.GetBagId()+": no task has failed; name tasks by their indices to run them again", "NO_TASK_FAILED", 0)
		}
		return nil
	})
	return &kithv1.RetryTasksResponse{State: state, TaskCount: count}, err
}

// end ends tasks of a bag: all with the exit code, and perhaps with output that is lost.
func (b *fakeBags) end(id, indices string, code int32, lost bool) error {
	_, err := b.act(id, func(bag *fakeBag) error {
		for _, t := range bag.chosen(indices, nil) {
			t.State, t.Ending, t.SiteId, t.RunCount = kithv1.Task_STATE_COMPLETED, kithv1.Task_ENDING_SUCCESS, "uni-b", 1
			t.StartTime, t.RunTime, t.CpuTime, t.MaxRssBytes = timestamppb.New(fakeTime), durationpb.New(3e9), durationpb.New(2e9), 4<<20
			t.OutputLost = lost
			if code != 0 {
				t.State, t.Ending, t.ExitCode = kithv1.Task_STATE_FAILED, kithv1.Task_ENDING_FAILURE, code
			}
			bag.outputs[fmt.Sprint(t.GetIndex(), stdoutName)] = fmt.Sprintf("out of %d\n", t.GetIndex())
			bag.outputs[fmt.Sprint(t.GetIndex(), "out/data")] = fmt.Sprintf("data of %d\n", t.GetIndex())
			if code != 0 {
				bag.outputs[fmt.Sprint(t.GetIndex(), stderrName)] = "oh no\n"
			}
		}
		return nil
	})
	return err
}

// CheckPolicies gives requirements the value false, decided by all of it, and concurrency its
// text, at a host that has asked unless its rank is 2. Of sites that are "false" none is offered anything.
func (b *fakeBags) CheckPolicies(_ context.Context, r *kithv1.CheckPoliciesRequest) (*kithv1.CheckPoliciesResponse, error) {
	p := r.GetPolicies()
	if bag, err := b.find(r.GetBagId()); err == nil && p == nil {
		p = bag.bag.GetPolicies()
	}
	h := &kithv1.HostPolicies{SiteId: "uni-b", Node: "n1", Asked: p.GetRank() != "2", Offered: p.GetSites() != "false"}
	if strings.HasPrefix(p.GetRequirements(), "wrong") {
		return nil, siteError(codes.InvalidArgument, "it is wrong", "INVALID_ARGUMENT", 0, &errdetails.BadRequest_FieldViolation{
			Field: "policies.requirements", Description: "line 1 column 1: undeclared reference\n    wrong > 1\x1b\n    ^",
		})
	}
	if p.GetRequirements() != "" {
		h.Values = append(h.Values, &kithv1.PolicyValue{Policy: "requirements", Value: "false", Part: p.GetRequirements()})
	}
	if p.GetConcurrency() != "" {
		h.Values = append(h.Values, &kithv1.PolicyValue{Policy: "concurrency", Value: p.GetConcurrency()})
	}
	if p.GetRank() != "" {
		h.Values = append(h.Values, &kithv1.PolicyValue{Policy: "rank", Value: "UNDEFINED: bag.mean_run is not known", Undefined: true})
	}
	return &kithv1.CheckPoliciesResponse{Hosts: []*kithv1.HostPolicies{h}, HostsLeftOut: int32(max(0, len(p.GetRank())-3))}, nil
}

func (b *fakeBags) SetBagBudget(_ context.Context, r *kithv1.SetBagBudgetRequest) (*kithv1.SetBagBudgetResponse, error) {
	bag, err := b.find(r.GetBagId())
	if err != nil {
		return nil, err
	}
	bag.bag.BudgetProcessorSeconds = r.GetBudgetProcessorSeconds()
	bag.bag.Status.UsedProcessorSeconds = 4500
	return &kithv1.SetBagBudgetResponse{Bag: bag.bag}, nil
}

func (b *fakeBags) SetBagPolicies(_ context.Context, r *kithv1.SetBagPoliciesRequest) (*kithv1.SetBagPoliciesResponse, error) {
	bag, err := b.find(r.GetBagId())
	if err == nil {
		bag.bag.Policies = r.GetPolicies()
	}
	return &kithv1.SetBagPoliciesResponse{Etag: "1"}, err
}
