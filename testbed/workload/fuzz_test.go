package workload

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kith/internal/job"
)

// checkRead demands of anything that is read what [Open] promises, and of what
// is then made of it what the transformations promise.
func checkRead(t *testing.T, data []byte) {
	w, err := Read("fuzz", bytes.NewReader(data))
	if err != nil {
		if w != nil {
			t.Fatal("a workload beside an error")
		}
		return
	}
	if len(w.Jobs) == 0 {
		t.Fatal("no jobs and no error")
	}
	checkJobs(t, w)
	for _, overrun := range []Overrun{Kill, Raise, Keep} {
		fit, err := w.Fit(max(w.Processors, 1), overrun)
		if err != nil {
			t.Fatal(err)
		}
		checkJobs(t, fit)
		if len(fit.Jobs)+fit.Report.Count(TooWide)-w.Report.Count(TooWide) != len(w.Jobs) {
			t.Fatalf("of %d jobs %d fit and %d do not", len(w.Jobs), len(fit.Jobs), fit.Report.Count(TooWide))
		}
		for i := range fit.Jobs {
			if j := &fit.Jobs[i]; j.Procs > max(w.Processors, 1) || overrun != Keep && j.Run > j.Estimate {
				t.Fatalf("%v: %+v", overrun, j)
			}
		}
	}
	for _, x := range []float64{0.001, 1.7, 1e9} {
		stretched, err := w.Stretch(x)
		if err != nil {
			t.Fatal(err)
		}
		checkJobs(t, stretched)
		scaled, err := w.ScaleLoad(x)
		if err != nil {
			t.Fatal(err)
		}
		checkJobs(t, scaled)
	}
}

func checkJobs(t *testing.T, w *Workload) {
	t.Helper()
	last := job.Time(0)
	for i := range w.Jobs {
		j := &w.Jobs[i]
		if j.Run < w.Tick || j.Estimate < w.Tick || j.Run > job.MaxWalltime || j.Estimate > job.MaxWalltime ||
			j.Procs < 1 || j.Procs > job.MaxProcessors || j.MemoryBytes < 0 || j.MemoryBytes > job.MaxMemoryBytes {
			t.Fatalf("job %d: %+v", i, j)
		}
		if j.Submit < last || i == 0 && j.Submit != 0 || j.Submit > job.Time(MaxSpan) {
			t.Fatalf("job %d of %d is submitted at %d after one at %d", i, len(w.Jobs), j.Submit, last)
		}
		if time.Duration(j.Submit)%w.Tick != 0 || j.Run%w.Tick != 0 || j.Estimate%w.Tick != 0 {
			t.Fatalf("job %d is between two ticks: %+v", i, j)
		}
		last = j.Submit
	}
}

// seed adds a file of testdata, plain and cut.
func seed(f *testing.F, name string) {
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text[:len(text)*2/3])
}

func FuzzSWF(f *testing.F) {
	f.Add([]byte(sampleSWF))
	f.Add([]byte("; MaxProcs: 99999999999999999999999\n1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n2 0 1 4294967296 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"))
	f.Add([]byte("1 4294967296 -1 1 1 -1 -1 1 1 -1 1 1 1 -1 -1 -1 -1 -1\n2 0 -1 1 1 -1 -1 1 1 1e300 1 1 1 -1 -1 -1 -1 -1\n"))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01\x00\x00\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add(pack(f, sampleSWF))
	f.Fuzz(checkRead)
}

func FuzzSacct(f *testing.F) {
	seed(f, "sacct.txt")
	f.Add([]byte("JobIDRaw|Submit|ElapsedRaw|TimelimitRaw|ReqCPUS|NNodes|ReqMem\n1|0|1|999999999999999999|1|9|4Gn\n"))
	f.Add([]byte("JobID|Submit|Start|End|NCPUS\n1|1800-01-01T00:00:00|0|999999999999999999|1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !bytes.HasPrefix(data, []byte("JobID")) {
			data = append([]byte("JobID|Submit|Elapsed|Timelimit|AllocCPUS|ReqMem|State\n"), data...)
		}
		checkRead(t, data)
	})
}

func FuzzPBS(f *testing.F) {
	seed(f, "pbs.txt")
	f.Add([]byte("03/01/2026 09:00:05;E;7.head;ctime=0 start=1 end=999999999999999999 Resource_List.select=999999999:ncpus=99999999+1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !looksPBS(data) {
			data = append([]byte("03/01/2026 09:00:05;E;7.head;ctime=5 start=1 end=9 Resource_List.ncpus=1 "), data...)
		}
		checkRead(t, data)
	})
}
