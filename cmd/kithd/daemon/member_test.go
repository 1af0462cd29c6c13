package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"kith/cmd/kithd/config"
	"kith/cmd/kithd/members"
	"kith/internal/job"
	"kith/internal/scratch"
	"kith/meta/api"
	"kith/meta/trust"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
	"kith/store/boltstore"
	"kith/store/raftstore"
	"kith/store/raftstore/raftlog"
)

// memberSite is a site of several members in this process.
type memberSite struct {
	t    *testing.T
	dir  string
	cfgs map[string]config.Config
	up   map[string]*Member
	ends map[string]func() error
}

// newMemberSite begins a site of which "one" is the first member.
func newMemberSite(t *testing.T) *memberSite {
	t.Helper()
	dir, err := os.MkdirTemp("", "kith-m-") //nolint:usetesting // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) }) //nolint:errcheck // a temporary folder
	s := &memberSite{t: t, dir: dir, cfgs: make(map[string]config.Config), up: make(map[string]*Member), ends: make(map[string]func() error)}
	one := s.config("one")
	if err := os.Mkdir(one.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := trust.Init(one.KeysPath(), "alpha", trust.Options{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := FoundMember(one); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for name := range s.up {
			s.stop(name)
		}
	})
	return s
}

// config returns the configuration of a member.
func (s *memberSite) config(name string) config.Config {
	s.t.Helper()
	if c, ok := s.cfgs[name]; ok {
		return c
	}
	c := config.Default()
	c.Site, c.Data, c.Listen.Address, c.Listen.AllowOwnUID = "alpha", filepath.Join(s.dir, name), scratch.Address(s.t), true
	c.Members.Self, c.Members.Cluster = name, strings.Repeat("a1", 16)
	s.cfgs[name] = c
	return c
}

// copyKeys gives a member the keys of the first one.
func (s *memberSite) copyKeys(name string) {
	s.t.Helper()
	data := s.config(name).Data
	if err := os.Mkdir(data, 0o700); err != nil {
		s.t.Fatal(err)
	}
	one := s.config("one").Data
	if out, err := exec.Command("cp", "-a", filepath.Join(one, "keys"), filepath.Join(one, saltName), data).CombinedOutput(); err != nil { //nolint:gosec // the test's own
		s.t.Fatalf("%v: %s", err, out)
	}
}

func (s *memberSite) start(name string) *Member {
	s.t.Helper()
	m, err := OpenMember(s.config(name), slog.New(slog.NewTextHandler(s.t.Output(), nil)))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- m.Run(ctx, &Reload{}) }()
	s.up[name] = m
	s.ends[name] = func() error {
		cancel()
		return <-over
	}
	return m
}

func (s *memberSite) stop(name string) {
	s.t.Helper()
	if err := s.ends[name](); err != nil {
		s.t.Errorf("member %s: %v", name, err)
	}
	delete(s.up, name)
}

// ask asks a member, at its socket, for the members of the site.
func (s *memberSite) ask(name string) error {
	s.t.Helper()
	conn, err := grpc.NewClient("unix:"+filepath.Join(s.config(name).Data, "kith.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	_, err = kithv1.NewSiteServiceClient(conn).ListMembers(ctx, &kithv1.ListMembersRequest{})
	return err
}

// eventually waits until a member answers as wanted.
func (s *memberSite) eventually(name, what string, ok func(error) bool) {
	s.t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = s.ask(name); ok(err) {
			return
		}
	}
	s.t.Fatalf("member %s: never: %s: %v", name, what, err)
}

func answers(err error) bool { return err == nil }

// Members that lost the majority say so and when to come back; when they have it again they
// answer, whoever is asked.
func TestMembersWithoutAMajority(t *testing.T) {
	t.Parallel()
	s := newMemberSite(t)
	one := s.start("one")
	s.eventually("one", "it leads", answers)
	s.copyKeys("two")
	two := s.start("two")
	if err := one.raft.Add(t.Context(), raftstore.Peer{Name: "two", Address: two.cfg.MemberAddress()}); err != nil {
		t.Fatal(err)
	}
	s.eventually("two", "it brings a client to the leader", answers)
	s.stop("one")
	s.eventually("two", "it says that nobody leads", func(err error) bool {
		st, _ := status.FromError(err)
		return st.Code() == codes.Unavailable && strings.Contains(st.Message(), "must be up, and agree on one") && len(st.Details()) == 2
	})
	s.showsBags("two")
	s.start("one")
	s.eventually("two", "it answers again", answers)
	s.eventually("one", "it answers again", answers)
	s.eventually("two", "what it showed is let go", func(error) bool {
		two.reading.mu.Lock()
		defer two.reading.mu.Unlock()
		return two.reading.engine == nil
	})
}

// showsBags wants that a member without a leader says how old is what it shows of bags, and of jobs.
func (s *memberSite) showsBags(name string) {
	s.t.Helper()
	conn, err := grpc.NewClient("unix:"+filepath.Join(s.config(name).Data, "kith.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	bags, err := kithv1.NewBagServiceClient(conn).ListBags(ctx, &kithv1.ListBagsRequest{})
	if err != nil || bags.GetAsOfTime() == nil {
		s.t.Errorf("bags without a leader: %v, %v", bags, err)
	}
	jobs, err := kithv1.NewJobServiceClient(conn).ListJobs(ctx, &kithv1.ListJobsRequest{})
	if err != nil || jobs.GetAsOfTime() == nil {
		s.t.Errorf("jobs without a leader: %v, %v", jobs, err)
	}
}

// A client that waits for a leader that is paused waits no longer once another one leads: that one takes
// connections, and answers nothing, at whatever step.
func TestAClientDoesNotWaitForAFormerLeader(t *testing.T) {
	t.Parallel()
	s := newMemberSite(t)
	one := s.start("one")
	s.eventually("one", "it leads", answers)
	s.stop("one") // its watch would see that it leads itself
	one.ctx = t.Context()
	for _, c := range []struct {
		silent string
		answer func(net.Conn) error
	}{
		{"before TLS", func(net.Conn) error { return nil }},
		{"after it", func(c net.Conn) error { return tls.Server(c, one.name.ServerTLS()).HandshakeContext(t.Context()) }},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		taken := make(chan error, 1)
		go func() {
			conn, err := l.Accept()
			if err == nil {
				t.Cleanup(func() { conn.Close() }) //nolint:errcheck // the test is over
				err = c.answer(conn)
			}
			taken <- err
		}()
		client, far := net.Pipe()
		t.Cleanup(func() { errors.Join(client.Close(), far.Close()) }) //nolint:errcheck // likewise
		carried := make(chan bool, 1)
		former := raftstore.Peer{Name: "former", Address: l.Addr().String()}
		go func() { carried <- one.carry(client, former, members.Call{Purpose: members.ForPort}) }()
		if err := <-taken; err != nil {
			t.Fatal(err)
		}
		one.dropTunnels(former)
		select {
		case <-carried:
			t.Fatalf("silent %s: it waits no longer for the one that leads", c.silent)
		case <-time.After(100 * time.Millisecond):
		}
		began := time.Now()
		one.dropTunnels(raftstore.Peer{Name: "next", Address: "127.0.0.1:1"})
		if <-carried {
			t.Errorf("silent %s: it was carried", c.silent)
		}
		if took := time.Since(began); took > dialWait/2 {
			t.Errorf("silent %s: it has waited %v", c.silent, took)
		}
	}
}

// Two founded sites are kept apart, and so are members that give another id.
func TestMembersOfTwoClusters(t *testing.T) {
	t.Parallel()
	s := newMemberSite(t)
	one := s.start("one")
	s.eventually("one", "it leads", answers)
	s.copyKeys("other")
	c := s.config("other")
	c.Members.Cluster = strings.Repeat("b2", 16)
	s.cfgs["other"] = c
	other := s.start("other")
	if err := one.raft.Add(t.Context(), raftstore.Peer{Name: "other", Address: other.cfg.MemberAddress()}); !errors.Is(err, raftlog.ErrOtherCluster) {
		t.Errorf("a member of another cluster is added: %v", err)
	}
	s.copyKeys("twice")
	twice := s.config("twice")
	if _, err := FoundMember(twice); err != nil {
		t.Fatal(err)
	}
	m := s.start("twice")
	s.eventually("twice", "it leads a site of its own", answers)
	if err := one.raft.Add(t.Context(), raftstore.Peer{Name: "twice", Address: m.cfg.MemberAddress()}); !errors.Is(err, raftstore.ErrMembership) {
		t.Errorf("a member of a site that was founded anew is added: %v", err)
	}
	s.stop("twice")
	if _, err := FoundMember(twice); !errors.Is(err, raftstore.ErrFounded) {
		t.Errorf("founded twice: %v", err)
	}
}

// A data folder of the other kind is refused: what it has would be left aside.
func TestMembersFolder(t *testing.T) {
	t.Parallel()
	s := newMemberSite(t)
	c := s.config("one")
	c.Members = config.Default().Members
	if _, err := Open(c, slog.New(slog.DiscardHandler)); !errors.Is(err, errHasMember) {
		t.Errorf("a member's folder without members.self: %v", err)
	}
	s.copyKeys("two")
	b, err := boltstore.Open(filepath.Join(s.config("two").Data, boltstore.FileName), job.SiteID("alpha"))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenMember(s.config("two"), slog.New(slog.DiscardHandler)); !errors.Is(err, errHasFacts) {
		t.Errorf("facts of a site of one: %v", err)
	}
}

// Of what was under way when a lead ended nobody is told that it was not done.
func TestTheEndOfALeadPromisesNothing(t *testing.T) {
	t.Parallel()
	st, _ := status.FromError(errLeadOver)
	if st.Code() != codes.Unavailable || len(st.Details()) != 1 || !strings.Contains(st.Message(), "not known") {
		t.Errorf("%v, details %v", st, st.Details())
	}
	if err := memberError(fmt.Errorf("x: %w", raftstore.ErrNotLeading)); !errors.Is(err, api.ErrNoLeader) || !errors.Is(err, raftstore.ErrNotLeading) {
		t.Errorf("%v", err)
	}
}

// voidBatch is one of a lead that is over.
type voidBatch struct{ store.Batch }

func (voidBatch) Empty() bool   { return false }
func (voidBatch) Commit() error { return store.ErrUndecided }

// voidBackend commits what is sealed until it is told that its lead is over.
type voidBackend struct {
	store.Backend
	over chan struct{}
}

func (b voidBackend) Seal(s *store.State) store.Batch {
	select {
	case <-b.over:
		b.Backend.Seal(s)
		return voidBatch{}
	default:
		return b.Backend.Seal(s)
	}
}

// A loop whose facts are void ends, and nothing that it holds leaves.
func TestVoidFactsEndTheLoop(t *testing.T) {
	t.Parallel()
	s := newMemberSite(t)
	c := testConfig(t, "beta")
	bolt, err := boltstore.Open(filepath.Join(t.TempDir(), boltstore.FileName), "beta")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	parts := &leadParts{backend: voidBackend{bolt, over}, port: l, addresses: func() []string { return nil }, members: deskOfMembers{}}
	one := s.start("one")
	parts.copies = one.copies
	d, err := OpenWith(c, slog.New(slog.NewTextHandler(t.Output(), nil)), Options{Host: noHost(), lead: parts})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(d.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	close(over)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = kithv1.NewSiteServiceClient(conn).DrainSite(ctx, &kithv1.DrainSiteRequest{Reason: "test"})
	if st, _ := status.FromError(err); st.Message() != status.Convert(errLeadOver).Message() {
		t.Errorf("the caller is told: %v", err)
	}
	select {
	case <-d.loop.void:
	case <-ctx.Done():
		t.Error("the loop goes on")
	}
	if !store.Void(d.loop.why) {
		t.Errorf("it ended with %v", d.loop.why)
	}
	if err := d.close(0); err != nil {
		t.Error(err)
	}
}
