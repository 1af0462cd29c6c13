package shim

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

// messages are one of each kind, with every field set.
func messages() []Message {
	return []Message{
		&Setup{
			Version: Version, Directory: "/data/attempts", Process: Process{PID: 71, StartTicks: math.MaxUint64, Boot: "b"},
			Namespaces: true, CgroupDirectory: "/sys/fs/cgroup/x", MaxOutputBytes: 1 << 40, Background: true,
		},
		&Ready{Version: 3, Fault: "f", NoNewPrivileges: "n", Subreaper: "s", CoreLimit: "c", Background: "b"},
		&Run{
			Sequence: 9, Folder: "uni-a.k3f9.17-1", Argv: []string{"sh", "-c", "", "\x00é"}, Env: []string{"A=b"},
			Directory: "/w", WalltimeNanos: math.MaxInt64, GraceNanos: -1, MemoryBytes: 1, Processors: 4,
			CPUs: []int{0, 1, 1023}, Account: &Account{UID: 65534, GID: math.MaxUint32, Groups: []uint32{1, 2}},
		},
		&Run{Folder: "x"},
		&Run{Folder: "x", Argv: []string{"a"}, Env: []string{"A=b"}, Leased: true, Ledger: "12", Entry: 63},
		&Run{Folder: "x", Argv: []string{"a"}, Env: []string{"A=b"}, Estimate: &Estimate{Argv: []string{"sh", "-c", "e"}, Nanos: 5, Known: 1e18, Done: 0.5, Most: math.SmallestNonzeroFloat64}},
		&Started{Sequence: 1, At: math.MinInt64},
		&Stop{Sequence: 300},
		&Ended{Sequence: 2, Exit: fullExit(), Retire: "why"},
		&Refused{Sequence: 2, Taken: true, Reason: "disk full"},
	}
}

func fullExit() Exit {
	return Exit{
		Code: 3, Signal: 9, Cause: CauseMemory, Reason: `out of "memory"`, Start: 1, End: math.MaxInt64,
		CPUNanos: 5, MaxRSSBytes: 1 << 50,
	}
}

func TestMessagesRoundTrip(t *testing.T) {
	var stream []byte
	for _, m := range messages() {
		stream = Append(stream, m)
	}
	for _, want := range messages() {
		got, n, err := Cut(stream, MaxMessage)
		if err != nil {
			t.Fatalf("%T: %v", want, err)
		}
		// A list that is empty comes back as nil or empty alike.
		if !bytes.Equal(Append(nil, got), Append(nil, want)) {
			t.Errorf("%+v came back as %+v", want, got)
		}
		if run, ok := want.(*Run); !ok || run.Account != nil {
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v came back as %+v", want, got)
			}
		}
		stream = stream[n:]
	}
	if len(stream) != 0 {
		t.Errorf("%d bytes are left", len(stream))
	}
}

func TestCutRefuses(t *testing.T) {
	whole := Append(nil, &Started{Sequence: 1, At: 2})
	for n := range whole {
		if _, _, err := Cut(whole[:n], MaxMessage); !errors.Is(err, ErrShort) {
			t.Errorf("%d of %d bytes: %v, want ErrShort", n, len(whole), err)
		}
	}
	if _, _, err := Cut([]byte{0xff, 0xff, 0xff, 0xff, 1}, MaxMessage); !errors.Is(err, ErrTooLong) {
		t.Errorf("a frame of 4 GiB: %v, want ErrTooLong", err)
	}
	for name, frame := range map[string][]byte{
		"nothing in it":     {0, 0, 0, 0},
		"unknown kind":      {1, 0, 0, 0, 99},
		"bytes left over":   append(append([]byte{byte(len(whole) - 3), 0, 0, 0}, whole[4:]...), 0),
		"string too long":   {3, 0, 0, 0, kindReady, 1, 200},
		"list too long":     {6, 0, 0, 0, kindRun, 1, 0, 0xff, 0xff, 0x7f},
		"number too long":   {12, 0, 0, 0, kindStop, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"truth beyond true": append([]byte{5, 0, 0, 0, kindRefused, 1, 2}, 0, 0),
	} {
		if m, _, err := Cut(frame, MaxMessage); err == nil || errors.Is(err, ErrShort) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

func FuzzCut(f *testing.F) {
	for _, m := range messages() {
		f.Add(Append(nil, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, n, err := Cut(b, MaxMessage)
		if err != nil {
			return
		}
		if n > len(b) {
			t.Fatalf("took %d of %d bytes", n, len(b))
		}
		again, _, err := Cut(Append(nil, m), MaxMessage)
		if err != nil || !bytes.Equal(Append(nil, again), Append(nil, m)) {
			t.Errorf("%+v came back as %+v, %v", m, again, err)
		}
	})
}

func TestClipReason(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"fine":                    "fine",
		"two\nlines\x00":          "two?lines?",
		"\xff":                    "?",
		strings.Repeat("x", 256):  strings.Repeat("x", 256),
		strings.Repeat("é", 1000): strings.Repeat("é", 126) + "…",
	} {
		if got := ClipReason(in); got != want {
			t.Errorf("ClipReason(%.20q) = %q, want %q", in, got, want)
		}
	}
}
