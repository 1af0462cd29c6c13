package workload

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestReadPBS(t *testing.T) {
	want := []Job{
		{ID: 9, Run: seconds(90), Estimate: seconds(90), Procs: 3, User: "bob", Group: "chem"},
		{ID: 7, Submit: second(10), Run: seconds(3600), Estimate: seconds(7200), Procs: 16, MemoryBytes: 8 << 30, User: "ann", Group: "phys"},
		{ID: 8, Submit: second(20), Run: seconds(4100), Estimate: seconds(3600), Procs: 10, User: "bob", Group: "chem"},
	}
	w, err := Open(filepath.Join("testdata", "pbs.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(w.Jobs, want) || w.Start.Unix() != 1772351990 {
		t.Errorf("got %+v from %v, want %+v", w.Jobs, w.Start, want)
	}
	if n := counts(&w.Report); !reflect.DeepEqual(n, map[Kind]int{NoEstimate: 1, OutOfOrder: 1}) {
		t.Errorf("counts are %v", n)
	}
}

func TestReadPBSSkips(t *testing.T) {
	const stamp = "03/01/2026 09:00:05;E;"
	const good = "7.head;user=ann ctime=1772352000 start=1772352005 end=1772355605 Resource_List.ncpus=16 Resource_List.walltime=02:00:00"
	with := func(old, changed string) string { return stamp + strings.Replace(good, old, changed, 1) }
	for text, m := range map[string]struct {
		kind Kind
		says string
	}{
		"nonsense":                                                                {BadLine, "line 2: does not begin with a date"},
		"03/01/2026 09:00:05;E;":                                                  {BadLine, "line 2: "},
		"03/01/2026 09:00:05;E;x;y":                                               {BadLine, `line 2: job "x"`},
		"03/01/2026 09:00:05;E;7":                                                 {BadLine, `line 2: job "7"`},
		with("ctime=1772352000", ""):                                              {BadValue, "line 2: no ctime"},
		with("ctime=1772352000", "ctime=early"):                                   {BadValue, `line 2: ctime "early"`},
		with("ctime=1772352000", "ctime=99999999999"):                             {TooLate, "job 7"},
		with("end=1772355605", ""):                                                {BadValue, "no start, end or resources_used.walltime"},
		with("end=1772355605", "end=late"):                                        {BadValue, `end "late"`},
		with("end=1772355605", "end=1772352004"):                                  {Negative, `start 1772352005, end "1772352004"`},
		with("end=1772355605", "end=1772352005"):                                  {NoRun, "job 7"},
		with("end=1772355605", "end=999999999999999"):                             {TooLong, "job 7"},
		with("end=1772355605", "resources_used.walltime=x"):                       {BadValue, `resources_used.walltime "x"`},
		with("Resource_List.walltime=02:00:00", "Resource_List.walltime=x"):       {BadValue, `Resource_List.walltime "x"`},
		with("Resource_List.ncpus=16", "Resource_List.ncpus=-1"):                  {BadValue, `Resource_List.ncpus "-1"`},
		with("Resource_List.ncpus=16", ""):                                        {NoProcessors, "job 7"},
		with("Resource_List.ncpus=16", "Resource_List.select=2:ncpus=x"):          {BadValue, `Resource_List.select "2:ncpus=x"`},
		with("Resource_List.ncpus=16", "Resource_List.nodes=-2:ppn=4"):            {BadValue, `Resource_List.nodes "-2:ppn=4"`},
		with("Resource_List.ncpus=16", "Resource_List.nodes=999999999:ppn=99999"): {TooWide, "processors"},
		with("user=ann", "Resource_List.mem=4xb"):                                 {BadValue, `Resource_List.mem "4xb"`},
	} {
		w := read(t, stamp+good+"\n"+text+"\n")
		if len(w.Jobs) != 1 || len(counts(&w.Report)) != 1 || w.Report.Count(m.kind) != 1 || !strings.Contains(w.Report.First(m.kind), m.says) {
			t.Errorf("%q: %d jobs, %v, %q, want %v %q", text, len(w.Jobs), counts(&w.Report), w.Report.First(m.kind), m.kind, m.says)
		}
	}
}

func TestPBSWidth(t *testing.T) {
	for text, want := range map[string]int32{
		"Resource_List.ncpus=5":                                           5,
		"Resource_List.procs=12 Resource_List.ncpus=1":                    12,
		"Resource_List.ncpus=1 Resource_List.nodes=4:ppn=8":               32,
		"Resource_List.nodes=4:ppn=8:gpus=2+2:ppn=1":                      34,
		"Resource_List.nodes=node17+node18:ppn=3":                         4,
		"Resource_List.nodes=3":                                           3,
		"Resource_List.select=2:ncpus=8:mpiprocs=8+1:ncpus=4:mem=2gb":     20,
		"Resource_List.select=5":                                          5,
		"Resource_List.select=ncpus=6":                                    6,
		"Resource_List.select=2:ncpus=4 Resource_List.nodes=2:ppn=1 user": 8,
		"total_execution_slots=9":                                         9,
	} {
		w := read(t, "03/01/2026 09:00:05;E;7.head;ctime=1772352000 start=1772352005 end=1772355605 "+text+"\n")
		if got := w.Jobs[0].Procs; got != want {
			t.Errorf("%s: %d processors, want %d", text, got, want)
		}
	}
	for text, want := range map[string]int64{"4gb": 4 << 30, "512mb": 512 << 20, "1024kb": 1 << 20, "77b": 77, "77": 77, "1.5GB": 3 << 29} {
		w := read(t, "03/01/2026 09:00:05;E;7.head;ctime=1 start=5 end=10 Resource_List.ncpus=1 Resource_List.mem="+text+"\n")
		if got := w.Jobs[0].MemoryBytes; got != want {
			t.Errorf("%s: %d bytes, want %d", text, got, want)
		}
	}
}
