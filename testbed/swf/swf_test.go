package swf

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const sample = `; Version: 2.2
; MaxProcs: 430
; MaxNodes: 338 (batch partition; 512 total)
; Queue:  1 DSI
; Queue:  2 astro
;
; THIS LINE IS NO FIELD: it has blanks in its name

  1 0 588530 937 306 142.00 -1 -1 35100 -1 1 97 -1 307 3 -1 -1 -1
2 164472 -1 75 17 2.5 1024 17 300 2048.5 0 1 2 3 4 5 1 60
`

func TestRead(t *testing.T) {
	want := &Trace{
		Header: []HeaderField{
			{"Version", "2.2", 1}, {"MaxProcs", "430", 2}, {"MaxNodes", "338 (batch partition; 512 total)", 3},
			{"Queue", "1 DSI", 4}, {"Queue", "2 astro", 5},
		},
		Records: []Record{
			{
				Job: 1, Wait: 588530, Run: 937, AllocatedProcessors: 306, AverageCPU: 142, UsedMemory: -1,
				RequestedProcessors: -1, RequestedTime: 35100, RequestedMemory: -1, Status: 1, User: 97, Group: -1,
				Executable: 307, Queue: 3, Partition: -1, PrecedingJob: -1, ThinkTime: -1,
			},
			{
				Job: 2, Submit: 164472, Wait: -1, Run: 75, AllocatedProcessors: 17, AverageCPU: 2.5, UsedMemory: 1024,
				RequestedProcessors: 17, RequestedTime: 300, RequestedMemory: 2048.5, Status: 0, User: 1, Group: 2,
				Executable: 3, Queue: 4, Partition: 5, PrecedingJob: 1, ThinkTime: 60,
			},
		},
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(sample)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain": sample, "gzip": packed.String(), "carriage returns": strings.ReplaceAll(sample, "\n", "\r\n"),
		"no last line end": strings.TrimSuffix(sample, "\n"),
	} {
		got, err := Read(strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	if n := want.MaxProcessors(); n != 430 {
		t.Errorf("MaxProcessors = %d", n)
	}
	if n := (&Trace{Header: want.Header[2:]}).MaxProcessors(); n != 338 {
		t.Errorf("MaxProcessors from MaxNodes = %d", n)
	}
	if n := (&Trace{}).MaxProcessors(); n != 0 {
		t.Errorf("MaxProcessors of nothing = %d", n)
	}
}

func TestReadRefuses(t *testing.T) {
	good := "1 0 0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"
	with := func(field int, value string) string {
		fields := strings.Fields(good)
		fields[field-1] = value
		return "; ok: yes\n" + strings.Join(fields, " ")
	}
	for text, want := range map[string]struct {
		is   error
		says string
	}{
		"1 2 3":                             {ErrLine, "line 1: 3 fields of 18"},
		good + " 19":                        {ErrLine, "line 1: more than 18 fields"},
		with(2, "x"):                        {ErrField, `line 2: field 2 (submit) "x"`},
		with(4, "1.5"):                      {ErrField, `line 2: field 4 (run) "1.5"`},
		with(8, "-2"):                       {ErrField, `field 8 (requested processors) "-2"`},
		with(9, "99999999999999999999"):     {ErrField, `field 9 (requested time) "99999999999999999999"`},
		with(6, "NaN"):                      {ErrField, `field 6 (average cpu) "NaN"`},
		with(7, "1e999"):                    {ErrField, `field 7 (used memory) "1e999"`},
		with(18, strings.Repeat("9", 1000)): {ErrField, `field 18 (think time)`},
		"\n\n" + strings.Repeat("1 ", MaxLineLength): {ErrLine, "line 3: longer than 4096 bytes"},
		strings.Repeat("x", 1<<20):                   {ErrLine, "line 1: longer than 4096 bytes"},
	} {
		_, err := Read(strings.NewReader(text))
		if !errors.Is(err, want.is) || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%.40q: %v, want %q", text, err, want.says)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%.40q: an error of %d bytes", text, len(err.Error()))
		}
	}
	if _, err := Read(strings.NewReader("\x1f\x8bthis is no gzip")); err == nil {
		t.Error("bad gzip is accepted")
	}
}

func TestNormalise(t *testing.T) {
	trace := &Trace{Records: []Record{
		{Job: 1, Submit: 100, Run: 10, RequestedProcessors: 4, RequestedTime: 20, User: 7, Group: 8},
		{Job: 2, Submit: 50, Run: 0, RequestedProcessors: 4, RequestedTime: 20},
		{Job: 3, Submit: 110, Run: -1, RequestedProcessors: 4, RequestedTime: 20},
		{Job: 4, Submit: 120, Run: 10, RequestedProcessors: -1, AllocatedProcessors: 0, RequestedTime: 20},
		{Job: 5, Submit: 130, Run: 10, RequestedProcessors: -1, AllocatedProcessors: 3, RequestedTime: -1},
		{Job: 6, Submit: 140, Run: 10, RequestedProcessors: 9, AllocatedProcessors: 1, RequestedTime: 20},
		{Job: 7, Submit: 150, Run: 30, RequestedProcessors: 8, RequestedTime: 20},
		{Job: 8, Submit: 90, Run: 1, RequestedProcessors: 1, RequestedTime: 2},
		{Job: 9, Submit: 100, Run: 1, RequestedProcessors: 1, RequestedTime: 2},
	}}
	base := []Job{
		{Number: 8, Submit: 0, Run: 1, Request: 2, Processors: 1},
		{Number: 1, Submit: 10, Run: 10, Request: 20, Processors: 4, User: 7, Group: 8},
		{Number: 9, Submit: 10, Run: 1, Request: 2, Processors: 1},
		{Number: 5, Submit: 40, Run: 10, Request: 10, Processors: 3},
		{Number: 7, Submit: 60, Run: 30, Request: 20, Processors: 8},
	}
	counts := Counts{Jobs: 5, NoRun: 2, NoProcessors: 1, TooWide: 1, NoRequest: 1, Overran: 1, OutOfOrder: 1, ShiftSeconds: 90}
	for overrun, change := range map[Overrun]func(*Job){
		Kill: func(j *Job) { j.Run = 20 }, Raise: func(j *Job) { j.Request = 30 }, Keep: func(*Job) {},
	} {
		want := slices.Clone(base)
		change(&want[4])
		got, n := Normalise(trace, 8, overrun)
		if !slices.Equal(got, want) || n != counts {
			t.Errorf("%v: got %+v\n%+v\nwant %+v\n%+v", overrun, got, n, want, counts)
		}
		if back, err := ParseOverrun(overrun.String()); err != nil || back != overrun {
			t.Errorf("ParseOverrun(%v) = %v, %v", overrun, back, err)
		}
	}
	if _, err := ParseOverrun("maim"); !errors.Is(err, ErrOverrun) {
		t.Errorf("ParseOverrun(maim): %v", err)
	}
	if jobs, n := Normalise(&Trace{}, 8, Kill); len(jobs) != 0 || n != (Counts{}) {
		t.Errorf("nothing becomes %v, %+v", jobs, n)
	}
}

// traces is where the public logs lie.
const traces = "../../../shared/traces"

func readFile(t *testing.T, name string) *Trace {
	t.Helper()
	f, err := os.Open(filepath.Join(filepath.FromSlash(traces), filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no %s in %s: this test needs the shared traces beside the repository", name, traces)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	trace, err := Read(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return trace
}

// The logs as published become the very inputs of the oracle schedules.
func TestNormalisePublicLogs(t *testing.T) {
	for _, m := range []struct {
		log, normalised string
		processors      int64
		jobs            int
	}{
		{"CTC-SP2-1996-3.1-cln.swf.gz", "oracle/ctc.swf.gz", 338, 0},
		{"CTC-SP2-1996-3.1-cln.swf.gz", "oracle/ctc-5k-p430.swf.gz", 430, 5000},
		{"KTH-SP2-1996-2.1-cln.swf.gz", "oracle/kth-5k.swf.gz", 100, 5000},
	} {
		log := readFile(t, m.log)
		got, counts := Normalise(log, m.processors, Kill)
		if m.jobs > 0 {
			got = got[:m.jobs]
		}
		trace := readFile(t, m.normalised)
		if n := trace.MaxProcessors(); n != m.processors {
			t.Errorf("%s says %d processors", m.normalised, n)
		}
		want, same := Normalise(trace, m.processors, Kill)
		if same != (Counts{Jobs: len(want)}) {
			t.Errorf("%s is not normalised: %+v", m.normalised, same)
		}
		if len(got) != len(want) {
			t.Errorf("%s gives %d jobs, want %d", m.log, len(got), len(want))
			continue
		}
		for i := range got {
			got[i].Group, want[i].Group = 0, 0 // not kept by the oracle
			if got[i] != want[i] {
				t.Errorf("%s: job %d is %+v, want %+v", m.log, i, got[i], want[i])
				break
			}
		}
		t.Logf("%s on %d: %+v", m.log, m.processors, counts)
	}
	if n := len(readFile(t, "lublin_256.swf.gz").Records); n != 10000 {
		t.Errorf("lublin has %d jobs", n)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("; MaxProcs: 99999999999999999999999\n1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01\x00\x00\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		trace, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, overrun := range []Overrun{Kill, Raise, Keep} {
			jobs, n := Normalise(trace, trace.MaxProcessors(), overrun)
			if n.Jobs+n.NoRun+n.NoProcessors+n.TooWide != len(trace.Records) || n.Jobs != len(jobs) {
				t.Fatalf("%d records, %+v", len(trace.Records), n)
			}
			for i, j := range jobs {
				if j.Run < 1 || j.Request < 1 || j.Processors < 1 || j.Submit < 0 || i > 0 && j.Submit < jobs[i-1].Submit {
					t.Fatalf("job %d: %+v", i, j)
				}
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	text := strings.Repeat("2 164472 356587 75 17 2.00 -1 -1 300 -1 1 97 -1 195 3 -1 -1 -1\n", 10000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}
