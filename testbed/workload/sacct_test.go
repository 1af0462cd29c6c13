package workload

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestReadSacct(t *testing.T) {
	want := []Job{
		{ID: 101, Run: seconds(3600), Estimate: seconds(7200), Procs: 16, MemoryBytes: 4000 << 20, User: "ann", Group: "phys"},
		{ID: 102, Submit: second(10), Run: seconds(93600), Estimate: seconds(86400), Procs: 4, MemoryBytes: 8 << 30, User: "bob", Group: "chem"},
		{ID: 105, Submit: second(120), Run: seconds(90), Estimate: seconds(90), Procs: 8, User: "cyd", Group: "phys"},
	}
	w, err := Open(filepath.Join("testdata", "sacct.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(w.Jobs, want) || w.Processors != 0 {
		t.Errorf("got %+v, want %+v", w.Jobs, want)
	}
	if n := counts(&w.Report); !reflect.DeepEqual(n, map[Kind]int{Step: 2, NoRun: 1, Unfinished: 1, NoEstimate: 1}) {
		t.Errorf("counts are %v", n)
	}
	if got := w.Start.Format("2006-01-02T15:04:05"); got != "2026-03-01T08:00:00" {
		t.Errorf("it starts at %s", got)
	}
	// sacct -p ends lines with the separator; outputs may be put together.
	text, err := os.ReadFile(filepath.Join("testdata", "sacct.txt"))
	if err != nil {
		t.Fatal(err)
	}
	parsable := strings.ReplaceAll(string(text), "\n", "|\n")
	twice := read(t, parsable+parsable)
	if len(twice.Jobs) != 2*len(want) || twice.Report.Count(BadLine) != 0 {
		t.Errorf("twice over: %d jobs, %v", len(twice.Jobs), counts(&twice.Report))
	}
}

// Other columns, in any order, say the same.
func TestSacctColumns(t *testing.T) {
	want := Job{ID: 42, Run: seconds(61), Estimate: seconds(120), Procs: 6}
	for _, text := range []string{
		"jobid|SUBMIT|elapsed|timelimit|ncpus\n42|2026-03-01T08:00:00|01:01|00:02:00|6\n",
		"NCPUS|ReqCPUS|JobID|JobIDRaw|Submit|ElapsedRaw|TimelimitRaw\n6|3|40_2|42|1772352000|61|2\n",
		"JobIDRaw|Submit|Elapsed|TimelimitRaw|Timelimit|ReqCPUS|AllocCPUS\n42|2026-03-01 08:00:00|00:01:01.250||2:00|6|0\n",
		"State|JobID|Submit|Start|End|Timelimit|ReqCPUS\nNODE_FAIL|42|2026-03-01T09:00:00+01:00|2026-03-01T09:00:00+0100|2026-03-01T08:01:01Z|00:02:00|6\n",
		"JobID|Extra|Submit|Elapsed|Timelimit|AllocCPUS\n42+1|a b|2026-03-01T08:00:00|0-00:01:01|0-0:2|6\n",
	} {
		w := read(t, text)
		if len(w.Jobs) != 1 || w.Jobs[0] != want || len(counts(&w.Report)) != 0 || w.Start.Unix() != 1772352000 && !strings.Contains(text, "+0100") {
			t.Errorf("%q: %+v, %v, from %v", text, w.Jobs, counts(&w.Report), w.Start)
		}
	}
	for header, says := range map[string]string{
		"JobID|User":                        "line 1: no Submit",
		"JobID|Submit|Timelimit|NCPUS":      "line 1: no Elapsed or ElapsedRaw or Start",
		"JobID|Submit|Start|NCPUS":          "line 1: no Elapsed or ElapsedRaw or End",
		"JobID|Submit|Elapsed|Timelimit":    "line 1: no AllocCPUS or NCPUS or ReqCPUS",
		"User|JobIDRaw|Start|End|AllocCPUS": "line 1: no Submit",
	} {
		_, err := Read("log", strings.NewReader(header+"\n1|a|b|c|d|e\n"))
		if !errors.Is(err, ErrColumns) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), SacctCommand) {
			t.Errorf("%s: %v", header, err)
		}
	}
	// The command that is recommended has all that is needed.
	_, columns, _ := strings.Cut(SacctCommand, "-o ")
	if _, err := Read("log", strings.NewReader(strings.ReplaceAll(columns, ",", "|")+"\n")); !errors.Is(err, ErrNoJobs) {
		t.Errorf("with the columns %s: %v", columns, err)
	}
}

func TestReadSacctSkips(t *testing.T) {
	const header = "JobID|Submit|Elapsed|Timelimit|AllocCPUS|ReqMem|State"
	const good = "1|2026-03-01T08:00:00|01:00:00|02:00:00|16|4000M|COMPLETED"
	cells := strings.Split(good, "|")
	with := func(i int, value string) string {
		c := slices.Clone(cells)
		c[i] = value
		return strings.Join(c, "|")
	}
	for text, m := range map[string]struct {
		kind Kind
		says string
	}{
		"1|2":                            {BadLine, "line 3: 2 columns, the header line has 7"},
		good + "|x":                      {BadLine, "line 3: 8 columns"},
		with(0, ""):                      {BadValue, `line 3: JobID ""`},
		with(0, "x7"):                    {BadValue, `line 3: JobID "x7"`},
		with(0, "7.extern"):              {Step, "line 3: 7.extern"},
		with(1, "Unknown"):               {BadValue, `line 3: Submit "Unknown"`},
		with(1, "2026-13-01T08:00:00"):   {BadValue, `Submit "2026-13-01T08:00:00"`},
		with(1, "2026-02-30T08:00:00"):   {BadValue, `Submit "2026-02-30T08:00:00"`},
		with(1, "9026-02-10T08:00:00"):   {TooLate, "job 1"},
		with(2, ""):                      {BadValue, `Elapsed ""`},
		with(2, "00:00:00"):              {NoRun, "job 1"},
		with(2, "-1:00:00"):              {BadValue, `Elapsed "-1:00:00"`},
		with(2, "1:2:3:4"):               {BadValue, `Elapsed "1:2:3:4"`},
		with(2, "999999999999-00:00:00"): {TooLong, "job 1"},
		with(3, "soon"):                  {BadValue, `Timelimit "soon"`},
		with(4, "many"):                  {BadValue, `AllocCPUS "many"`},
		with(4, "-4"):                    {Negative, `AllocCPUS "-4"`},
		with(4, "0"):                     {NoProcessors, "job 1"},
		with(4, "99999999999"):           {TooWide, "99999999999 processors"},
		with(5, "lots"):                  {BadValue, `ReqMem "lots"`},
		with(5, "9999999999T"):           {BadValue, `ReqMem "9999999999T"`},
		with(6, "PENDING"):               {Unfinished, "job 1 is PENDING"},
	} {
		w := read(t, header+"\n"+good+"\n"+text+"\n")
		if len(w.Jobs) != 1 || len(counts(&w.Report)) != 1 || w.Report.Count(m.kind) != 1 || !strings.Contains(w.Report.First(m.kind), m.says) {
			t.Errorf("%q: %d jobs, %v, %q, want %v %q", text, len(w.Jobs), counts(&w.Report), w.Report.First(m.kind), m.kind, m.says)
		}
	}
	for _, limit := range []string{"UNLIMITED", "Partition_Limit", "", "INVALID"} {
		w := read(t, header+"\n"+with(3, limit)+"\n")
		if w.Jobs[0].Estimate != seconds(3600) || w.Report.Count(NoEstimate) != 1 {
			t.Errorf("a limit of %q: %+v, %v", limit, w.Jobs[0], counts(&w.Report))
		}
	}
}

func TestSacctMemory(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "0": 0, "?": 0, "512": 512 << 20, "512M": 512 << 20, "1.50G": 3 << 29, "2T": 2 << 40, "100K": 100 << 10,
		"4Gn": 12 << 30, "500Mc": 16 * 500 << 20, "0n": 0,
	} {
		w := read(t, "JobID|Submit|Elapsed|AllocCPUS|NNodes|ReqMem\n1|1772352000|60|16|3|"+text+"\n")
		if got := w.Jobs[0].MemoryBytes; got != want {
			t.Errorf("%q is %d bytes, want %d", text, got, want)
		}
	}
}

func TestParseSpan(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "59": 59, "1:30": 90, "01:00:00": 3600, "100:00:00": 360000, "1-00": 86400, "1-01:30": 91800, "2-03:04:05": 183845,
		"00:01.750": 1, "1:00:00.5": 3600,
	} {
		if got, ok := parseSpan([]byte(text)); !ok || got != want {
			t.Errorf("%s is %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", ":", "1:", "-", "1-", "-1", "a", "1:b", "1:2:3:4", "1.x", "1..2", "1-2-3", "1:-2", "+1", "1 2"} {
		if got, ok := parseSpan([]byte(text)); ok {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

func TestParseInstant(t *testing.T) {
	for text, want := range map[string]int64{
		"2026-03-01T08:00:00": 1772352000, "2026-03-01 08:00:00": 1772352000, "2026-03-01T08:00:00Z": 1772352000,
		"2026-03-01T09:30:00+01:30": 1772352000, "2026-03-01T03:00:00-0500": 1772352000, "2026-03-01T08:00": 1772352000,
		"1772352000": 1772352000, "2016-12-31T23:59:60": 1483228800, "1970-01-01T00:00:00": 0,
	} {
		if got, _, ok := parseInstant([]byte(text), time.UTC); !ok || got != want {
			t.Errorf("%s is %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "now", "-5", "2026-03-01", "2026-00-01T08:00:00", "2026-03-01T24:00:00", "2026-03-01T08:60:00", "2026-03-00T08:00:00", strings.Repeat("1", 50)} {
		if got, _, ok := parseInstant([]byte(text), time.UTC); ok {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

// A wall clock is read in the zone that the reader names, with the hour that it
// is set by twice a year; instants with a zone of their own keep it.
func TestZoneOfWallClocks(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("this machine has no data of time zones (Debian: tzdata): ", err)
	}
	const header = "JobID|Submit|Start|End|AllocCPUS\n"
	for name, c := range map[string]struct {
		lines string
		zone  *time.Location
		start int64
		wall  bool
		// second is when the second job comes, run how long it takes.
		second, run int64
	}{
		"unknown zone": {"1|2026-03-01T08:00:00|2026-03-01T08:00:00|2026-03-01T09:00:00|1\n2|2026-03-29T01:30:00|2026-03-29T01:30:00|2026-03-29T03:30:00|1\n",
			time.UTC, 1772352000, true, 28*86400 - 6*3600 - 1800, 7200},
		"clock set forward": {"1|2026-03-01T08:00:00|2026-03-01T08:00:00|2026-03-01T09:00:00|1\n2|2026-03-29T01:30:00|2026-03-29T01:30:00|2026-03-29T03:30:00|1\n",
			berlin, 1772352000 - 3600, true, 28*86400 - 6*3600 - 1800, 3600},
		"minutes only": {"1|2026-03-01T08:00|2026-03-01T08:00|2026-03-01T09:00|1\n2|2026-07-01T08:00|2026-07-01T08:00|2026-07-01T09:00|1\n",
			berlin, 1772352000 - 3600, true, 122*86400 - 3600, 3600},
		"zones of their own": {"1|2026-03-01T08:00:00Z|2026-03-01T08:00:00Z|2026-03-01T09:00:00Z|1\n2|2026-03-01T11:00:00+0200|2026-03-01T11:00:00+0200|2026-03-01T12:00:00+0200|1\n",
			berlin, 1772352000, false, 3600, 3600},
		"seconds": {"1|1772352000|1772352000|1772352060|1\n2|1772352100|1772352100|1772352160|1\n", berlin, 1772352000, false, 100, 60},
	} {
		w, err := ReadIn("log", strings.NewReader(header+c.lines), c.zone)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if w.Start.Unix() != c.start || w.WallClock != c.wall || len(w.Jobs) != 2 || w.Jobs[1].Submit != second(c.second) || w.Jobs[1].Run != seconds(c.run) {
			t.Errorf("%s: begins %v, wall clock %v, %+v", name, w.Start, w.WallClock, w.Jobs)
		}
	}
}
