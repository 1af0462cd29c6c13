package members

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"kith/store/blobstore"
)

// pair returns the two ends of a TCP connection.
func pair(t *testing.T) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	come := make(chan net.Conn, 1)
	go func() {
		c, _ := l.Accept()
		come <- c
	}()
	if here, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	there = <-come
	t.Cleanup(func() {
		here.Close()  //nolint:errcheck // a connection of this test
		there.Close() //nolint:errcheck // likewise
	})
	return here, there
}

// What a client says first is heard, nothing is answered, and the handshake that follows finds
// every byte.
func TestHello(t *testing.T) {
	t.Parallel()
	here, there := pair(t)
	client := tls.Client(here, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"one", "two"}}) //nolint:gosec // nothing is proved
	failed := make(chan error, 1)
	go func() { failed <- client.Handshake() }()
	offered, again, err := Hello(t.Context(), there)
	if err != nil || !slices.Equal(offered, []string{"one", "two"}) {
		t.Fatalf("%v, %v", offered, err)
	}
	read := make([]byte, 6)
	if _, err := io.ReadFull(again, read); err != nil || read[0] != 22 || read[5] != 1 {
		t.Errorf("the connection begins with % x, %v, and not with a ClientHello", read, err)
	}
	select {
	case err := <-failed:
		t.Errorf("the client was answered: %v", err)
	default:
	}
}

func TestHelloThatIsNone(t *testing.T) {
	t.Parallel()
	here, there := pair(t)
	fmt.Fprint(here, "GET / HTTP/1.1\r\n\r\n")
	if _, _, err := Hello(t.Context(), there); !errors.Is(err, ErrHello) {
		t.Errorf("%v", err)
	}
	_, silent := pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Hello(ctx, silent); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that says nothing: %v", err)
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{nil, ErrNotLeading, errors.New("no")} {
		here, there := pair(t)
		said := Call{Purpose: ForSocket, Cluster: [16]byte{1, 2}, From: "alice", UID: 1000}
		heard, answered := make(chan Call, 1), make(chan struct{})
		go func() {
			defer close(answered)
			c, err := ReadCall(there)
			if err != nil {
				t.Error(err)
			}
			heard <- c
			if err := Answer(there, refusal); err != nil {
				t.Error(err)
			}
		}()
		err := Begin(here, said)
		got := <-heard
		<-answered // who answers has not done with the connection when the caller has the answer
		if got != said {
			t.Errorf("heard %+v, said %+v", got, said)
		}
		switch {
		case refusal == nil && err != nil, refusal != nil && err == nil:
			t.Errorf("refused with %v, the caller has %v", refusal, err)
		case errors.Is(refusal, ErrNotLeading) != errors.Is(err, ErrNotLeading):
			t.Errorf("refused with %v, the caller has %v", refusal, err)
		}
	}
	here, there := pair(t)
	here.Write([]byte{9, 1})     //nolint:errcheck // a connection of this test
	here.Write(make([]byte, 30)) //nolint:errcheck // likewise
	if _, err := ReadCall(there); !errors.Is(err, ErrRefused) {
		t.Errorf("another version: %v", err)
	}
}

// site is a leader with its store and other members with theirs.
type site struct {
	t      *testing.T
	leader *blobstore.Store
	copies *Copies
	stores map[string]*blobstore.Store
	rest   []string // have no vote

	mu   sync.Mutex
	away map[string]bool
}

func newSite(t *testing.T, names ...string) *site {
	s := &site{t: t, stores: make(map[string]*blobstore.Store), away: make(map[string]bool)}
	for _, name := range names {
		s.stores[name] = s.open(name, nil)
	}
	s.copies = &Copies{
		Others: func() (voters, rest []string) {
			return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(s.rest, n) }), s.rest
		}, Dial: s.dial, Log: slog.New(slog.DiscardHandler),
	}
	t.Cleanup(s.copies.Close)
	s.leader = s.open("leader", s.copies)
	return s
}

func (s *site) open(name string, copies blobstore.Copies) *blobstore.Store {
	b, err := blobstore.Open(blobstore.Config{Dir: filepath.Join(s.t.TempDir(), name), Copies: copies})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { b.Close() }) //nolint:errcheck // a store of this test
	return b
}

func (s *site) dial(_ context.Context, name string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away[name] {
		return nil, errors.New("away")
	}
	here, there := net.Pipe()
	go Serve(context.Background(), there, func(f func(Store) error) error {
		s.mu.Lock()
		away := s.away[name]
		s.mu.Unlock()
		if away {
			return ErrAway
		}
		return f(s.stores[name])
	})
	return here, nil
}

func (s *site) setAway(name string, away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away[name] = away
}

// What a put has acknowledged a majority has, and one that a majority cannot have is refused.
func TestAMajorityHasEveryChunk(t *testing.T) {
	t.Parallel()
	s := newSite(t, "b", "c")
	sum, err := s.leader.Put([]byte("first"))
	if err != nil || !s.stores["b"].Has(sum) && !s.stores["c"].Has(sum) {
		t.Fatalf("nobody else has it: %v", err)
	}
	s.setAway("b", true)
	if sum, err = s.leader.Put([]byte("second")); err != nil || !s.stores["c"].Has(sum) {
		t.Fatalf("with one away: %v", err)
	}
	s.setAway("c", true)
	if _, err := s.leader.Put([]byte("third")); !errors.Is(err, blobstore.ErrCopies) {
		t.Errorf("with both away: %v", err)
	}
	// It is here, and nobody was told so: to put it again is no acknowledgement either.
	if _, err := s.leader.Put([]byte("third")); !errors.Is(err, blobstore.ErrCopies) {
		t.Errorf("again: %v", err)
	}
	s.setAway("c", false)
	if sum, err := s.leader.Put([]byte("third")); err != nil || !s.stores["c"].Has(sum) {
		t.Errorf("with one back: %v", err)
	}
}

// One that catches up does not count.
func TestAMemberWithoutAVoteDoesNotCount(t *testing.T) {
	t.Parallel()
	s := newSite(t, "b", "c", "d")
	s.rest = []string{"d"}
	s.setAway("b", true)
	s.setAway("c", true)
	if _, err := s.leader.Put([]byte("x")); !errors.Is(err, blobstore.ErrCopies) {
		t.Errorf("%v", err)
	}
}

// A leader that has not got a chunk reads it from those that have.
func TestChunksAreBrought(t *testing.T) {
	t.Parallel()
	s := newSite(t, "b", "c")
	sum, err := s.stores["c"].Put([]byte("from another leader"))
	if err != nil {
		t.Fatal(err)
	}
	if data, err := s.leader.Get(sum); err != nil || string(data) != "from another leader" || !s.leader.Has(sum) {
		t.Errorf("%q, %v", data, err)
	}
	none := blobstore.SumOf([]byte("none"))
	if _, err := s.leader.Get(none); !errors.Is(err, blobstore.ErrNotFound) || errors.Is(err, blobstore.ErrCopies) {
		t.Errorf("what nobody has: %v", err)
	}
	s.setAway("b", true)
	if _, err := s.leader.Get(none); !errors.Is(err, blobstore.ErrCopies) {
		t.Errorf("what one that is away may have: %v", err)
	}
}

// A member that was away, or has an empty disk, gets all; what records name the leader gets, too.
func TestRepair(t *testing.T) {
	t.Parallel()
	s := newSite(t, "b", "c")
	s.setAway("b", true)
	var sums []blobstore.Sum
	for i := range 3 {
		sum, err := s.leader.Put(bytes.Repeat([]byte{byte(i)}, 1000))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
	}
	s.setAway("b", false)
	lost, err := s.stores["c"].Put([]byte("named by a record"))
	if err != nil {
		t.Fatal(err)
	}
	live := func(yield func(blobstore.Sum, error) bool) { yield(lost, nil) }
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	failed, err := s.copies.repair(ctx, s.leader, live, "")
	if err != nil || len(failed) > 0 {
		t.Fatal(err, failed)
	}
	for _, sum := range append(sums, lost) {
		if !s.stores["b"].Has(sum) || !s.leader.Has(sum) {
			t.Errorf("chunk %s: b has it: %v, the leader: %v", sum.Short(), s.stores["b"].Has(sum), s.leader.Has(sum))
		}
	}
	// Without knowing what records name nothing goes anywhere.
	broken := errors.New("records cannot be read")
	if _, err := s.copies.repair(ctx, s.leader, func(yield func(blobstore.Sum, error) bool) { yield(blobstore.Sum{}, broken) }, ""); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// A member goes only when the others have what it has.
func TestLevel(t *testing.T) {
	t.Parallel()
	s := newSite(t, "b", "c", "d", "e")
	live := func(func(blobstore.Sum, error) bool) {}
	if err := s.copies.Level(t.Context(), "", "b"); !errors.Is(err, blobstore.ErrCopies) {
		t.Errorf("nobody looks after files: %v", err)
	}
	s.copies.setRound(func(ctx context.Context, but string) (map[string]error, error) {
		return s.copies.repair(ctx, s.leader, live, but)
	})
	if _, err := s.leader.Put([]byte("x")); err != nil {
		t.Fatal(err)
	}
	s.setAway("c", true)
	if err := s.copies.Level(t.Context(), "", "b"); err != nil {
		t.Errorf("d and e are a majority with the leader: %v", err)
	}
	if err := s.copies.Level(t.Context(), "c", ""); !errors.Is(err, blobstore.ErrCopies) {
		t.Errorf("c, which has come, has nothing: %v", err)
	}
	s.setAway("d", true)
	if err := s.copies.Level(t.Context(), "", "b"); !errors.Is(err, blobstore.ErrCopies) {
		t.Errorf("e alone: %v", err)
	}
}
