package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// measureMachine measures what no job system on this machine can exceed.
func measureMachine(dir string) (Machine, error) {
	m := Machine{Processors: runtime.NumCPU(), System: system()}
	var err error
	if m.ForkExecSerial, err = forkExec(1); err != nil {
		return m, err
	}
	if m.ForkExecParallel, err = forkExec(m.Processors); err != nil {
		return m, err
	}
	m.SyncMedian, err = syncMedian(dir)
	return m, err
}

// forkExec runs /bin/true for a second, so many at a time, and returns how
// often per second.
func forkExec(atOnce int) (float64, error) {
	const path = "/bin/true"
	var wg sync.WaitGroup
	var runs atomic.Int64
	errs := make([]error, atOnce)
	began := time.Now()
	for i := range atOnce {
		wg.Go(func() {
			for time.Since(began) < time.Second && errs[i] == nil {
				errs[i] = exec.Command(path).Run()
				runs.Add(1)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, fmt.Errorf("run %s: %w", path, err)
	}
	return float64(runs.Load()) / time.Since(began).Seconds(), nil
}

// syncMedian appends to a file and waits for the disk, over and over.
func syncMedian(dir string) (time.Duration, error) {
	path := filepath.Join(dir, "sync-probe")
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer os.Remove(path) //nolint:errcheck // it lies in a folder that is removed
	defer f.Close()       //nolint:errcheck // the file goes away
	var took []time.Duration
	page := make([]byte, 4096)
	for range 200 {
		began := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return median(took), nil
}
