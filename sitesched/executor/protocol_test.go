package executor

import (
	"testing"

	"kith/sitesched/executor/shim"
)

// startTestShim starts a shim that no worker owns.
func startTestShim(t *testing.T, b *bench) *process {
	t.Helper()
	p, _, err := b.launcher.start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.end(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (b *bench) message(n int, script string) *shim.Run {
	b.t.Helper()
	run, exit, err := b.prepareRun(&attempt{id: number(n), folder: folderName(number(n)), spec: shell(n, script)}, &worker{x: b.Executor})
	if exit != nil || err != nil {
		b.t.Fatal(exit, err)
	}
	run.Sequence = uint64(n)
	return run
}

func tell(t *testing.T, p *process, m shim.Message) {
	t.Helper()
	if err := p.send(m); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, p *process) shim.Message {
	t.Helper()
	m, err := p.receive()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestStopNamesTheJob makes sure that a stop that comes late does not hit the
// next job of the same shim.
func TestStopNamesTheJob(t *testing.T) {
	b := openBench(t, Config{})
	p := startTestShim(t, b)
	tell(t, p, b.message(1, "exit 1"))
	tell(t, p, &shim.Stop{Sequence: 2})
	for range 2 {
		hear(t, p)
	}
	tell(t, p, b.message(2, "sleep 0.1; exit 2"))
	tell(t, p, &shim.Stop{Sequence: 1})
	tell(t, p, &shim.Stop{Sequence: 3})
	if m, ok := hear(t, p).(*shim.Started); !ok || m.Sequence != 2 {
		t.Errorf("%+v", m)
	}
	if m, ok := hear(t, p).(*shim.Ended); !ok || m.Sequence != 2 || m.Exit.Code != 2 || m.Exit.Cause != shim.CauseOwn {
		t.Errorf("%+v", m)
	}
}

func TestShimRefuses(t *testing.T) {
	b := openBench(t, Config{})
	p := startTestShim(t, b)
	for name, spoil := range map[string]func(*shim.Run){
		"above":      func(m *shim.Run) { m.Folder = ".." },
		"elsewhere":  func(m *shim.Run) { m.Folder = "a/b" },
		"nowhere":    func(m *shim.Run) { m.Folder = "" },
		"missing":    func(m *shim.Run) { m.Folder = "missing" },
		"no working": func(m *shim.Run) { m.Directory = "" },
	} {
		run := b.message(1, "echo must not run")
		spoil(run)
		tell(t, p, run)
		if m, ok := hear(t, p).(*shim.Refused); !ok || m.Taken || m.Reason == "" {
			t.Errorf("%s: %+v", name, m)
		}
	}
	tell(t, p, b.message(2, "sleep 0.1"))
	tell(t, p, b.message(3, "echo one at a time"))
	hear(t, p)
	if m, ok := hear(t, p).(*shim.Refused); !ok || m.Sequence != 3 {
		t.Errorf("a second job: %+v", m)
	}
	hear(t, p)
}

// TestShimWithoutDaemon sends nonsense and nothing. The shim has to go.
func TestShimWithoutDaemon(t *testing.T) {
	b := openBench(t, Config{})
	for _, bytes := range []string{"", "\x00\x00\x00\x00", "\xff\xff\xff\xff", "\x01\x00\x00\x00\x63", "\x02\x00"} {
		p, err := b.launcher.spawn()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.conn.WriteString(bytes); err != nil {
			t.Error(err)
		}
		if len(bytes) < 4 {
			_ = p.conn.Close()
		}
		if !p.wait(patience) || !p.status.Exited() || p.status.ExitStatus() != 0 {
			t.Errorf("%q: %s", bytes, describe(p.status))
		}
		if err := p.end(); err != nil {
			t.Error(err)
		}
	}
	p, err := b.launcher.spawn()
	if err != nil {
		t.Fatal(err)
	}
	tell(t, p, &shim.Setup{Version: shim.Version + 1})
	if m, ok := hear(t, p).(*shim.Ready); !ok || m.Fault == "" {
		t.Errorf("another version: %+v", m)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}
