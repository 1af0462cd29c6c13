package bench

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	"kith/internal/pause"
	"kith/meta/trust"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/testbed/check/flood"
	"kith/testbed/local"
)

// Targets of what a flood does to others.
const (
	// FloodTarget is how many times longer than undisturbed 99 of 100 answers may take.
	FloodTarget = 2.0
	// FloodMemoryTarget is by how many MiB the site may grow.
	FloodMemoryTarget = 64.0
	// timesCap is by how much a flood is beyond what a site takes.
	timesCap = 10
	// floodRounds is how often it is quiet and there is a flood, in turns.
	floodRounds = 6
)

// FloodKinds returns the names of all kinds of floods, the one that only computes first.
func FloodKinds() []string {
	names := []string{flood.Computing}
	for _, k := range flood.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// flood measures what others get of a site while one of its peers floods it, for each
// kind of flood at a federation of its own. The same is measured without a flood in turns
// with it, so that what else the machine does is in both.
func (b *bench) flood(ctx context.Context) error {
	if b.insecure {
		return errors.New("a flood is that of a peer with keys: leave --insecure-loopback out")
	}
	kinds := FloodKinds()
	for _, name := range kinds {
		if len(b.opt.Floods) > 0 && !slices.Contains(b.opt.Floods, name) {
			continue
		}
		b.observe("flood: " + name)
		if err := b.floodOf(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// floodOf measures one kind.
func (b *bench) floodOf(ctx context.Context, kind string) (err error) {
	f, stop, err := b.federation(ctx, []local.Site{{Name: "alpha"}, {Name: "beta"}, {Name: "gamma"}})
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // what was measured counts
	alpha, beta, gamma := f.Nodes()[0], f.Nodes()[1], f.Nodes()[2]
	// What the two say comes from here and from the flood.
	beta.Stop()
	gamma.Stop()
	h, err := newHonest(ctx, alpha, gamma)
	if err != nil {
		return err
	}
	defer h.close()
	o := flood.Order{
		Kind: kind, Site: alpha.Name, Address: alpha.Address, SiteKeys: alpha.Config.KeysPath(),
		As: beta.Name, Keys: beta.Config.KeysPath(), From: "127.0.0.2",
	}
	for _, k := range flood.Kinds() {
		if k.Name == kind {
			o.PerSecond = timesCap * k.Cap
		}
	}
	p, err := flood.NewProcess(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	var quiet, beside samples
	if err := h.measure(ctx, b.opt.FloodTime/2, &samples{}); err != nil { // it warms up
		return err
	}
	idle, err := resident(alpha.PID())
	if err != nil {
		return err
	}
	var peak float64
	var sent int64
	var spent [2]time.Duration // processor time of the site, without a flood and with one
	for range floodRounds {
		before, err0 := computed(alpha.PID())
		err := h.measure(ctx, b.opt.FloodTime, &quiet)
		between, err1 := computed(alpha.PID())
		if err := errors.Join(err, err0, err1, p.Begin()); err != nil {
			return err
		}
		err = h.measure(ctx, b.opt.FloodTime, &beside)
		memory, err0 := resident(alpha.PID())
		after, err1 := computed(alpha.PID())
		peak = max(peak, memory)
		spent[0], spent[1] = spent[0]+between-before, spent[1]+after-between
		if sent, err = endOf(p, errors.Join(err, err0, err1)); err != nil {
			return err
		}
	}
	long := floodRounds * b.opt.FloodTime.Seconds()
	if kind != flood.Computing {
		b.add(kind+": sent", float64(sent)/long, "/s")
	}
	b.add(kind+": processor time of the site in a second", 1000*spent[1].Seconds()/long, "ms")
	b.add(kind+": the same, undisturbed", 1000*spent[0].Seconds()/long, "ms")
	for w := range whats {
		before, during := quiet.p99(w), beside.p99(w)
		b.add(fmt.Sprintf("%s: %s, 99 of 100, undisturbed", kind, whatNames[w]), milliseconds(before), "ms")
		b.addTarget(fmt.Sprintf("%s: the same, how much longer", kind), during.Seconds()/before.Seconds(), "times", FloodTarget, true)
	}
	b.addTarget(kind+": memory over idle", max(0, peak-idle), "MiB", FloodMemoryTarget, true)
	return nil
}

func endOf(p *flood.Process, err error) (int64, error) {
	sent, e := p.End()
	return sent, errors.Join(err, e)
}

// What honest ones ask.
const (
	submits = iota
	looks
	asks
	whats
)

var whatNames = [whats]string{"SubmitJob of a user", "GetSite of a user", "question of a peer"}

// samples are how long answers took, by what was asked.
type samples [whats][]time.Duration

func (s *samples) p99(what int) time.Duration {
	slices.Sort(s[what])
	return quantile(s[what], 0.99)
}

// honest is a user with a token at the port of a site, and one of its peers.
type honest struct {
	user, peer *grpc.ClientConn
	jobs       kithv1.JobServiceClient
	sites      kithv1.SiteServiceClient
	stream     flood.Stream
	answers    chan uint64 // to the peer's questions; closed when the stream has ended
	ended      error       // why the stream has ended; set before answers is closed
	query      uint64
	operator   *local.Node
	blocker    string
}

// newHonest makes both. The site is kept busy by a job, so that none that is submitted
// starts.
func newHonest(ctx context.Context, site, as *local.Node) (*honest, error) {
	h := &honest{operator: site, answers: make(chan uint64, 16)}
	endpoint, err := as.Endpoint()
	if err != nil {
		return nil, err
	}
	if h.blocker, err = block(ctx, site); err != nil {
		return nil, err
	}
	t, err := site.Trust.CreateToken(ctx, &kithv1.CreateTokenRequest{User: "ann", Lifetime: durationpb.New(time.Hour)})
	if err != nil {
		return nil, err
	}
	if h.user, err = asUser(site, t.GetToken()); err != nil {
		return nil, err
	}
	h.jobs, h.sites = kithv1.NewJobServiceClient(h.user), kithv1.NewSiteServiceClient(h.user)
	target := flood.Target{Site: job.SiteID(site.Name), Address: site.Address, As: endpoint}
	if h.peer, err = flood.Dial(target); err != nil {
		return nil, err
	}
	if h.stream, _, err = flood.Join(ctx, h.peer, target, uint64(time.Now().UnixNano())); err != nil { //nolint:gosec // after 1970
		return nil, err
	}
	go h.listen()
	return h, nil
}

// asUser returns a connection to the port of a site that brings a token with each call.
func asUser(n *local.Node, token string) (*grpc.ClientConn, error) {
	b, err := trust.OwnBundle(n.Config.KeysPath())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	for _, ca := range b.CAs {
		roots.AddCert(ca)
	}
	return grpc.NewClient("passthrough:///"+n.Address, grpc.WithPerRPCCredentials(bearer(token)),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, ServerName: n.Name, RootCAs: roots})))
}

// bearer is a token that goes with each call.
type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (bearer) RequireTransportSecurity() bool { return true }

// listen reads the answers to the peer.
func (h *honest) listen() {
	defer close(h.answers)
	for {
		r, err := h.stream.Recv()
		if err != nil {
			h.ended = err
			return
		}
		for _, m := range r.GetFrame().GetMessages() {
			if a := m.GetStartAnswer(); a != nil {
				h.answers <- a.GetQuery()
			}
		}
	}
}

func (h *honest) close() {
	for _, c := range []*grpc.ClientConn{h.user, h.peer} {
		if c != nil {
			c.Close()
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	h.operator.Jobs.CancelJob(ctx, &kithv1.CancelJobRequest{JobId: h.blocker}) //nolint:errcheck // its site ends, and it with its walltime
}

// measure asks for a while, the three beside each other, and adds how long answers took.
func (h *honest) measure(ctx context.Context, length time.Duration, s *samples) error {
	until := time.Now().Add(length)
	var wg sync.WaitGroup
	var errs [whats]error
	for what, ask := range [whats]func(context.Context) error{h.submit, h.look, h.ask} {
		wg.Go(func() {
			for errs[what] == nil && time.Now().Before(until) {
				began := time.Now()
				errs[what] = patiently(ctx, ask)
				s[what] = append(s[what], time.Since(began))
				pause.For(ctx, 5*time.Millisecond)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// patiently asks until there is another answer than to come back later: the time for
// all of it counts.
func patiently(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := ask(ctx)
		if status.Code(err) != codes.ResourceExhausted || !pause.For(ctx, 20*time.Millisecond) {
			return err
		}
	}
}

// submit submits a job that waits.
func (h *honest) submit(ctx context.Context) error {
	_, err := h.jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{Job: &kithv1.Job{
		Name: "honest", Command: []string{"/bin/true"}, Processors: 1, Walltime: durationpb.New(time.Hour), Copies: 1,
	}})
	return err
}

func (h *honest) look(ctx context.Context) error {
	_, err := h.sites.GetSite(ctx, &kithv1.GetSiteRequest{})
	return err
}

// ask asks the site when a copy would start there.
func (h *honest) ask(ctx context.Context) error {
	h.query++
	err := h.stream.Send(&kithv1.ConnectRequest{Frame: &kithv1.Frame{Messages: []*kithv1.PeerMessage{{Message: &kithv1.PeerMessage_StartQuery{StartQuery: &kithv1.StartQuery{
		Query: h.query, Request: &kithv1.CopyRequest{Processors: 1, WalltimeNs: int64(time.Minute)},
	}}}}}})
	if err != nil && !errors.Is(err, io.EOF) { // EOF: who reads is told why
		return err
	}
	for {
		select {
		case query, ok := <-h.answers:
			switch {
			case !ok: // without its code: over this stream nothing is asked again
				return fmt.Errorf("the stream of the honest peer has ended: %s", h.ended.Error())
			case query == h.query:
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
