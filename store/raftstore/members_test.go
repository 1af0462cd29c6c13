package raftstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kith/store"
	"kith/store/codec"
	"kith/store/raftstore/leads"
	"kith/store/raftstore/raftlog"
)

func minute() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// A site of one becomes one of three and is one of one again; nothing is lost on the way.
func TestOneToThreeAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1, nil)
		lead := s.lead()
		state := load(t, lead)
		submit(t, state, 1000)
		committed(t, lead, state)
		for _, name := range []string{"b", "c"} {
			s.open(peer(name))
			if err := lead.m.Add(minute(), peer(name)); err != nil {
				t.Fatal(err)
			}
			if err := lead.m.Add(minute(), peer(name)); err != nil {
				t.Errorf("added again: %v", err)
			}
			submit(t, state, 1000)
			committed(t, lead, state)
		}
		s.same(lead)
		if got := lead.m.Members(); len(got) != 3 || !got[0].Leads || got[1].Leads || !got[2].Votes {
			t.Errorf("members %v", got)
		}
		// Each of three can go, the first one too.
		s.kill("a")
		lead = s.lead()
		state = load(t, lead)
		submit(t, state, 1000)
		committed(t, lead, state)
		s.open(peer("a"))
		s.same(lead)
		// Back to one, which is not the first.
		if lead.m.cfg.Name == "c" {
			if err := lead.m.Transfer(); err != nil {
				t.Fatal(err)
			}
		}
		for len(lead.m.Members()) > 1 {
			lead = s.lead()
			for _, have := range lead.m.Members() {
				if have.Name != "b" {
					if err := lead.m.Remove(have.Name); err != nil && !errors.Is(err, ErrNotLeading) {
						t.Fatal(err)
					}
					if m := s.members[have.Name]; m != nil && have.Name != lead.m.cfg.Name {
						time.Sleep(time.Second)
						if !m.Removed() {
							t.Errorf("%s does not know that it was removed", have.Name)
						}
						s.shut(have.Name)
					}
					break
				}
			}
		}
		lead = s.lead()
		if got := lead.m.Members(); len(got) != 1 || got[0].Name != "b" {
			t.Errorf("members %v", got)
		}
		if err := lead.m.Remove("b"); !errors.Is(err, ErrMembership) {
			t.Errorf("the last one: %v, want ErrMembership", err)
		}
		if n := load(t, lead).JobCount(); n != 4 {
			t.Errorf("%d jobs, want 4", n)
		}
		state = load(t, lead)
		submit(t, state, 1000)
		committed(t, lead, state)
	})
}

// A member is replaced by another one, which gets all by a snapshot if the log has less.
func TestReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 3, func(c *Config) { c.TrailingEntries = 1 })
		lead := s.lead()
		state := load(t, lead)
		for range 10 {
			submit(t, state, 1000)
			committed(t, lead, state)
		}
		if err := lead.m.Snapshot(); err != nil {
			t.Fatal(err)
		}
		dead := s.others(lead.m.cfg.Name)[0]
		s.kill(dead)
		s.open(peer("d"))
		if err := lead.m.Replace(minute(), dead, peer("d")); err != nil {
			t.Fatal(err)
		}
		s.same(lead)
		var names []string
		for _, have := range lead.m.Members() {
			names = append(names, have.Name)
		}
		if len(names) != 3 || slices.Contains(names, dead) || !slices.Contains(names, "d") {
			t.Errorf("members %v", names)
		}
		// The new one counts: with it and one other the site goes on.
		s.kill(lead.m.cfg.Name)
		lead = s.lead()
		state = load(t, lead)
		submit(t, state, 10)
		committed(t, lead, state)
		// One that was removed and does not know cannot disturb, nor lead.
		s.open(peer(dead))
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if _, err := s.members[dead].Lead(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a member that was removed leads: %v", err)
		}
		select {
		case <-lead.Over():
			t.Error("a member that was removed has brought the leader down")
		default:
		}
	})
}

// Members that cannot be added are refused, and nothing changes.
func TestMembersThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 3, nil)
		lead := s.lead()
		follower := s.others(lead.m.cfg.Name)[0]
		before := fmt.Sprint(lead.m.Members())
		m := lead.m
		ctx := minute()
		for name, c := range map[string]struct {
			err  error
			want error
			says string
		}{
			"no name":               {m.Add(ctx, Peer{"", "d:1"}), ErrName, ""},
			"a name with an @":      {m.Add(ctx, Peer{"d@e", "d:1"}), ErrName, ""},
			"a name too long":       {m.Add(ctx, Peer{strings.Repeat("d", 64), "d:1"}), ErrName, "at most 63"},
			"no port":               {m.Add(ctx, Peer{"d", "d"}), ErrName, `"d"`},
			"an address too long":   {m.Add(ctx, Peer{"d", strings.Repeat("d", 300) + ":1"}), ErrName, "at most 255"},
			"its name elsewhere":    {m.Add(ctx, Peer{follower, "elsewhere:1"}), ErrMembership, "remove it first"},
			"another's address":     {m.Add(ctx, Peer{"d", follower + ":1"}), ErrMembership, "remove it first"},
			"nobody there":          {m.Add(ctx, peer("d")), errCut, "add member d at d:1"},
			"at a follower":         {s.members[follower].Add(ctx, peer("d")), ErrNotLeading, "that is " + m.cfg.Name},
			"removed at a follower": {s.members[follower].Remove("a"), ErrNotLeading, "that is " + m.cfg.Name},
			"lead of a follower":    {s.members[follower].Transfer(), ErrNotLeading, "that is " + m.cfg.Name},
			"removed twice":         {m.Remove("nobody"), nil, ""},
		} {
			if !errors.Is(c.err, c.want) || c.err != nil && !strings.Contains(c.err.Error(), c.says) {
				t.Errorf("%s: %v, want %v and %q", name, c.err, c.want, c.says)
			}
		}
		if after := fmt.Sprint(lead.m.Members()); after != before {
			t.Errorf("members %v, were %v", after, before)
		}
	})
}

// Configurations that cannot be are refused, and so are folders.
func TestOpenRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1, nil)
		s.shut("a")
		with := func(f func(c *Config)) Config {
			c := s.config(peer("a"))
			c.Listener = s.net.listen("a:1")
			f(&c)
			return c
		}
		for name, c := range map[string]struct {
			cfg  Config
			want error
			says string
		}{
			"no site":         {with(func(c *Config) { c.Site = "" }), nil, "site"},
			"no cluster":      {with(func(c *Config) { c.Cluster = Cluster{} }), ErrMembership, "no id"},
			"no name":         {with(func(c *Config) { c.Name = "" }), ErrName, ""},
			"a short beat":    {with(func(c *Config) { c.Heartbeat = time.Millisecond }), nil, "at least 50ms"},
			"another site":    {with(func(c *Config) { c.Site = "beta" }), store.ErrOtherSite, c0(s)},
			"another cluster": {with(func(c *Config) { c.Cluster[15] = 1 }), raftlog.ErrOtherCluster, c0(s)},
			"another member":  {with(func(c *Config) { c.Name = "b" }), raftlog.ErrOtherMember, c0(s)},
		} {
			m, err := Open(c.cfg)
			if err == nil {
				m.Close() //nolint:errcheck // it should not have opened
			}
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %v and %q", name, err, c.want, c.says)
			}
		}
		if err := Found(s.config(peer("a")), []Peer{peer("a")}); !errors.Is(err, ErrFounded) {
			t.Errorf("founded again: %v", err)
		}
		cfg := s.config(peer("z"))
		if err := Found(cfg, []Peer{peer("a")}); !errors.Is(err, ErrMembership) {
			t.Errorf("founded without itself: %v", err)
		}
		if _, err := os.Stat(cfg.Folder); err == nil {
			t.Error("what was not founded has a folder")
		}
		s.open(peer("a"))
	})
}

func c0(s *site) string { return s.folder(peer("a")) }

// Members of two sites, or of two clusters of one site, that stand at each other's addresses hear
// who they are and take nothing from each other.
func TestTwoSitesMixedUp(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   error
	}{
		"another site":    {func(c *Config) { c.Site = "beta" }, store.ErrOtherSite},
		"another cluster": {func(c *Config) { c.Cluster = Cluster{9} }, raftlog.ErrOtherCluster},
		"another member":  {func(c *Config) { c.Name = "x" }, raftlog.ErrOtherMember},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, 1, nil)
				lead := s.lead()
				strange := s.config(peer("b"))
				strange.Listener = s.net.listen("b:1")
				c.change(&strange)
				m, err := Open(strange)
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close() //nolint:errcheck // it is a stranger
				err = lead.m.Add(minute(), peer("b"))
				if !errors.Is(err, c.want) || !errors.Is(err, ErrRefused) {
					t.Errorf("%v, want ErrRefused and %v", err, c.want)
				}
				if n := len(lead.m.Members()); n != 1 {
					t.Errorf("%d members", n)
				}
				// Put among the members all the same, it gets nothing.
				if err := lead.m.await(lead.m.raft.AddNonvoter("b", peer("b").serverAddress(), 0, time.Second)); err != nil {
					t.Fatal(err)
				}
				state := load(t, lead)
				submit(t, state, 10)
				committed(t, lead, state)
				time.Sleep(time.Minute)
				if !m.empty() {
					t.Error("it has entries of a site that is not its own")
				}
			})
		})
	}
}

// What is no greeting, of another version, or stops in its midst ends the connection and nothing else.
func TestGreetings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1, nil)
		lead := s.lead()
		good := (&greeting{purpose: forAsk, from: "x", to: "a", whose: snapshotHead{"alpha", cluster}}).marshal()
		later := bytes.Clone(good)
		later[len(greetingMagic)] = greetingVersion + 1
		for name, c := range map[string]struct {
			say  []byte
			want error // nil for no answer
		}{
			"another protocol": {[]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), nil},
			"half":             {good[:len(good)-1], nil},
			"nothing":          {nil, nil},
			"a later version":  {later, store.ErrNewerFormat},
		} {
			conn, err := s.net.dialer("x:1")(context.Background(), "a:1")
			if err != nil {
				t.Fatal(err)
			}
			go conn.Write(c.say) //nolint:errcheck // it may be closed before
			a, err := readAnswer(conn)
			if c.want == nil && err == nil {
				t.Errorf("%s: the answer %+v", name, a)
			}
			if c.want != nil && !errors.Is(a.err(), c.want) {
				t.Errorf("%s: the answer %+v, %v", name, a, err)
			}
			conn.Close() //nolint:errcheck // it is a pipe
		}
		// More than there are places do not keep others out for longer than a greeting may take.
		var silent []net.Conn
		for range maxGreetings + 5 {
			conn, err := s.net.dialer("x:1")(context.Background(), "a:1")
			if err != nil {
				t.Fatal(err)
			}
			silent = append(silent, conn)
		}
		time.Sleep(2 * greetingTime)
		if _, err := lead.m.streams.ask(minute(), peer("a")); err != nil {
			t.Errorf("after silent connections: %v", err)
		}
		for _, conn := range silent {
			conn.Close() //nolint:errcheck // it is a pipe
		}
	})
}

// Batches that are larger than an entry go in parts, and come whole.
func TestBatchOfManyParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 3, nil)
		lead := s.lead()
		state := load(t, lead)
		for range 12 {
			submit(t, state, leads.MaxPart/3)
		}
		large := submit(t, state, 4*leads.MaxPart) // a record of its own
		sealed := lead.Seal(state).(*batch)        //nolint:forcetypeassert // it is ours
		if n := len(leads.Parts(1, 1, sealed.writes)); n < 4 {
			t.Fatalf("%d parts", n)
		}
		if err := sealed.Commit(); err != nil {
			t.Fatal(err)
		}
		s.same(lead)
		for _, name := range s.names() {
			if p, err := (&Lead{m: s.members[name]}).Payload(large); err != nil || len(p) != 4*leads.MaxPart {
				t.Errorf("member %s has a payload of %d bytes, %v", name, len(p), err)
			}
		}
		// Parts of a batch whose last one never came are no part of the next.
		parts := lead.answers.Next([]codec.Write{
			{Table: codec.Jobs, Key: []byte("k1"), Value: bytes.Repeat([]byte("x"), leads.MaxPart)},
			{Table: codec.Jobs, Key: []byte("k2"), Value: bytes.Repeat([]byte("y"), leads.MaxPart)},
		})
		if len(parts) != 2 {
			t.Fatalf("%d parts", len(parts))
		}
		for range 2 {
			if err := lead.m.await(lead.m.raft.Apply(parts[0], time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		submit(t, state, 10)
		committed(t, lead, state)
		if err := lead.m.await(lead.m.raft.Apply(parts[0], time.Second)); err != nil {
			t.Fatal(err)
		}
		again := s.lead() // a lead begins
		f := again.m.raft.Apply(parts[1], time.Second)
		if err := again.m.await(f); err != nil || f.Response() != leads.ErrStale { //nolint:errorlint // it is the answer itself
			t.Errorf("a last part of an earlier lead: %v, %v", err, f.Response())
		}
		s.same(again)
	})
}

// Snapshots and the log stay bounded, and what is in a snapshot is what was there.
func TestSnapshotsByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 3, func(c *Config) { c.SnapshotEntries, c.TrailingEntries = 50, 10 })
		lead := s.lead()
		state := load(t, lead)
		for range 200 {
			submit(t, state, 100)
			committed(t, lead, state)
		}
		time.Sleep(2 * time.Minute)
		for _, name := range s.names() {
			m := s.members[name]
			first, err := m.log.FirstIndex()
			if err != nil || first < 150 {
				t.Errorf("the log of %s begins at %d, %v", name, first, err)
			}
		}
		s.same(lead)
		for _, name := range s.names() {
			s.shut(name)
		}
		for _, p := range s.peers {
			s.open(p)
		}
		s.same(s.lead())
		left, err := filepath.Glob(filepath.Join(s.dir, "*", "facts.*"))
		if err != nil || len(left) != 3 {
			t.Errorf("%d files of facts for 3 members: %v", len(left), left)
		}
	})
}

// A member that is away for a day is a line in the log now and then, not several a second.
func TestLinesOfTheLogArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		var mu sync.Mutex
		s := newSite(t, 3, func(c *Config) {
			c.Logger = slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				return text.Write(b)
			}), nil))
		})
		lead := s.lead()
		s.kill(s.others(lead.m.cfg.Name)[0])
		time.Sleep(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if n := strings.Count(text.String(), "\n"); n == 0 || n > 400 || !strings.Contains(text.String(), "held_back=") {
			t.Errorf("%d lines in ten minutes", n)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Few large batches make a snapshot as many small ones do.
func TestSnapshotOfALargeLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1, func(c *Config) { c.TrailingEntries = 1 })
		lead := s.lead()
		state := load(t, lead)
		for range 5 {
			submit(t, state, 10)
			committed(t, lead, state)
		}
		synctest.Wait()
		lead.m.machine.bytes = snapshotBytes // raft's goroutine waits for entries
		submit(t, state, 10)
		committed(t, lead, state)
		time.Sleep(time.Second)
		if first, err := lead.m.log.FirstIndex(); err != nil || first < 5 {
			t.Errorf("the log begins at entry %d, %v", first, err)
		}
	})
}

// A record that no log takes is refused before raft hears of it, and the lead goes on.
func TestRecordThatIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 1, nil)
		lead := s.lead()
		large := &batch{lead, []codec.Write{{Table: codec.Jobs, Key: []byte("k"), Value: make([]byte, raftlog.MaxEntry)}}}
		if err := large.Commit(); err == nil || store.Void(err) || !strings.Contains(err.Error(), "at most") {
			t.Errorf("%v, want a plain error that names the bound", err)
		}
		state := load(t, lead)
		submit(t, state, 10)
		committed(t, lead, state)
	})
}
