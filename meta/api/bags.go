package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"

	"kith/cluster/wire"
	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/tasks"
	kithv1 "kith/proto/gen/kith/v1"
)

var _ kithv1.BagServiceServer = (*Server)(nil)

// SubmitBag implements kithv1.BagServiceServer.
func (s *Server) SubmitBag(ctx context.Context, r *kithv1.SubmitBagRequest) (*kithv1.SubmitBagResponse, error) {
	hash, err := bodyHash(r.GetBag())
	if err != nil {
		return nil, err
	}
	uploaded := r.GetBag().GetTable().GetUploadId() != ""
	if uploaded || len(r.GetBag().GetJob().GetInputs()) > 0 {
		if id, count, err := s.submitted(ctx, r.GetRequestId(), hash, true); err != nil || id != (job.ID{}) {
			return &kithv1.SubmitBagResponse{BagId: id.String(), TaskCount: count}, err
		}
	}
	if uploaded {
		host := callerHost(ctx)
		if err := enter(&s.tables, "tables are being looked at", host); err != nil {
			return nil, err
		}
		defer s.tables.Leave(host)
	}
	caller := identity.From(ctx)
	c, err := checkBagRequest(r, caller.Proof == identity.PeerCredential, s.openUploads(ctx))
	if err != nil {
		return nil, err
	}
	if err := s.checkTexts(ctx, "bag.policies", r.GetBag().GetPolicies()); err != nil {
		return nil, err
	}
	count := int64(c.indices.Count())
	if r.GetValidateOnly() {
		return &kithv1.SubmitBagResponse{TaskCount: count}, nil
	}
	ev, err := s.bagSubmission(ctx, r, c)
	if err != nil {
		return nil, err
	}
	ev.BodyHash = hash
	reply, err := s.Node.Ask(ctx, func(token uint64) meta.Event {
		ev.Token = token
		return ev
	})
	if err != nil {
		return nil, fieldOfDependency("bag", err)
	}
	s.told(ctx, "bag submitted", "bag_id", reply.Job.String(), "tasks", count)
	return &kithv1.SubmitBagResponse{BagId: reply.Job.String(), TaskCount: count}, nil
}

// submitted returns the job or bag that was submitted under a request id, and how many tasks
// a bag has; the zero id for none. What it took along needs not be there any more: an upload
// goes some time after it was named.
func (s *Server) submitted(ctx context.Context, requestID string, hash [32]byte, bag bool) (id job.ID, tasks int64, err error) {
	if requestID == "" {
		return job.ID{}, 0, nil
	}
	e := s.Node.Look(ctx, func(_ job.Time, v meta.Views) {
		if id, err = v.Submitted(requestID, hash, bag); err == nil && bag && id != (job.ID{}) {
			var view meta.BagView
			view, err = v.BagView(id)
			tasks = int64(view.Record.Tasks())
		}
	})
	return id, tasks, errors.Join(e, err)
}

// bodyHash tells a submission from others under the same request id.
func bodyHash(m proto.Message) (hash [32]byte, err error) {
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return hash, fmt.Errorf("body of the request: %w", err)
	}
	return sha256.Sum256(body), nil
}

// bagSubmission makes the event of a request that was checked, and stores its files.
func (s *Server) bagSubmission(ctx context.Context, r *kithv1.SubmitBagRequest, c *checkedBag) (meta.SubmitBag, error) {
	b := r.GetBag()
	j := b.GetJob()
	if j.GetName() == "" {
		j.Name = defaultName(j)
	}
	if j.GetOnSiteLost() == kithv1.Job_ON_SITE_LOST_UNSPECIFIED {
		j.OnSiteLost = kithv1.Job_ON_SITE_LOST_RERUN
	}
	set, table, err := s.packBag(ctx, b)
	if err != nil {
		return meta.SubmitBag{}, err
	}
	p := c.payloadOf(b, table)
	p.Inputs = set
	payload, err := proto.Marshal(p)
	if err != nil {
		return meta.SubmitBag{}, fmt.Errorf("bag: %w", err)
	}
	if err := c.checkBundles(payload); err != nil {
		return meta.SubmitBag{}, err
	}
	after, err := afterOf(b.GetAfter(), b.GetSingleton())
	if err != nil {
		return meta.SubmitBag{}, err
	}
	caller := identity.From(ctx)
	return meta.SubmitBag{
		After: after,
		Actor: caller.Actor, Request: requestOf(j, s.userOf(caller)), Indices: c.indices, RequestID: r.GetRequestId(),
		Payload: payload, Priority: b.GetPriority(), Policies: policyTexts(b.GetPolicies()), MaxRunning: uint32(b.GetMaxRunning()), Budget: uint64(b.GetBudgetProcessorSeconds()), Retries: uint8(b.GetRetries()),
		MaxReplicas: uint8(b.GetMaxReplicas()), TailAt: uint32(b.GetTailAt()), Hold: j.GetHold(),
	}, nil
}

// checkBundles looks whether hosts can be sent, and read, what they are to run.
func (c *checkedBag) checkBundles(payload []byte) error {
	b, err := tasks.Parse(payload, func(*kithv1.File) (io.ReaderAt, error) { return c.table.at, nil })
	if err == nil {
		err = b.CheckBundles(wire.Payload)
	}
	switch {
	case errors.Is(err, tasks.ErrTooLarge):
		return &FieldError{Field: "bag", Reason: err.Error(), Err: err}
	case err != nil:
		return fmt.Errorf("bag: %w", err)
	}
	return nil
}

// GetBag implements kithv1.BagServiceServer.
func (s *Server) GetBag(ctx context.Context, r *kithv1.GetBagRequest) (*kithv1.GetBagResponse, error) {
	id, err := bagID(r.GetBagId())
	if err != nil {
		return nil, err
	}
	view, err := s.bagView(ctx, id)
	if err != nil {
		return nil, err
	}
	b := fullBag(&view)
	data, err := s.Node.Payload(id)
	if err != nil {
		return nil, err
	}
	var p kithv1.BagPayload
	if err := proto.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("payload of bag %v: %w", id, err)
	}
	if err := fillFromBagPayload(b, &p); err != nil {
		return nil, fmt.Errorf("payload of bag %v: %w", id, err)
	}
	b.LeftOut = leftOutOfBag
	return &kithv1.GetBagResponse{Bag: b}, nil
}

// bagView returns the durable view of a bag.
func (s *Server) bagView(ctx context.Context, id job.ID) (view meta.BagView, err error) {
	if e := s.Node.Look(ctx, func(_ job.Time, v meta.Views) { view, err = v.BagView(id) }); e != nil {
		return view, e
	}
	return view, err
}

func bagID(text string) (job.ID, error) {
	id, err := job.ParseID(text)
	if err == nil {
		return id, nil
	}
	reason := err.Error()
	if bag, index, err := job.ParseTaskName(text); err == nil {
		reason = fmt.Sprintf("%s is a task; the bag is %v and its index %d", text, bag, index)
	}
	return id, &FieldError{Field: "bag_id", Reason: reason, Err: err}
}

// bagRequest names a bag, and the request.
type bagRequest interface {
	GetBagId() string
	GetRequestId() string
}

// actOnBag carries out an act on a bag, and returns its state then.
func (s *Server) actOnBag(ctx context.Context, r bagRequest, reason, indices string, make func(token uint64, id job.ID, tasks *job.TaskSet) meta.Event) (kithv1.BagStatus_State, error) {
	var f fieldErrors
	checkRequestID(&f, r.GetRequestId())
	id, err := bagID(r.GetBagId())
	if err == nil && len(f) > 0 {
		err = f
	}
	if err == nil {
		err = checkReason(reason)
	}
	if err != nil {
		return 0, err
	}
	tasks, err := s.tasksOf(ctx, id, indices)
	if err != nil {
		return 0, err
	}
	if _, err := s.Node.Ask(ctx, func(token uint64) meta.Event { return make(token, id, tasks) }); err != nil {
		return 0, err
	}
	view, err := s.bagView(ctx, id)
	return bagState(view.Record.State), err
}

// tasksOf returns the tasks of a bag that indices name, nil for an empty text.
func (s *Server) tasksOf(ctx context.Context, id job.ID, text string) (*job.TaskSet, error) {
	indices, err := parseTasks("indices", text)
	if err != nil || indices == nil {
		return nil, err
	}
	var view meta.BagView
	// Which indices a bag has never changes: to cancel some of its tasks does not wait for the disk.
	if e := s.Node.Glance(ctx, func(_ job.Time, v meta.Views) { view, err = v.BagView(id) }); e != nil {
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	tasks, err := view.Record.Indices.Ordinals(indices)
	if err != nil {
		return nil, &FieldError{Field: "indices", Reason: err.Error(), Err: err}
	}
	return &tasks, nil
}

// CancelBag implements kithv1.BagServiceServer.
func (s *Server) CancelBag(ctx context.Context, r *kithv1.CancelBagRequest) (*kithv1.CancelBagResponse, error) {
	state, err := s.actOnBag(ctx, r, r.GetReason(), r.GetIndices(), func(token uint64, id job.ID, tasks *job.TaskSet) meta.Event {
		return meta.CancelBag{Token: token, Bag: id, Tasks: tasks, Actor: identity.From(ctx).Actor, Reason: r.GetReason()}
	})
	if err != nil {
		return nil, err
	}
	s.told(ctx, "bag cancelled", "bag_id", r.GetBagId(), "indices", shortly(r.GetIndices()), "reason", r.GetReason(), "state", state.String())
	return &kithv1.CancelBagResponse{State: state}, nil
}

// HoldBag implements kithv1.BagServiceServer.
func (s *Server) HoldBag(ctx context.Context, r *kithv1.HoldBagRequest) (*kithv1.HoldBagResponse, error) {
	state, err := s.actOnBag(ctx, r, r.GetReason(), "", func(token uint64, id job.ID, _ *job.TaskSet) meta.Event {
		return meta.HoldBag{Token: token, Bag: id, Actor: identity.From(ctx).Actor, Reason: r.GetReason()}
	})
	if err != nil {
		return nil, err
	}
	s.told(ctx, "bag held", "bag_id", r.GetBagId(), "reason", r.GetReason())
	return &kithv1.HoldBagResponse{State: state}, nil
}

// ReleaseBag implements kithv1.BagServiceServer.
func (s *Server) ReleaseBag(ctx context.Context, r *kithv1.ReleaseBagRequest) (*kithv1.ReleaseBagResponse, error) {
	state, err := s.actOnBag(ctx, r, "", "", func(token uint64, id job.ID, _ *job.TaskSet) meta.Event {
		return meta.ReleaseBag{Token: token, Bag: id, Actor: identity.From(ctx).Actor}
	})
	if err != nil {
		return nil, err
	}
	s.told(ctx, "bag released", "bag_id", r.GetBagId())
	return &kithv1.ReleaseBagResponse{State: state}, nil
}

// RetryTasks implements kithv1.BagServiceServer.
func (s *Server) RetryTasks(ctx context.Context, r *kithv1.RetryTasksRequest) (*kithv1.RetryTasksResponse, error) {
	var f fieldErrors
	if checkRequestID(&f, r.GetRequestId()); len(f) > 0 {
		return nil, f
	}
	id, err := bagID(r.GetBagId())
	if err != nil {
		return nil, err
	}
	view, err := s.bagView(ctx, id)
	if err != nil {
		return nil, err
	}
	if before, done := view.Record.RetryOf(r.GetRequestId()); done {
		return &kithv1.RetryTasksResponse{State: bagState(view.Record.State), TaskCount: int64(before.Tasks)}, nil
	}
	var failed job.TaskSet
	if r.GetIndices() == "" {
		if failed, err = s.failedTasks(ctx, id); err != nil {
			return nil, err
		}
	}
	count := failed.Count()
	state, err := s.actOnBag(ctx, r, "", r.GetIndices(), func(token uint64, id job.ID, tasks *job.TaskSet) meta.Event {
		if tasks == nil {
			tasks = &failed
		}
		count = tasks.Count()
		return meta.RetryTasks{Token: token, Bag: id, Tasks: tasks.Clone(), RequestID: r.GetRequestId(), Actor: identity.From(ctx).Actor}
	})
	if err != nil {
		return nil, err
	}
	s.told(ctx, "tasks run again", "bag_id", r.GetBagId(), "tasks", count)
	return &kithv1.RetryTasksResponse{State: state, TaskCount: int64(count)}, nil
}

// failedTasks returns the tasks of a bag that failed; that there are none is an error.
func (s *Server) failedTasks(ctx context.Context, id job.ID) (tasks job.TaskSet, err error) {
	if e := s.Node.Look(ctx, func(_ job.Time, v meta.Views) { tasks, err = v.FailedTasks(id) }); e != nil {
		return tasks, e
	}
	if err == nil && tasks.Empty() {
		err = fmt.Errorf("bag %v: %w", id, ErrNoneFailed)
	}
	return tasks, err
}

// shortly cuts a long text for the log.
func shortly(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxShortText)], "?")
}
