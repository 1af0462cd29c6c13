package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/api"
	"kith/meta/policy"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched"
	"kith/store"
)

// errReading is returned for what a member that only reads cannot do.
var errReading = errors.New("a member without a leader only shows jobs")

// reading is the site as a member shows it while none leads: the facts that it has, and how old
// they are. Nothing in it is changed, nothing is sent. It is safe for use by several goroutines.
type reading struct {
	store.Backend
	m     *Member
	users *api.Server

	mu     sync.Mutex
	at     uint64       // the entry of the log up to which engine knows
	engine *meta.Engine // nil before it is needed
	latest job.Time     // among the facts
}

var _ api.Node = (*reading)(nil)

// asOf returns when this member last knew all that the site had.
func (r *reading) asOf() time.Time {
	if heard := r.m.raft.HeardLeader(); !heard.IsZero() {
		return heard
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest.Wall()
}

// Look implements api.Node.
func (r *reading) Look(_ context.Context, look func(now job.Time, v meta.Views)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := job.Instant(time.Now())
	switch applied := r.m.raft.Applied(); {
	case applied == 0:
		return fmt.Errorf("%w: %s; it has nothing of the site yet", api.ErrNoLeader, r.m.leaderlessText())
	case r.engine == nil || r.at != applied:
		engine, latest, err := r.load(now)
		if err != nil {
			return fmt.Errorf("%w: %s; its facts cannot be shown: %w", api.ErrNoLeader, r.m.leaderlessText(), err)
		}
		r.engine, r.at, r.latest = engine, applied, latest
	}
	look(max(now, r.latest), r.engine.Views())
	return nil
}

// load makes an engine of the facts. What it would have done is not done.
func (r *reading) load(now job.Time) (*meta.Engine, job.Time, error) {
	state, err := r.Load()
	if err != nil {
		return nil, 0, err
	}
	cfg := r.m.config()
	mc := cfg.MetaConfig()
	mc.Policies, mc.BootID = policy.New(), nothing{}.BootID()
	site, err := noHost().Site()
	if err != nil {
		return nil, 0, err
	}
	latest := state.Site().Latest
	engine, err := meta.New(mc, state, site)
	if err != nil {
		return nil, 0, err
	}
	engine.Restore(max(now, latest), nil)
	return engine, latest, nil
}

// forget lets go of the engine, unless it is in use: a member leads.
func (r *reading) forget() {
	if r.mu.TryLock() {
		r.engine = nil
		r.mu.Unlock()
	}
}

// Glance implements api.Node.
func (r *reading) Glance(ctx context.Context, look func(now job.Time, v meta.Views)) error {
	return r.Look(ctx, look)
}

// Ask implements api.Node.
func (r *reading) Ask(context.Context, func(token uint64) meta.Event) (meta.Reply, error) {
	return meta.Reply{}, errReading
}

// Plan implements api.Node.
func (r *reading) Plan() (sitesched.Config, bool) { return sitesched.Config{}, false }

// Salt implements api.Node.
func (r *reading) Salt() ([]byte, error) { return nil, errReading }

// Describe implements api.Node.
func (r *reading) Describe() api.Description { return api.Description{} }

func newReading(m *Member) *reading {
	r := &reading{Backend: m.raft.Reading(), m: m}
	r.users = api.New(api.Config{Node: r, User: userName(), Logger: m.log})
	return r
}

// serve has a server answer what can be read, for callers at the unix socket: those of the port prove themselves
// by tokens, of which some may have been revoked where this member does not hear of it.
func (r *reading) serve(g *grpc.Server) {
	kithv1.RegisterJobServiceServer(g, r.users)
	kithv1.RegisterBagServiceServer(g, r.users)
	kithv1.RegisterSiteServiceServer(g, r.users)
}

// refusal is what callers are told who ask for more than to read.
func (r *reading) refusal() error {
	return api.Refusal(fmt.Errorf("%w: %s", api.ErrNoLeader, r.m.leaderlessText()))
}

// unary lets what reads through, and says how old the answer is.
func (r *reading) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	caller := callerOf(ctx)
	if caller.Proof != identity.PeerCredential || !r.m.mayRead(ctx) {
		return nil, r.refusal()
	}
	switch info.FullMethod {
	case kithv1.JobService_GetJob_FullMethodName, kithv1.JobService_ListJobs_FullMethodName, kithv1.SiteService_GetSite_FullMethodName,
		kithv1.BagService_GetBag_FullMethodName, kithv1.BagService_ListBags_FullMethodName:
	default:
		return nil, r.refusal()
	}
	resp, err := next(identity.With(ctx, caller), req)
	if err != nil {
		return nil, err
	}
	asOf := timestamppb.New(r.asOf())
	switch m := resp.(type) {
	case *kithv1.GetJobResponse:
		m.AsOfTime = asOf
	case *kithv1.ListJobsResponse:
		m.AsOfTime = asOf
	case *kithv1.GetSiteResponse:
		m.AsOfTime = asOf
	case *kithv1.GetBagResponse:
		m.AsOfTime = asOf
	case *kithv1.ListBagsResponse:
		m.AsOfTime = asOf
	}
	return resp, nil
}

// stream refuses what follows something.
func (r *reading) stream(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error {
	return r.refusal()
}

// mayRead reports whether a caller at the socket may call: jobs run under the account of kithd.
func (m *Member) mayRead(ctx context.Context) bool {
	d := newDoor(m.cfg.Listen.AllowOwnUID, nil, m.border, nil)
	_, err := d.admit(ctx, &tap.Info{})
	return err == nil
}
