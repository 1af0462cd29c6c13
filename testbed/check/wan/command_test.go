package wan

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseCommand(t *testing.T) {
	for line, want := range map[string]command{
		"cut alpha beta":               {verb: "cut", scope: Between("alpha", "beta")},
		" cut  alpha\tbeta reset ":     {verb: "cut", scope: Between("alpha", "beta"), mode: Reset},
		"cut alpha beta oneway":        {verb: "cut", scope: OnlyFrom("alpha", "beta")},
		"cut * beta oneway":            {verb: "cut", scope: OnlyFrom("", "beta")},
		"cut alpha *":                  {verb: "cut", scope: Around("alpha")},
		"cut all reset":                {verb: "cut", mode: Reset},
		"cut * *":                      {verb: "cut"},
		"heal all":                     {verb: "heal"},
		"heal a b":                     {verb: "heal", scope: Between("a", "b")},
		"delay alpha beta 20ms":        {verb: "delay", scope: Between("alpha", "beta"), delay: 20 * time.Millisecond},
		"delay all 0":                  {verb: "delay"},
		"jitter alpha beta 1us oneway": {verb: "jitter", scope: OnlyFrom("alpha", "beta"), delay: time.Microsecond},
		"rate alpha beta 10M":          {verb: "rate", scope: Between("alpha", "beta"), rate: 10_000_000},
		"rate alpha beta 5k oneway":    {verb: "rate", scope: OnlyFrom("alpha", "beta"), rate: 5_000},
		"rate all 1G":                  {verb: "rate", rate: 1_000_000_000},
		"status":                       {verb: "status"},
		"help":                         {verb: "help"},
	} {
		if got, err := parseCommand(line); err != nil || got != want {
			t.Errorf("parseCommand(%q) = %+v, %v; want %+v", line, got, err, want)
		}
	}
	for _, line := range []string{
		"", " ", "Cut a b", "cut", "cut a", "cut a b c", "cut a b oneway oneway", "cut a b reset reset", "cut all oneway", "cut a/b c",
		"heal", "heal a b reset", "heal all all", "delay a b", "delay a b 20", "delay a b -1ms", "delay a b 2h", "delay a b 1ns", "delay 20ms",
		"rate a b", "rate a b -1", "rate a b 1T", "rate a b 1kk", "rate a b 99999999999G", "status all", "help me", "cut a b\x00",
	} {
		if got, err := parseCommand(line); !errors.Is(err, ErrBadCommand) {
			t.Errorf("parseCommand(%q) = %+v, %v; want ErrBadCommand", line, got, err)
		}
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, line := range []string{"cut alpha beta", "heal all", "delay alpha beta 20ms", "rate * b 10M oneway", "status"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c, err := parseCommand(line)
		if err != nil {
			if !errors.Is(err, ErrBadCommand) {
				t.Errorf("parseCommand(%q) returned %v", line, err)
			}
			return
		}
		if c.delay < 0 || c.delay > maxDelay || c.rate < 0 {
			t.Errorf("parseCommand(%q) = %+v", line, c)
		}
		if c.verb == "heal" { // A scope reads back as it is written.
			again, err := parseCommand("heal " + c.scope.String())
			if err != nil || again.scope != c.scope {
				t.Errorf("the scope of %q is %q, which reads as %+v, %v", line, c.scope, again.scope, err)
			}
		}
	})
}

func TestDo(t *testing.T) {
	p := startProxy(t, newSite(t, echo), nil)
	for line, want := range map[string]error{
		"cut alpha gamma":             ErrNoLink,
		"heal gamma *":                ErrNoLink,
		"delay gamma alpha 1ms":       ErrNoLink,
		"cut all reset":               nil,
		"heal all":                    nil,
		"hello":                       ErrBadCommand,
		"cut alpha * oneway":          nil,
		"cut alpha beta oneway reset": ErrOneWayReset,
	} {
		if text, err := p.Do(line); !errors.Is(err, want) || text != "" {
			t.Errorf("Do(%q) = %q, %v; want %v", line, text, err, want)
		}
	}
	for _, err := range []error{
		p.SetDelay(Everything(), -1), p.SetJitter(Everything(), time.Hour), p.SetRate(Everything(), -1),
	} {
		if !errors.Is(err, ErrBadValue) {
			t.Errorf("got %v, want ErrBadValue", err)
		}
	}
	if _, err := p.Addr("beta", "alpha"); !errors.Is(err, ErrNoLink) {
		t.Errorf("Addr returned %v, want ErrNoLink", err)
	}
}

// TestControlTranscript talks to a proxy as a script does.
func TestControlTranscript(t *testing.T) {
	beta := newSite(t, echo)
	for _, address := range []string{"127.0.0.1:0", "unix:" + filepath.Join(t.TempDir(), "control")} {
		p := startProxy(t, beta, func(c *Config) { c.Control = address })
		conn, err := net.Dial(p.ControlAddr().Network(), p.ControlAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // The test is over.
		lines := bufio.NewScanner(conn)
		for _, c := range []struct{ say, want string }{
			{"delay alpha beta 20ms", "ok"},
			{"jitter alpha beta 1ms oneway", "ok"},
			{"rate beta alpha 10M oneway", "ok"},
			{"cut beta alpha oneway", "ok"},
			{"status", fmt.Sprintf("link alpha beta listen=%s target=%s "+
				"out=up out_delay=20ms out_jitter=1ms out_rate=0 out_bytes=0 out_held=0 "+
				"back=cut back_delay=20ms back_jitter=0s back_rate=10000000 back_bytes=0 back_held=0 "+
				"open=0 waiting=0 accepted=0 refused=0 abandoned=0 reset=0\nok", addr(t, p), beta.listener.Addr())},
			{"cut alpha nowhere", "error: alpha nowhere: no link is between these sites"},
			{"nonsense", `error: "nonsense": unknown verb: not a command, try help`},
			{"heal all", "ok"},
		} {
			send(t, conn, c.say+"\n")
			for want := range strings.SplitSeq(c.want, "\n") {
				if !lines.Scan() || lines.Text() != want {
					t.Fatalf("%s: got %q, %v; want %q", c.say, lines.Text(), lines.Err(), want)
				}
			}
		}
	}
}

// addr returns where a proxy listens for beta.
func addr(t *testing.T, p *Proxy) net.Addr {
	t.Helper()
	a, err := p.Addr("alpha", "beta")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestControlOneShot sends a command without waiting and ends its stream, as
// "echo heal all | nc" does.
func TestControlOneShot(t *testing.T) {
	p := startProxy(t, newSite(t, echo), func(c *Config) { c.Control = "127.0.0.1:0" })
	for say, want := range map[string]string{
		"heal all":                            "ok\n",
		"heal all\ncut all\n":                 "ok\nok\n",
		"":                                    "",
		strings.Repeat("x", 3*maxLine) + "\n": "error: a line has at most 1024 bytes\n",
	} {
		conn, err := net.Dial("tcp", p.ControlAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		send(t, conn, say)
		conn.(*net.TCPConn).CloseWrite() //nolint:errcheck // The proxy may have ended it before.
		if got, err := io.ReadAll(conn); string(got) != want && len(say) < maxLine {
			t.Errorf("%q: got %q, %v; want %q", say, got, err, want)
		}
		conn.Close() //nolint:errcheck // The answer was read.
	}
}

func TestControlReplacesAStaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	beta := newSite(t, echo)
	control := func(c *Config) { c.Control = "unix:" + path }
	p := startProxy(t, beta, control)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has the mode %v, %v", info.Mode(), err)
	}
	c := Config{Control: "unix:" + path, Links: []LinkConfig{{From: "a", To: "b", Listen: "127.0.0.1:0", Target: "127.0.0.1:1"}}}
	if second, err := Start(c, nil); err == nil {
		t.Errorf("a second proxy took the socket of a living one: %v", second.Close())
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestControlBoundsScripts(t *testing.T) {
	p := startProxy(t, newSite(t, echo), func(c *Config) { c.Control = "127.0.0.1:0" })
	var idle []net.Conn
	for range maxControllers + 1 {
		conn, err := net.Dial("tcp", p.ControlAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // The test is over.
		idle = append(idle, conn)
	}
	last := idle[maxControllers]
	send(t, last, "heal all\n")
	silent(t, last, 50*time.Millisecond)
	if err := idle[0].Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, last, "ok\n")
}
