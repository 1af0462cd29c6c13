package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kithv1 "kith/proto/gen/kith/v1"
)

// fakeSite stands for a kithd: it keeps what it is told in memory, answers
// from it, and fails as it is told.
type fakeSite struct {
	kithv1.UnimplementedJobServiceServer
	kithv1.UnimplementedSiteServiceServer
	kithv1.UnimplementedFileServiceServer

	addr string
	bags *fakeBags

	mu       sync.Mutex
	server   *grpc.Server
	served   chan struct{} // closed when the server has stopped
	changed  chan struct{} // closed with every change
	jobs     []*kithv1.Job
	byID     map[string]string // request id to job id
	outputs  map[string][]byte // job id and name
	remote   []*kithv1.HostedCopy
	sites    *kithv1.ListSitesResponse
	history  []*kithv1.PastAttempt
	whatIf   *kithv1.ForecastJobResponse
	harm     *kithv1.GetHarmResponse
	outcomes *kithv1.GetForecastsResponse
	uploads  [][]byte
	pieces   []int // sizes of upload messages
	faults   map[string][]*fault
	requests map[string][]proto.Message
	page     int
}

// fault is how a method fails, a number of times.
type fault struct {
	err   error
	times int
	// silent makes the method hang instead.
	silent bool
	// late makes the fault come after the method was carried out.
	late bool
}

// startFake starts a fake site on a free port of this machine.
func startFake() (*fakeSite, error) {
	f := &fakeSite{
		changed: make(chan struct{}), byID: map[string]string{}, outputs: map[string][]byte{},
		faults: map[string][]*fault{}, requests: map[string][]proto.Message{}, page: 1000,
		sites: &kithv1.ListSitesResponse{},
	}
	f.bags = &fakeBags{f: f}
	return f, f.up()
}

// up starts the server, at the address it had before.
func (f *fakeSite) up() error {
	listener, err := f.listen()
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(f.unary), grpc.StreamInterceptor(f.stream), grpc.WaitForHandlers(true))
	kithv1.RegisterJobServiceServer(server, f)
	kithv1.RegisterBagServiceServer(server, f.bags)
	kithv1.RegisterSiteServiceServer(server, f)
	kithv1.RegisterFileServiceServer(server, f)
	served := make(chan struct{})
	f.mu.Lock()
	f.addr, f.server, f.served = listener.Addr().String(), server, served
	f.mu.Unlock()
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with Stop
	}()
	return nil
}

// listen opens a port that no outgoing connection takes while the site is down:
// it is below the range that systems take those from.
func (f *fakeSite) listen() (listener net.Listener, err error) {
	for range 100 {
		address := f.addr
		if address == "" {
			address = fmt.Sprintf("127.0.0.1:%d", 10000+rand.N(20000))
		}
		if listener, err = net.Listen("tcp", address); err == nil {
			return listener, nil
		}
		if f.addr != "" {
			time.Sleep(20 * time.Millisecond) // another has it for a moment
		}
	}
	return nil, err
}

// down stops the server and breaks all connections.
func (f *fakeSite) down() {
	f.mu.Lock()
	server, served := f.server, f.served
	f.server = nil
	f.mu.Unlock()
	if server != nil {
		server.Stop()
		<-served
	}
}

// change runs a change and wakes those who watch.
func (f *fakeSite) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	close(f.changed)
	f.changed = make(chan struct{})
}

// fail makes the next calls of a method fail.
func (f *fakeSite) fail(method string, ft *fault) {
	f.change(func() { f.faults[method] = append(f.faults[method], ft) })
}

// seen returns the requests of a method so far, and what closes when there may
// be more.
func (f *fakeSite) seen(method string) ([]proto.Message, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests[method]), f.changed
}

// record notes a request and returns the fault that is due.
func (f *fakeSite) record(method string, m proto.Message) *fault {
	var due *fault
	f.change(func() {
		f.requests[method] = append(f.requests[method], m)
		if list := f.faults[method]; len(list) > 0 {
			due = list[0]
			if due.times--; due.times == 0 {
				f.faults[method] = list[1:]
			}
		}
	})
	return due
}

func (ft *fault) happen(ctx context.Context) error {
	if ft == nil {
		return nil
	}
	if ft.silent {
		<-ctx.Done()
		return ctx.Err()
	}
	return ft.err
}

func (f *fakeSite) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	due := f.record(path.Base(info.FullMethod), req.(proto.Message))
	if due != nil && due.late {
		if _, err := handler(ctx, req); err != nil {
			return nil, err
		}
	}
	if err := due.happen(ctx); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

func (f *fakeSite) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	method := path.Base(info.FullMethod)
	if info.IsClientStream {
		if err := f.record(method, &kithv1.UploadFileRequest{}).happen(ss.Context()); err != nil {
			return err
		}
		return handler(srv, ss)
	}
	return handler(srv, &recordingStream{ServerStream: ss, fake: f, method: method})
}

// recordingStream records the request of a server stream.
type recordingStream struct {
	grpc.ServerStream
	fake   *fakeSite
	method string
}

func (s *recordingStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.fake.record(s.method, proto.Clone(m.(proto.Message))).happen(s.Context())
}

// refusal builds an error as a site sends it.
func siteError(code codes.Code, text, reason string, retry time.Duration, fields ...*errdetails.BadRequest_FieldViolation) error {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: reason, Domain: "kith"}}
	if retry > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	}
	if len(fields) > 0 {
		details = append(details, &errdetails.BadRequest{FieldViolations: fields})
	}
	st, err := status.New(code, text).WithDetails(details...)
	if err != nil {
		panic(err)
	}
	return st.Err()
}

func noSuchJob(id string) error {
	return siteError(codes.NotFound, "job "+id+": no such job", "JOB_NOT_FOUND", 0)
}

// find returns a job; the caller holds mu.
func (f *fakeSite) find(id string) (*kithv1.Job, error) {
	for _, j := range f.jobs {
		if j.GetId() == id {
			return j, nil
		}
	}
	return nil, noSuchJob(id)
}

func (f *fakeSite) SubmitJob(_ context.Context, r *kithv1.SubmitJobRequest) (*kithv1.SubmitJobResponse, error) {
	if r.GetValidateOnly() {
		return &kithv1.SubmitJobResponse{Preview: &kithv1.JobStatus{
			Rank: "work", EstimatedStartTime: timestamppb.New(time.Date(2026, 11, 21, 9, 42, 3, 0, time.UTC)),
			Decisions: []*kithv1.SiteDecision{{SiteId: "uni-a", Chosen: true, Weight: 1}, {SiteId: "uni-b", Reason: "draining", Detail: "it is draining"}},
		}}, nil
	}
	id := ""
	f.change(func() {
		if id = f.byID[r.GetRequestId()]; id != "" {
			return
		}
		id = fmt.Sprintf("uni-a.1.%d", len(f.jobs)+1)
		j := proto.CloneOf(r.GetJob())
		j.Id = id
		j.Status = &kithv1.JobStatus{
			State: kithv1.JobStatus_STATE_QUEUED, OriginSiteId: "uni-a", User: "ada", Attempt: 1,
			SubmitTime: timestamppb.New(time.Date(2026, 11, 21, 9, 42, 3, 0, time.UTC)), Reason: "waits at uni-a",
		}
		f.jobs = append(f.jobs, j)
		f.byID[r.GetRequestId()] = id
	})
	return &kithv1.SubmitJobResponse{JobId: id}, nil
}

func (f *fakeSite) GetJob(_ context.Context, r *kithv1.GetJobRequest) (*kithv1.GetJobResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j, err := f.find(r.GetJobId())
	if err != nil {
		return nil, err
	}
	return &kithv1.GetJobResponse{Job: proto.CloneOf(j)}, nil
}

func (f *fakeSite) ListJobs(_ context.Context, r *kithv1.ListJobsRequest) (*kithv1.ListJobsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, _ := strconv.Atoi(r.GetPageToken())
	list := &kithv1.ListJobsResponse{}
	for ; at < len(f.jobs); at++ {
		j := f.jobs[at]
		switch {
		case !r.GetAllStates() && len(r.GetStates()) == 0 && ended(j.GetStatus().GetState()):
			continue
		case len(r.GetStates()) > 0 && !slices.Contains(r.GetStates(), j.GetStatus().GetState()):
			continue
		}
		if len(list.Jobs) == min(f.page, int(r.GetPageSize())) {
			list.NextPageToken = strconv.Itoa(at)
			return list, nil
		}
		list.Jobs = append(list.Jobs, proto.CloneOf(j))
	}
	if r.GetIncludeRemote() {
		list.RemoteCopies = f.remote
	}
	return list, nil
}

func (f *fakeSite) WatchJobs(r *kithv1.WatchJobsRequest, g grpc.ServerStreamingServer[kithv1.WatchJobsResponse]) error {
	sent := map[string]*kithv1.Job{}
	for {
		f.mu.Lock()
		var news []*kithv1.Job
		for _, id := range r.GetJobIds() {
			j, err := f.find(id)
			if err != nil {
				f.mu.Unlock()
				return err
			}
			if sent[id] == nil || !proto.Equal(sent[id], j) {
				sent[id] = proto.CloneOf(j)
				brief := proto.CloneOf(j)
				brief.Script, brief.Inputs, brief.Outputs = "", nil, nil
				if o := brief.GetStatus().GetOutcome(); o != nil {
					o.Outputs = nil
				}
				news = append(news, brief)
			}
		}
		changed := f.changed
		f.mu.Unlock()
		for _, j := range news {
			if err := g.Send(&kithv1.WatchJobsResponse{Job: j, Cursor: "7-1"}); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-g.Context().Done():
			return g.Context().Err()
		}
	}
}

// moveIn moves a job to another state if it is in one of from.
func (f *fakeSite) moveIn(id string, to kithv1.JobStatus_State, code string, from ...kithv1.JobStatus_State) (state kithv1.JobStatus_State, err error) {
	f.change(func() {
		var j *kithv1.Job
		if j, err = f.find(id); err != nil {
			return
		}
		if !slices.Contains(from, j.GetStatus().GetState()) {
			if ended(j.GetStatus().GetState()) {
				code = "JOB_ENDED"
			}
			err = siteError(codes.FailedPrecondition, "job "+id+": it is "+stateWord(j.GetStatus().GetState()), code, 0)
			return
		}
		j.Status.State, j.Status.Reason, state = to, "", to
	})
	return state, err
}

func (f *fakeSite) CancelJob(_ context.Context, r *kithv1.CancelJobRequest) (*kithv1.CancelJobResponse, error) {
	state, err := f.moveIn(r.GetJobId(), kithv1.JobStatus_STATE_CANCELLED, "JOB_ENDED",
		kithv1.JobStatus_STATE_PENDING, kithv1.JobStatus_STATE_HELD, kithv1.JobStatus_STATE_QUEUED)
	return &kithv1.CancelJobResponse{State: state}, err
}

func (f *fakeSite) HoldJob(_ context.Context, r *kithv1.HoldJobRequest) (*kithv1.HoldJobResponse, error) {
	state, err := f.moveIn(r.GetJobId(), kithv1.JobStatus_STATE_HELD, "JOB_STARTED", kithv1.JobStatus_STATE_PENDING, kithv1.JobStatus_STATE_QUEUED)
	return &kithv1.HoldJobResponse{State: state}, err
}

func (f *fakeSite) ReleaseJob(_ context.Context, r *kithv1.ReleaseJobRequest) (*kithv1.ReleaseJobResponse, error) {
	state, err := f.moveIn(r.GetJobId(), kithv1.JobStatus_STATE_PENDING, "JOB_NOT_HELD", kithv1.JobStatus_STATE_HELD)
	return &kithv1.ReleaseJobResponse{State: state}, err
}

func (f *fakeSite) GetJobOutput(r *kithv1.GetJobOutputRequest, g grpc.ServerStreamingServer[kithv1.GetJobOutputResponse]) error {
	name := orDefault(r.GetPath(), stdoutName)
	offset := r.GetOffset()
	for {
		f.mu.Lock()
		j, err := f.find(r.GetJobId())
		data, ok := f.outputs[r.GetJobId()+"/"+name]
		changed, over := f.changed, ended(j.GetStatus().GetState())
		f.mu.Unlock()
		switch {
		case err != nil:
			return err
		case !ok && name != stdoutName && name != stderrName:
			return siteError(codes.NotFound, "job "+r.GetJobId()+" has no "+name+": job has no such output", "OUTPUT_NOT_FOUND", 0)
		}
		for rest := data[min(offset, int64(len(data))):]; len(rest) > 0; {
			piece := rest[:min(len(rest), 4)] // small, so that there are several
			if err := g.Send(&kithv1.GetJobOutputResponse{Data: piece, Offset: offset}); err != nil {
				return err
			}
			offset += int64(len(piece))
			rest = rest[len(piece):]
		}
		if !r.GetFollow() || over {
			return nil
		}
		select {
		case <-changed:
		case <-g.Context().Done():
			return g.Context().Err()
		}
	}
}

func (f *fakeSite) UploadFile(g grpc.ClientStreamingServer[kithv1.UploadFileRequest, kithv1.UploadFileResponse]) error {
	var all bytes.Buffer
	var pieces []int
	for {
		r, err := g.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		all.Write(r.GetData())
		pieces = append(pieces, len(r.GetData()))
	}
	id := ""
	f.change(func() {
		f.uploads = append(f.uploads, all.Bytes())
		f.pieces = append(f.pieces, pieces...)
		id = fmt.Sprintf("upload-%d", len(f.uploads))
	})
	return g.SendAndClose(&kithv1.UploadFileResponse{UploadId: id, SizeBytes: int64(all.Len())})
}

func (f *fakeSite) ListSites(context.Context, *kithv1.ListSitesRequest) (*kithv1.ListSitesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sites, nil
}

// ForecastJob answers with what the script has.
func (f *fakeSite) ForecastJob(context.Context, *kithv1.ForecastJobRequest) (*kithv1.ForecastJobResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.whatIf, nil
}

// GetSite describes the first of the sites.
func (f *fakeSite) GetSite(context.Context, *kithv1.GetSiteRequest) (*kithv1.GetSiteResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &kithv1.GetSiteResponse{Site: f.sites.GetSites()[0]}, nil
}

func (f *fakeSite) ListHistory(_ context.Context, r *kithv1.ListHistoryRequest) (*kithv1.ListHistoryResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, _ := strconv.Atoi(r.GetPageToken())
	to := min(from+f.page, len(f.history))
	resp := &kithv1.ListHistoryResponse{Attempts: f.history[from:to]}
	if to < len(f.history) {
		resp.NextPageToken = strconv.Itoa(to)
	}
	return resp, nil
}

func (f *fakeSite) GetHarm(context.Context, *kithv1.GetHarmRequest) (*kithv1.GetHarmResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.harm, nil
}

func (f *fakeSite) GetForecasts(context.Context, *kithv1.GetForecastsRequest) (*kithv1.GetForecastsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.outcomes, nil
}

func (f *fakeSite) TrustHost(context.Context, *kithv1.TrustHostRequest) (*kithv1.TrustHostResponse, error) {
	return &kithv1.TrustHostResponse{}, nil
}

func (f *fakeSite) DrainSite(context.Context, *kithv1.DrainSiteRequest) (*kithv1.DrainSiteResponse, error) {
	return &kithv1.DrainSiteResponse{RunningAttempts: 3}, nil
}

func (f *fakeSite) ResumeSite(context.Context, *kithv1.ResumeSiteRequest) (*kithv1.ResumeSiteResponse, error) {
	return &kithv1.ResumeSiteResponse{}, nil
}
