package whatif

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"kith/testbed/workload"
)

// logFile writes a log of another site.
func logFile(t *testing.T, name string, jobs int, processors int32) string {
	t.Helper()
	w, err := workload.CTCLike{Jobs: jobs, Processors: processors, Load: 0.3}.Generate(workload.NewRand(2, 0))
	if err != nil {
		t.Fatal(err)
	}
	l := &workload.SWFLog{Site: "partner", Processors: processors}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		at := now.Add(time.Duration(j.Submit))
		l.Jobs = append(l.Jobs, workload.SWFJob{Submit: at, Start: at, Run: j.Run, Estimate: j.Estimate, Processors: j.Procs, Status: workload.SWFCompleted})
	}
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := workload.WriteSWF(f, l); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
