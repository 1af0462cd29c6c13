package shim

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func fullStart() Start {
	return Start{
		Attempt: "uni-a.k3f9.17-1", Shim: Process{PID: 71, StartTicks: 99, Boot: `a "boot"`},
		At: 1763719200000000000, CPUs: []int{0, 1, 2, 8, 10, 11},
	}
}

func fullRecord() []byte {
	start, exit := fullStart(), fullExit()
	page := appendRecord(nil, &start)
	return append(page[:slotSize:slotSize], appendExitSlot(nil, &exit)...)
}

func TestRecordRoundTrip(t *testing.T) {
	start, exit := fullStart(), fullExit()
	page := appendRecord(nil, &start)
	if len(page) != RecordSize {
		t.Fatalf("a record has %d bytes, want %d", len(page), RecordSize)
	}
	r, err := ParseRecord(page)
	if err != nil || !reflect.DeepEqual(r, Record{Start: start}) {
		t.Errorf("started: %+v, %v", r, err)
	}
	r, err = ParseRecord(fullRecord())
	if err != nil || !reflect.DeepEqual(r, Record{Start: start, Exit: &exit}) {
		t.Errorf("ended: %+v %+v, %v", r, r.Exit, err)
	}
	for _, blank := range [][]byte{nil, {}, BlankRecord(), BlankRecord()[:7]} {
		if _, err := ParseRecord(blank); !errors.Is(err, ErrNoRecord) {
			t.Errorf("blank: %v", err)
		}
	}
}

func TestLongestRecordFits(t *testing.T) {
	start := fullStart()
	start.Attempt = strings.Repeat("x", 255)
	start.CPUs = nil
	for cpu := 0; cpu < maxCPU; cpu += 2 {
		start.CPUs = append(start.CPUs, cpu)
	}
	exit := Exit{Code: -1 << 31, Signal: -1 << 31, Start: -1 << 63, End: -1 << 63, CPUNanos: -1 << 63, MaxRSSBytes: -1 << 63}
	exit.Reason = strings.Repeat(`"`, 1000)
	page := appendRecord(nil, &start)
	slot := appendExitSlot(nil, &exit)
	if len(page) != RecordSize || len(slot) != slotSize {
		t.Fatalf("sizes %d and %d", len(page), len(slot))
	}
	r, err := ParseRecord(append(page[:slotSize], slot...))
	if err != nil || r.Start.CPUs != nil || len(r.Exit.Reason) != MaxReason {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestTornRecords(t *testing.T) {
	whole := fullRecord()
	for n := 1; n < len(whole); n++ {
		r, err := ParseRecord(whole[:n])
		switch {
		case n < slotSize && !errors.Is(err, ErrBadStart):
			t.Fatalf("%d bytes: %+v, %v; want ErrBadStart", n, r, err)
		case n >= slotSize && (!errors.Is(err, ErrBadExit) || r.Start.Attempt == ""):
			t.Fatalf("%d bytes: %+v, %v; want ErrBadExit and the start", n, r, err)
		}
	}
	for i, c := range whole {
		if c == ' ' || c == '\n' {
			continue
		}
		bad := slices.Clone(whole)
		bad[i] ^= 1
		if r, err := ParseRecord(bad); err == nil {
			t.Fatalf("byte %d was changed and not noticed: %+v", i, r)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	start := fullStart()
	f.Add(fullRecord())
	f.Add(appendRecord(nil, &start))
	f.Add(BlankRecord())
	f.Add([]byte("kith-record 1 start attempt=\"x\" sum=0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRecord(b)
		if err != nil {
			return
		}
		again := appendRecord(nil, &r.Start)
		if r.Exit != nil {
			again = append(again[:slotSize], appendExitSlot(nil, r.Exit)...)
		}
		if r2, err := ParseRecord(again); err != nil || !reflect.DeepEqual(r, r2) {
			t.Errorf("%+v came back as %+v, %v", r, r2, err)
		}
	})
}

// FuzzSlots gives the parsers what the checksum would otherwise keep from them.
func FuzzSlots(f *testing.F) {
	f.Add(`kith-record 1 start attempt="x" pid=1 ticks=2 boot="b" at=3 cpus="0-1"`)
	f.Add(`kith-record 1 exit code=0 signal=0 cause=0 start=1 end=2 cpu=3 rss=4 reason="r"`)
	f.Add(`kith-record 1 start attempt="\x"`)
	f.Fuzz(func(t *testing.T, text string) {
		slot := sealSlot([]byte(text), 0)
		var s Start
		if s.parse(slot) && s.Shim.PID <= 0 {
			t.Errorf("a process with number %d", s.Shim.PID)
		}
		var e Exit
		if e.parse(slot) && e.Cause >= causeCount {
			t.Errorf("cause %d", e.Cause)
		}
	})
}

func TestCPULists(t *testing.T) {
	for text, want := range map[string][]int{
		"": nil, "0": {0}, "0-3": {0, 1, 2, 3}, "1,3-4,1023": {1, 3, 4, 1023},
	} {
		got, ok := parseCPUs(text)
		if !ok || !slices.Equal(got, want) {
			t.Errorf("parseCPUs(%q) = %v, %v", text, got, ok)
		}
		if back := string(appendCPUs(nil, want)); back != text {
			t.Errorf("%v reads %q, want %q", want, back, text)
		}
	}
	for _, text := range []string{",", "1,", "-", "1-", "-1", "3-1", "1,1", "0-2,2", "1024", "0-99999999999", "x", " 1"} {
		if got, ok := parseCPUs(text); ok {
			t.Errorf("parseCPUs(%q) = %v", text, got)
		}
	}
}
