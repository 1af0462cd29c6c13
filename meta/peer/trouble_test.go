package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
		"not expected there": {"strict", strict.address, "site strict does not expect this site; its operator must add it to [[peers]] there"},
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
	if got := refusals.with("level=WARN", "peer refused", "peer_id=alpha", "it is not admitted here"); len(got) != 1 {
		t.Errorf("the refusing side logs %q", got)
	}
	// Once it works, nothing is wrong any more.
	b := newEnd(t, "beta", 1, echo{}, nil)
	l, err := net.Listen("tcp", dead)
	if err != nil {
		t.Skip("another process took the port that the rest of this test needs: ", err)
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

// Of what a peer says about this site's data folder the log has a bounded part, and the
// remedy is this site's own.
func TestFolderLineIsBounded(t *testing.T) {
	var lines bytes.Buffer
	tr := troubles{log: slog.New(slog.NewTextHandler(&lines, nil))}
	tr.toldOfFolder("beta", ErrBehind.Error()+strings.Repeat("x", 10_000))
	if text := lines.String(); len(text) > 4*shownBytes || !strings.Contains(text, "kith site forget") {
		t.Errorf("a line of %d bytes: %.300s", len(text), text)
	}
}

// A site that this one refuses, as its data folder is not what it was, is not one that
// refuses this one: whose folder is to be replaced would be said at the wrong site.
func TestWhoseFolderIsOld(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		line bool
		why  string
	}{
		"beta refuses this site": {status.Error(codes.FailedPrecondition, "site alpha: "+ErrBehind.Error()), true, "refused at b:1: site alpha"},
		"its folder is old":      {fmt.Errorf("dial beta at b:1: site beta: %w: stop it", ErrBehind), false, "this site refuses beta: " + ErrBehind.Error() + "; its jobs may run twice: stop it"},
		"it has two folders":     {fmt.Errorf("dial beta at b:1: site beta: %w: stop it", ErrFolder), false, "this site refuses beta: " + ErrFolder.Error() + "; stop the one"},
	} {
		t.Run(name, func(t *testing.T) {
			var lines bytes.Buffer
			l := New(Config{Site: "alpha", Logger: slog.New(slog.NewTextHandler(&lines, nil))}, nil, nil)
			l.told(&dialer{site: "beta"}, false, c.err)
			if got := strings.Contains(lines.String(), "a peer refuses this site"); got != c.line {
				t.Errorf("a peer refuses this site: %v, want %v: %s", got, c.line, lines.String())
			}
			if why, _ := explainAll("beta", []miss{{"b:1", c.err}}, byInvitation); !strings.HasPrefix(why, c.why) || strings.Contains(why, "kith site address") {
				t.Errorf("%q, want %q", why, c.why)
			}
		})
	}
}

// What is to be done about a site that is not found depends on how sites know each other:
// there is no [[peers]] where they met by invitation.
func TestRemediesFitHowSitesMet(t *testing.T) {
	unavailable := func(text string) error {
		return status.Error(codes.Unavailable, "connection error: desc = \""+text+"\"")
	}
	const moved = "if both have moved, say where it is now: kith site address beta HOST:PORT, or kith site invite beta"
	for name, c := range map[string]struct {
		err                error
		why, file, invited string
	}{
		"another site": {fmt.Errorf("it is gamma, not beta: %w", ErrOtherSite), "another site answers at b:1", "correct peers.site or peers.address here", moved},
		"not expected": {status.Error(codes.PermissionDenied, "no"), "site beta does not expect this site", "add it to [[peers]] there", "ask its operator for an invitation"},
		"no kithd":     {status.Error(codes.Unimplemented, "no"), "what answers at b:1 is no kithd", "correct peers.address here", moved},
		"no TLS":       {unavailable("transport: authentication handshake failed: tls: first record does not look like a TLS handshake"), "what answers at b:1 is no kithd", "correct peers.address here", moved},
		"no such host": {unavailable("transport: Error while dialing: dial tcp: lookup b: no such host"), "address b:1 cannot be resolved", "correct peers.address here", moved},
		"nothing":      {unavailable("transport: Error while dialing: dial tcp 1.2.3.4:1: connect: connection refused"), "nothing listens at b:1", "correct peers.address here", moved},
		"silence":      {unavailable("transport: Error while dialing: dial tcp 1.2.3.4:1: i/o timeout"), "nothing answers at b:1", "", moved},
		"no route":     {unavailable("transport: Error while dialing: dial tcp 1.2.3.4:1: connect: no route to host"), "there is no route to b:1", "", moved},
		"of a stranger": {unavailable("transport: authentication handshake failed: site beta was called, it is gamma: another site answers"),
			"what answers at b:1 does not prove that it is beta: site beta was called, it is gamma", "correct peers.address here", moved},
		"revoked there": {unavailable("error reading server preface: remote error: tls: bad certificate"), "refuses the certificate of this site", "[[peers]]", "ask its operator for an invitation"},
		"closed before its name": {unavailable("transport: authentication handshake failed: read tcp 1.2.3.4:5->1.2.3.4:1: read: connection reset by peer"),
			"what answers at b:1 closes connections before it says who it is: it has too many, or is no kithd", "correct peers.address here", moved},
		"closed after its name": {unavailable("error reading server preface: read tcp 1.2.3.4:5->1.2.3.4:1: read: connection reset by peer"),
			"", "", "ask its operator for an invitation"},
		"closed without a word": {unavailable("connection closed before server preface received"), "", "", "ask its operator for an invitation"},
		"closed while written":  {unavailable("write tcp 1.2.3.4:5->1.2.3.4:1: write: broken pipe"), "", "", "ask its operator for an invitation"},
		"anything":              {unavailable("?"), "b:1 cannot be reached", "", moved},
	} {
		for r, remedy := range map[remedies]string{byConfiguration: c.file, byInvitation: c.invited} {
			why, _ := explainAll("beta", []miss{{"b:1", c.err}}, r)
			if !strings.Contains(why, c.why) || !strings.HasSuffix(why, remedy) && !strings.HasSuffix(why, remedy+" there") {
				t.Errorf("%s: %q, want %q and %q", name, why, c.why, remedy)
			}
			if r == byInvitation && strings.Contains(why, "peers") || r == byConfiguration && strings.Contains(why, "kith site") {
				t.Errorf("%s: a remedy of the other kind: %q", name, why)
			}
		}
	}
	// Of several addresses each has its cause, and a remedy is told once; whatever answers, the text is bounded.
	long := strings.Repeat("x", 10_000)
	why, answered := explainAll("beta", []miss{{"b:1", unavailable("connection refused")}, {"b:2", unavailable("i/o timeout")}, {"b:3", status.Error(codes.FailedPrecondition, long)}}, byInvitation)
	if !answered || len(why) > 2*shownBytes || strings.Count(why, moved) != 1 || !strings.Contains(why, "b:1") || !strings.Contains(why, "b:2") {
		t.Errorf("%q", why)
	}
}

// A site that revoked this one answers by an alert of TLS, not by nonsense. The alert may be lost
// with the connection: a site that has proved its name and says nothing may not trust this one.
func TestRefusedCertificateIsExplained(t *testing.T) {
	for _, text := range []string{"error reading server preface: EOF", "connection closed before server preface received", "write: broken pipe"} {
		err := status.Error(codes.Unavailable, `connection error: desc = "`+text+`"`)
		if why, _, answered := explain("beta", "b:1", err, byInvitation); !answered || !strings.HasPrefix(why, "site beta at b:1 closes the connection: it may not trust this site") {
			t.Errorf("%s: %v %q", text, answered, why)
		}
	}
	err := status.Error(codes.Unavailable, `connection error: desc = "error reading server preface: remote error: tls: bad certificate"`)
	if why, _, answered := explain("beta", "b:1", err, byInvitation); !answered || !strings.HasPrefix(why, "site beta at b:1 refuses the certificate of this site") {
		t.Errorf("%v %q", answered, why)
	}
}

// A site that is not admitted is refused with what is to be done here, which depends on
// whether sites know each other by their keys.
func TestRefusedHelloSaysWhatToDo(t *testing.T) {
	for want, proven := range map[string]func(context.Context) (job.SiteID, bool){
		"kith site invite beta": func(context.Context) (job.SiteID, bool) { return "beta", true },
		"[[peers]]":             nil,
	} {
		l := New(Config{Site: "alpha", Logger: slog.New(slog.DiscardHandler), Admit: func(job.SiteID) bool { return false }, Proven: proven}, nil, nil)
		hello := &kithv1.Hello{SiteId: "beta", Version: "v", Protocol: Protocol, PeerSiteId: "alpha"}
		_, err := l.greet(&kithv1.Frame{Messages: []*kithv1.PeerMessage{{Message: &kithv1.PeerMessage_Hello{Hello: hello}}}}, "")
		if !errors.Is(err, ErrNotAdmitted) || !strings.Contains(err.Error(), "site beta") || !strings.Contains(err.Error(), want) ||
			proven != nil && strings.Contains(err.Error(), "peer") {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
