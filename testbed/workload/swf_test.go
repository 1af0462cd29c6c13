package workload

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// line returns a job of the Standard Workload Format.
func line(id, submit, run int64) string {
	return fmt.Sprintf("%d %d -1 %d 1 -1 -1 1 20 -1 1 1 1 -1 -1 -1 -1 -1\n", id, submit, run)
}

const sampleSWF = `; Version: 2.2
; MaxProcs: 430
; MaxNodes: 338 (batch partition; 512 total)
; Queue:  1 DSI
;
; THIS LINE IS NO FIELD: it has blanks in its name

  1 0 588530 937 306 142.00 -1 -1 35100 -1 1 97 -1 307 3 -1 -1 -1
2 164472 -1 75 17 2.5 1024 16 300 2048.5 0 1 2 3 4 5 1 60
`

func TestReadSWF(t *testing.T) {
	want := []Job{
		{ID: 1, Run: seconds(937), Estimate: seconds(35100), Procs: 306, User: "97"},
		{
			ID: 2, Submit: second(164472), Run: seconds(75), Estimate: seconds(300), Procs: 16, MemoryBytes: 2048.5 * 1024 * 16,
			User: "1", Group: "2",
		},
	}
	for name, text := range map[string]string{
		"plain": sampleSWF, "gzip": string(pack(t, sampleSWF)), "carriage returns": strings.ReplaceAll(sampleSWF, "\n", "\r\n"),
		"no last line end": strings.TrimSuffix(sampleSWF, "\n"), "two gzip streams": string(pack(t, sampleSWF[:100])) + string(pack(t, sampleSWF[100:])),
	} {
		w := read(t, text)
		if !reflect.DeepEqual(w.Jobs, want) || w.Processors != 430 || w.Report != (Report{}) || !w.Start.IsZero() {
			t.Errorf("%s: %+v", name, w)
		}
	}
	for header, want := range map[string]int32{
		"; MaxNodes: 338 (of 512)\n": 338, "; MaxProcs: 0\n; MaxNodes: 7\n": 7, "": 0, "; MaxProcs: many\n": 0, "; MaxProcs: 99999999999\n": 0,
		"; MaxProcs: 99999999999999999999999999\n": 0,
	} {
		if w := read(t, header+line(1, 0, 1)); w.Processors != want {
			t.Errorf("%q: %d processors, want %d", header, w.Processors, want)
		}
	}
}

// Every bad line is counted by what is wrong with it, and named.
func TestReadSWFSkips(t *testing.T) {
	good := "5 10 0 30 4 1 1 4 60 1 1 1 1 1 1 1 1 1"
	with := func(field int, value string) string {
		fields := strings.Fields(good)
		fields[field-1] = value
		return strings.Join(fields, " ")
	}
	for text, m := range map[string]struct {
		kind Kind
		says string
	}{
		"1 2 3":                             {BadLine, "line 3: 3 fields of 18"},
		good + " 19":                        {BadLine, "line 3: more than 18 fields"},
		"nonsense":                          {BadLine, "line 3: 1 fields of 18"},
		with(1, "x"):                        {BadValue, `line 3: field 1 (job) "x"`},
		with(2, "1e3"):                      {BadValue, `line 3: field 2 (submit) "1e3"`},
		with(2, "-1"):                       {Negative, `line 3: field 2 (submit) "-1"`},
		with(4, "1.5"):                      {BadValue, `line 3: field 4 (run) "1.5"`},
		with(4, "-7"):                       {Negative, `line 3: field 4 (run) "-7"`},
		with(4, "-1"):                       {NoRun, "line 3: job 5"},
		with(4, "0"):                        {NoRun, "line 3: job 5, submitted at 10 s, run time 0 s"},
		with(4, "1000000000000"):            {TooLong, "run time 1000000000000 s"},
		with(8, "-2"):                       {Negative, `field 8 (requested processors) "-2"`},
		with(8, "2000000000"):               {TooWide, "2000000000 processors"},
		with(9, "1000000000000"):            {TooLong, "request 1000000000000 s"},
		with(9, "99999999999999999999"):     {BadValue, `field 9 (requested time) "99999999999999999999"`},
		with(9, "--1"):                      {BadValue, `field 9 (requested time) "--1"`},
		with(9, "-"):                        {BadValue, `field 9 (requested time) "-"`},
		with(10, "NaN"):                     {BadValue, `field 10 (requested memory) "NaN"`},
		with(10, "1e300"):                   {BadValue, `field 10 (requested memory) "1e300"`},
		with(10, "-5"):                      {BadValue, `field 10 (requested memory) "-5"`},
		with(12, strings.Repeat("9", 1000)): {BadValue, `field 12 (user) "9999`},
		with(2, "99999999999"):              {TooLate, "submitted at 99999999999 s"},
		strings.Replace(with(8, "-1"), "30 4", "30 0", 1): {NoProcessors, "0 processors"},
	} {
		w := read(t, "; a comment\n"+good+"\n"+text+"\n")
		first := w.Report.First(m.kind)
		if len(w.Jobs) != 1 || len(counts(&w.Report)) != 1 || w.Report.Count(m.kind) != 1 || w.Report.Skipped() != 1 || !strings.Contains(first, m.says) {
			t.Errorf("%.60q: %d jobs, %v, %q, want %v %q", text, len(w.Jobs), counts(&w.Report), first, m.kind, m.says)
		}
		if len(first) > 200 {
			t.Errorf("%.60q: a text of %d bytes", text, len(first))
		}
	}
	w := read(t, good+"\n"+with(9, "-1")+"\n"+with(9, "0")+"\n")
	if n := counts(&w.Report); n[NoEstimate] != 2 || len(n) != 1 || w.Report.Skipped() != 0 || w.Jobs[1].Estimate != seconds(30) {
		t.Errorf("without an estimate: %v, %+v", n, w.Jobs)
	}
}

// The logs as published become the very inputs of the oracle schedules.
func TestPublicLogs(t *testing.T) {
	for _, m := range []struct {
		log, normalised string
		processors      int32
		jobs            int
		stretch         float64
		skipped         map[Kind]int
	}{
		{"CTC-SP2-1996-3.1-cln.swf.gz", "oracle/ctc.swf.gz", 338, 0, 1, map[Kind]int{NoRun: 17}},
		{"CTC-SP2-1996-3.1-cln.swf.gz", "oracle/ctc-5k-p430.swf.gz", 430, 5000, 1, map[Kind]int{NoRun: 17}},
		{"CTC-SP2-1996-3.1-cln.swf.gz", "oracle/ctc-5k-p430-x17.swf.gz", 430, 5000, 1.7, map[Kind]int{NoRun: 17}},
		{"KTH-SP2-1996-2.1-cln.swf.gz", "oracle/kth-5k.swf.gz", 100, 5000, 1, map[Kind]int{NoRun: 8, NoProcessors: 1}},
	} {
		fit, err := openTrace(t, m.log).Fit(m.processors, Kill)
		if err != nil {
			t.Fatal(err)
		}
		for k, n := range fit.Report.All() {
			if k.Skipped() && m.skipped[k] != n {
				t.Errorf("%s: %d are %v, want %d; first: %s", m.log, n, k, m.skipped[k], fit.Report.First(k))
			}
		}
		window, err := fit.Window(0, m.jobs)
		if err != nil {
			t.Fatal(err)
		}
		got, err := window.Stretch(m.stretch)
		if err != nil {
			t.Fatal(err)
		}
		want := openTrace(t, m.normalised)
		if want.Processors != m.processors || want.Report != (Report{}) {
			t.Errorf("%s: %d processors, %v", m.normalised, want.Processors, counts(&want.Report))
		}
		if len(got.Jobs) != len(want.Jobs) {
			t.Errorf("%s gives %d jobs, want %d", m.log, len(got.Jobs), len(want.Jobs))
			continue
		}
		for i := range got.Jobs {
			g, w := got.Jobs[i], want.Jobs[i]
			g.Group, w.Group, g.MemoryBytes = "", "", 0 // not kept by the oracle
			if g != w {
				t.Errorf("%s: job %d is %+v, want %+v", m.log, i, g, w)
				break
			}
		}
	}
	ctc := openTrace(t, "CTC-SP2-1996-3.1-cln.swf.gz")
	if want := time.Date(1996, time.June, 26, 17, 6, 0, 0, ctc.Start.Location()); ctc.Processors != 338 || ctc.Start.Hour() != 16 || !ctc.Start.Equal(want.Add(-time.Hour)) {
		t.Errorf("the CTC log has %d processors and starts at %v", ctc.Processors, ctc.Start) // its zone is without summer time
	}
}
