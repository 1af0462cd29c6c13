package api

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
)

var _ kithv1.JobServiceServer = (*Server)(nil)

// SubmitJob implements kithv1.JobServiceServer.
func (s *Server) SubmitJob(ctx context.Context, r *kithv1.SubmitJobRequest) (*kithv1.SubmitJobResponse, error) {
	if r.GetValidateOnly() {
		return s.preview(ctx, r)
	}
	if err := checkSubmission(r); err != nil {
		return nil, err
	}
	hash, err := bodyHash(r.GetJob())
	if err != nil {
		return nil, err
	}
	if len(r.GetJob().GetInputs()) > 0 {
		if id, _, err := s.submitted(ctx, r.GetRequestId(), hash, false); err != nil || id != (job.ID{}) {
			return &kithv1.SubmitJobResponse{JobId: id.String()}, err
		}
	}
	ev, err := s.submission(ctx, r)
	if err != nil {
		return nil, err
	}
	ev.BodyHash = hash
	reply, err := s.Node.Ask(ctx, func(token uint64) meta.Event {
		ev.Token = token
		return ev
	})
	if err != nil {
		return nil, fieldOfDependency("job", err)
	}
	s.told(ctx, "job submitted", "job_id", reply.Job.String())
	return &kithv1.SubmitJobResponse{JobId: reply.Job.String()}, nil
}

// checkSubmission returns all that is wrong with a request by itself.
func checkSubmission(r *kithv1.SubmitJobRequest) error {
	if err := knownRequest(r); err != nil {
		return err
	}
	f := checkJob(r.GetJob())
	checkRequestID(&f, r.GetRequestId())
	f.addNew(breaches(r))
	if len(f) > 0 {
		return f
	}
	return nil
}

// submission makes the event of a request that was checked, and stores its files.
func (s *Server) submission(ctx context.Context, r *kithv1.SubmitJobRequest) (meta.Submit, error) {
	j := r.GetJob()
	if j.GetName() == "" {
		j.Name = defaultName(j)
	}
	payload, err := s.payload(ctx, j)
	if err != nil {
		return meta.Submit{}, err
	}
	after, err := afterOf(j.GetAfter(), j.GetSingleton())
	if err != nil {
		return meta.Submit{}, err
	}
	caller := identity.From(ctx)
	return meta.Submit{
		After: after,
		Actor: caller.Actor, Request: requestOf(j, s.userOf(caller)), RequestID: r.GetRequestId(), Payload: payload, Hold: j.GetHold(),
	}, nil
}

func defaultName(j *kithv1.Job) string {
	if len(j.GetCommand()) == 0 {
		return "script"
	}
	name := path.Base(j.GetCommand()[0])
	return name[:min(len(name), job.MaxNameLength)]
}

// payload is what a host needs to run the job.
func (s *Server) payload(ctx context.Context, j *kithv1.Job) ([]byte, error) {
	kept := proto.CloneOf(j)
	kept.Script, kept.Inputs = "", nil
	kept.After, kept.Singleton = nil, false // the origin's
	set, err := s.packInputs(ctx, j)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(&kithv1.Payload{Job: kept, Inputs: set})
}

// GetJob implements kithv1.JobServiceServer.
func (s *Server) GetJob(ctx context.Context, r *kithv1.GetJobRequest) (*kithv1.GetJobResponse, error) {
	j, err := s.getJob(ctx, r)
	if err != nil {
		return nil, err
	}
	return &kithv1.GetJobResponse{Job: j}, nil
}

func (s *Server) getJob(ctx context.Context, r *kithv1.GetJobRequest) (*kithv1.Job, error) {
	id, err := jobID(r.GetJobId())
	if err != nil {
		return nil, err
	}
	var view meta.JobView
	var starts map[job.AttemptID]job.Time
	var missing error
	err = s.Node.Look(ctx, func(now job.Time, v meta.Views) {
		if view, missing = v.JobView(id); missing != nil {
			return
		}
		view.Levels = v.LevelsOf(now, &view.Record)
		if waits(view) {
			starts = v.Starts(now, mostStarts)
		}
	})
	if err = cmp.Or(err, missing); err != nil {
		return nil, err
	}
	d, err := s.Node.Decision(id)
	if err != nil {
		return nil, err
	}
	j := briefJob(&view)
	fullStatus(j.Status, &view, d)
	j.Status.EstimatedStartTime = stamp(starts[view.Record.AttemptID()])
	j.Status.Forecast, j.Status.ForecastPending = startForecast(view.Record.Forecast, view.Record.State, &view.Forecasts), view.Foresees
	p, err := s.readPayload(id)
	if err != nil {
		return nil, err
	}
	fillFromPayload(j, p)
	if j.GetStatus().GetOutcome() != nil {
		files, err := s.Node.Outputs(id)
		if err != nil {
			return nil, err
		}
		declared := j.GetOutputs()
		if !view.Record.State.Terminal() { // they are on their way
			files, declared = view.Record.Outcome.Files, nil
		}
		fillOutputs(j.GetStatus().GetOutcome(), declared, files)
	}
	return j, nil
}

func (s *Server) readPayload(id job.ID) (*kithv1.Payload, error) {
	b, err := s.Node.Payload(id)
	if err != nil {
		return nil, err
	}
	var p kithv1.Payload
	if err := proto.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("payload of job %v: %w", id, err)
	}
	return &p, nil
}

// view returns the durable view of a job.
func (s *Server) view(ctx context.Context, id job.ID) (meta.JobView, error) {
	var view meta.JobView
	var err error
	if e := s.Node.Look(ctx, func(_ job.Time, v meta.Views) { view, err = v.JobView(id) }); e != nil {
		return view, e
	}
	return view, err
}

func jobID(text string) (job.ID, error) {
	id, err := job.ParseID(text)
	if err != nil {
		return id, &FieldError{Field: "job_id", Reason: err.Error(), Err: err}
	}
	return id, nil
}

// act carries out one of the three acts on a job.
func (s *Server) act(ctx context.Context, text, requestID string, make func(token uint64, id job.ID) meta.Event) (kithv1.JobStatus_State, error) {
	var f fieldErrors
	checkRequestID(&f, requestID)
	id, err := jobID(text)
	if err == nil && len(f) > 0 {
		err = f
	}
	if err != nil {
		return 0, err
	}
	reply, err := s.Node.Ask(ctx, func(token uint64) meta.Event { return make(token, id) })
	if err != nil {
		return 0, err
	}
	return stateMessage(reply.State), nil
}

// CancelJob implements kithv1.JobServiceServer.
func (s *Server) CancelJob(ctx context.Context, r *kithv1.CancelJobRequest) (*kithv1.CancelJobResponse, error) {
	if err := checkReason(r.GetReason()); err != nil {
		return nil, err
	}
	state, err := s.act(ctx, r.GetJobId(), r.GetRequestId(),
		func(token uint64, id job.ID) meta.Event {
			return meta.Cancel{Token: token, Job: id, Actor: identity.From(ctx).Actor, Reason: r.GetReason()}
		})
	if err != nil {
		return nil, err
	}
	s.told(ctx, "job cancelled", "job_id", r.GetJobId(), "reason", r.GetReason(), "state", state.String())
	return &kithv1.CancelJobResponse{State: state}, nil
}

// HoldJob implements kithv1.JobServiceServer.
func (s *Server) HoldJob(ctx context.Context, r *kithv1.HoldJobRequest) (*kithv1.HoldJobResponse, error) {
	state, err := s.act(ctx, r.GetJobId(), r.GetRequestId(),
		func(token uint64, id job.ID) meta.Event {
			return meta.Hold{Token: token, Job: id, Actor: identity.From(ctx).Actor}
		})
	if err != nil {
		return nil, err
	}
	s.told(ctx, "job held", "job_id", r.GetJobId())
	return &kithv1.HoldJobResponse{State: state}, nil
}

// CheckpointJob implements kithv1.JobServiceServer.
func (s *Server) CheckpointJob(ctx context.Context, r *kithv1.CheckpointJobRequest) (*kithv1.CheckpointJobResponse, error) {
	state, err := s.act(ctx, r.GetJobId(), r.GetRequestId(),
		func(token uint64, id job.ID) meta.Event {
			return meta.CheckpointJob{Token: token, Job: id, Actor: identity.From(ctx).Actor}
		})
	if err != nil {
		return nil, err
	}
	s.told(ctx, "job asked to save and go on", "job_id", r.GetJobId())
	return &kithv1.CheckpointJobResponse{State: state}, nil
}

// ReleaseJob implements kithv1.JobServiceServer.
func (s *Server) ReleaseJob(ctx context.Context, r *kithv1.ReleaseJobRequest) (*kithv1.ReleaseJobResponse, error) {
	state, err := s.act(ctx, r.GetJobId(), r.GetRequestId(),
		func(token uint64, id job.ID) meta.Event {
			return meta.Release{Token: token, Job: id, Actor: identity.From(ctx).Actor}
		})
	if err != nil {
		return nil, err
	}
	s.told(ctx, "job released", "job_id", r.GetJobId())
	return &kithv1.ReleaseJobResponse{State: state}, nil
}

// followWait is how long a reader that follows waits for a job to write
// something before it looks again where the job is.
const followWait = time.Second

// Bounds of reading output. A reader that does not read keeps a piece of the file and
// what is being sent of it, so that is small.
const (
	mostReaders    = 512
	mostReadersOne = 256 // of one address
	outputPart     = 32 << 10
)

// GetJobOutput implements kithv1.JobServiceServer.
func (s *Server) GetJobOutput(r *kithv1.GetJobOutputRequest, g grpc.ServerStreamingServer[kithv1.GetJobOutputResponse]) error {
	id, err := jobID(r.GetJobId())
	if err != nil {
		return err
	}
	name := r.GetPath()
	if name == "" {
		name = transfer.Stdout
	}
	offset := r.GetOffset()
	if offset < 0 {
		return &FieldError{Field: "offset", Reason: fmt.Sprintf("%d: must not be negative", offset)}
	}
	if r.GetAttempt() < 0 {
		return &FieldError{Field: "attempt", Reason: fmt.Sprintf("%d: must not be negative", r.GetAttempt())}
	}
	host := callerHost(g.Context())
	if err := enter(&s.readers, "calls that read output", host); err != nil {
		return err
	}
	defer s.readers.Leave(host)
	wait := time.Duration(0) // without following, the call gets what is there
	if r.GetFollow() {
		wait = followWait
	}
	for {
		data, end, err := s.Output.Read(g.Context(), job.AttemptID{Job: id, Number: uint32(r.GetAttempt())}, name, offset, wait)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(data, outputPart) {
			if err := g.Send(&kithv1.GetJobOutputResponse{Data: part, Offset: offset}); err != nil {
				return err
			}
			offset += int64(len(part))
		}
		// A piece that is not full ends at the end of the file as it is now; a
		// job that writes all the time would keep the reader for ever.
		if end || !r.GetFollow() && len(data) < transfer.MaxPieceBytes {
			return nil
		}
		if err := g.Context().Err(); err != nil {
			return err
		}
	}
}
