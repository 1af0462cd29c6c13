package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"kith/testbed/programs"
	"kith/testbed/workload"
)

// wholeReplay runs "kith replay" of the log as a user does: a program of its own
// that reads the log, packed or not, and writes the schedule.
func (b *bench) wholeReplay(ctx context.Context, w *workload.Workload) error {
	kith, remove, err := b.kith(ctx)
	if err != nil {
		return err
	}
	defer remove() //nolint:errcheck // a temporary folder
	memory := 0.0
	took, err := b.fastest(5, func() error {
		_, peak, err := child(ctx, kith, nil, "replay", "--trace", b.opt.Trace, "--processors", fmt.Sprint(w.Processors), "--policy", "easy",
			"--schedule", filepath.Join(b.opt.Dir, "schedule.csv"))
		memory = max(memory, peak)
		return err
	})
	if err != nil {
		return err
	}
	b.addTargetOfLog(w, "kith replay as a whole, reading the file and writing the schedule", took.Seconds(), "s", 0.25, true)
	b.addTargetOfLog(w, "memory of the same, at most", memory, "MiB", 150, true)
	return nil
}

// labs runs the experiments of the two papers with all their seeds.
func (b *bench) labs(ctx context.Context) error {
	lab, err := os.Executable()
	if err != nil {
		return err
	}
	const claimFails = 1 // its exit code then; what it found is not measured here
	for _, x := range []struct {
		id     string
		target float64
	}{{"001", 120}, {"004", 60}} {
		b.observe("sim: kith-lab run " + x.id)
		took, _, err := child(ctx, lab, []int{claimFails}, "run", x.id)
		if err != nil {
			return err
		}
		b.addTarget("kith-lab run "+x.id, took.Seconds(), "s", x.target, true)
	}
	return nil
}

// kith returns the kith that is measured, and what removes it if it was built.
func (b *bench) kith(ctx context.Context) (path string, remove func() error, err error) {
	if b.opt.Kith != "" {
		return b.opt.Kith, func() error { return nil }, nil
	}
	set, err := programs.Find(ctx, b.opt.Observe, programs.Kith)
	if err != nil {
		return "", nil, err
	}
	return set.Path(programs.Kith), set.Remove, nil
}

// child runs a program, and returns how long that
// took and the most memory that it had, in MiB. Exit codes other than 0 are
// errors but for those in fine.
func child(ctx context.Context, path string, fine []int, args ...string) (took time.Duration, memory float64, err error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stderr = &stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// What the kernel tells of a child when it has ended counts the memory of its
	// parent, out of which it was forked. So look while it runs.
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for {
		if peak, err := memoryOf(cmd.Process.Pid, "VmHWM:"); err == nil {
			memory = max(memory, peak)
		}
		select {
		case <-look.C:
			continue
		case err = <-ended:
			took = time.Since(began)
		}
		break
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		for _, code := range fine {
			if exit.ExitCode() == code {
				return took, memory, nil
			}
		}
	}
	if err != nil {
		return took, memory, fmt.Errorf("%s %s: %w: %s", filepath.Base(path), strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return took, memory, nil
}
