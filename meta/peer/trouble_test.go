package peer

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// lines is a log that is read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// with returns the lines that have all of the parts.
func (l *lines) with(parts ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
next:
	for line := range strings.Lines(l.text.String()) {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

func logTo(l *lines) func(*Config) {
	return func(c *Config) {
		c.Redial = 20 * time.Millisecond
		c.Logger = slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
}

// A site that cannot join learns why, once in its log and for as long as it lasts
// from its links, however often it tries.
func TestSiteThatCannotJoinLearnsWhy(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := nobody.Addr().String()
	nobody.Close() // only its address is wanted
	h2 := httptest.NewUnstartedServer(http.NotFoundHandler())
	h2.Config.Protocols = new(http.Protocols)
	h2.Config.Protocols.SetUnencryptedHTTP2(true)
	h2.Start()
	defer h2.Close()
	h1 := httptest.NewServer(http.NotFoundHandler())
	defer h1.Close()
	var refusals lines
	strict := newEnd(t, "strict", 1, echo{}, func(c *Config) {
		logTo(&refusals)(c)
		c.Admit = func(s job.SiteID) bool { return s == "beta" }
	})
	for name, c := range map[string]struct {
		site    job.SiteID
		address string
		want    string
	}{
		"not expected there": {"strict", strict.address, "site strict does not expect this site: its operator must add it to [[peers]] there"},
		"wrong name":         {"other", strict.address, `another site answers at ` + strict.address + `: site alpha looks for "other", this is strict; correct peers.site`},
		"dead port":          {"other", dead, "nothing listens at " + dead},
		"bad host name":      {"other", "no such host:1", "address no such host:1 cannot be resolved"},
		"no port":            {"other", "localhost", "address localhost cannot be resolved"},
		"HTTP/2 but no kithd": {"other", strings.TrimPrefix(h2.URL, "http://"),
			"what answers at " + strings.TrimPrefix(h2.URL, "http://") + " is no kithd"},
		"HTTP/1": {"other", strings.TrimPrefix(h1.URL, "http://"), "what answers at " + strings.TrimPrefix(h1.URL, "http://") + " is no kithd"},
	} {
		t.Run(name, func(t *testing.T) {
			var log lines
			a := newEnd(t, "alpha", 1, echo{}, logTo(&log))
			a.links.Dial(c.site, c.address)
			eventually(t, "it tried six times", func() bool { return len(log.with("dialling peer failed")) >= 6 })
			if why := a.links.Trouble()[c.site]; !strings.HasPrefix(why.Why, c.want) || why.Since.IsZero() {
				t.Errorf("%+v, want %q; %v", why, c.want, log.with("dialling peer failed")[0])
			}
			if warned := log.with("level=WARN"); len(warned) != 1 || !strings.Contains(warned[0], "peer not connected") || !strings.Contains(warned[0], "peer_id="+string(c.site)) {
				t.Errorf("the log has %q", warned)
			}
		})
	}
	if got := refusals.with("level=WARN", "peer refused", "peer_id=alpha", "not a configured peer"); len(got) != 1 {
		t.Errorf("the refusing side logs %q", got)
	}
	// Once it works, nothing is wrong any more.
	b := newEnd(t, "beta", 1, echo{}, nil)
	l, err := net.Listen("tcp", dead)
	if err != nil {
		t.Skip("somebody else took the port:", err)
	}
	l.Close() // only to see that it is free
	b.links.Dial("strict", dead)
	eventually(t, "it knows why", func() bool { return b.links.Trouble()["strict"].Why != "" })
	b.links.Dial("strict", strict.address)
	eventually(t, "connected", connected(b, "beta", strict, "strict"))
	eventually(t, "nothing is wrong", func() bool { return len(b.links.Trouble()) == 0 })
}

func TestSieveLetsThroughAtGrowingIntervals(t *testing.T) {
	var s sieve
	at := time.Unix(1000, 0)
	passed, held := 0, 0
	for range 24 * 60 * 60 { // a refusal every second for a day
		at = at.Add(time.Second)
		if n, ok := s.pass("x", at); ok {
			passed++
			held += n
		}
	}
	if passed != 29 || held+passed > 24*60*60 || held < 22*60*60 {
		t.Errorf("%d lines passed, which tell of %d others", passed, held)
	}
	for i := range 10 * mostLines {
		if _, ok := s.pass(fmt.Sprint(i), at); !ok {
			t.Fatalf("line %d was never seen before", i)
		}
	}
	if len(s) > mostLines {
		t.Errorf("%d lines are remembered", len(s))
	}
}

// Two daemons that connect under one name are a loud error at their peer, which
// names both addresses, and each of them is told.
func TestTwoDaemonsUnderOneName(t *testing.T) {
	for name, other := range map[string]uint32{"copies of one data folder": 7, "the data folders of generations 7 and 9": 9} {
		t.Run(name, func(t *testing.T) {
			var log, logB, logC lines
			a := newEnd(t, "alpha", 1, echo{}, logTo(&log))
			b := newEnd(t, "beta", 1, echo{}, logTo(&logB))
			c := newEnd(t, "beta", 2, echo{}, func(c *Config) { logTo(&logC)(c); c.Generation = other })
			b.links.Dial("alpha", a.address)
			c.links.Dial("alpha", a.address)
			eventually(t, "the peer tells of the clash", func() bool {
				return len(log.with("level=ERROR", "two daemons under one name", "peer_id=beta", "from 127.0.0.1:", " and 127.0.0.1:", name)) == 1
			})
			if clash := a.links.Trouble()["beta"].Clash; !strings.Contains(clash, name) {
				t.Errorf("trouble with beta: %q", clash)
			}
			for _, l := range []*lines{&logB, &logC} {
				eventually(t, "each of the two is told", func() bool { return len(l.with("level=ERROR", "another daemon has this site's name", name)) == 1 })
			}
			eventually(t, "a daemon knows", func() bool { return strings.Contains(b.links.Trouble()["beta"].Clash, name) })
		})
	}
}

// Restarts are no clash, however many.
func TestRestartsAreNoClash(t *testing.T) {
	var c clashes
	now := time.Unix(1000, 0)
	for life := range uint64(100) {
		for range 3 { // a stream breaks and comes back
			now = now.Add(time.Second)
			if text, clash := c.note(&kithv1.Hello{SiteId: "beta", Incarnation: life + 1, Generation: 7}, "10.0.0.1", now); clash || text != "" {
				t.Fatalf("life %d: %q", life, text)
			}
		}
	}
	if n := len(c["beta"].daemons); n > mostDaemons {
		t.Errorf("%d daemons are remembered", n)
	}
	if _, clash := c.note(&kithv1.Hello{SiteId: "beta", Incarnation: 99}, "10.0.0.2", now); !clash {
		t.Error("the daemon of the life before comes back, and nothing is said")
	}
	if len(c.now(now)) != 1 || len(c.now(now.Add(clashShown))) != 0 {
		t.Errorf("told: %v, and later %v", c.now(now), c.now(now.Add(clashShown)))
	}
}
