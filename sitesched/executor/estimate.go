package executor

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kith/internal/job"
	"kith/internal/jobfile"
	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

func shimEstimate(e *work.Estimate) *shim.Estimate {
	if e == nil {
		return nil
	}
	return &shim.Estimate{Argv: e.Argv, Nanos: int64(e.Limit), Known: e.Known, Done: e.Done, Most: e.Most}
}

// blankEstimate makes room for what the estimator of an attempt says, so that a full disk does not
// keep it from being written.
func (f *folders) blankEstimate(name string) error {
	file, err := os.OpenFile(filepath.Join(f.path(name), shim.EstimateName), os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(shim.BlankEstimate())
	if e := file.Close(); err == nil {
		err = e
	}
	return err
}

// Bound implements [work.Bounds].
func (x *Executor) Bound(id job.AttemptID) float64 { return x.folders.readEstimate(folderName(id)) }

// readEstimate returns the bound that the estimator of an attempt gave, 0 if there is none.
func (f *folders) readEstimate(name string) float64 {
	b, err := jobfile.Read(f.dir, name+"/"+shim.EstimateName, shim.EstimateSize)
	if err != nil {
		return 0
	}
	return shim.ParseEstimate(b)
}
