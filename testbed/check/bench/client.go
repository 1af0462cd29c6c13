package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"kith/testbed/local"
)

// clientPause is the time between two processes where a user's pause is what
// is measured: caches and processors have turned to something else by then.
const clientPause = 50 * time.Millisecond

// clientRun is a command that is measured, as one process after another.
type clientRun struct {
	name     string
	argv     []string
	target   float64 // of the median, in ms; 0 for none
	wall     []time.Duration
	consumed []time.Duration // user and system time
}

// client measures what users of a script wait for: a process of kith, from
// fork to exit. Programs take turns, so that what else the machine does is the
// same for all.
func (b *bench) client(ctx context.Context) error {
	kith, remove, err := b.kith(ctx)
	if err != nil {
		return err
	}
	defer remove() //nolint:errcheck // a temporary folder
	f, stop, err := b.federation(ctx, []local.Site{{Name: "alpha"}})
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // what was measured counts
	submit := []string{"submit", "--site", f.Nodes()[0].Target(), "--parsable", "--", "/bin/true"}
	runs := []*clientRun{
		{name: "/bin/true", argv: []string{"/bin/true"}},
		{name: "kith version", argv: []string{kith, "version"}, target: 4},
		{name: "kith submit", argv: append([]string{kith}, submit...), target: 7},
	}
	if b.opt.Earlier != "" {
		runs = append(runs,
			&clientRun{name: "earlier kith version", argv: []string{b.opt.Earlier, "version"}},
			&clientRun{name: "earlier kith submit", argv: append([]string{b.opt.Earlier}, submit...)})
	}
	if err := b.takeTurns(ctx, runs, b.opt.Clients, 0, "one after another"); err != nil {
		return err
	}
	return b.takeTurns(ctx, runs, min(b.opt.Clients, 100), clientPause, fmt.Sprint("with pauses of ", clientPause))
}

// takeTurns runs each command so many times, and adds what that took.
func (b *bench) takeTurns(ctx context.Context, runs []*clientRun, times int, pause time.Duration, how string) error {
	const warm = 3 // rounds that fill all caches
	for _, r := range runs {
		r.wall, r.consumed = nil, nil
	}
	for i := range times + warm {
		for _, r := range runs {
			time.Sleep(pause)
			wall, consumed, err := process(ctx, r.argv)
			if err != nil {
				return err
			}
			if i >= warm {
				r.wall, r.consumed = append(r.wall, wall), append(r.consumed, consumed)
			}
		}
	}
	for _, r := range runs {
		slices.Sort(r.wall)
		slices.Sort(r.consumed)
		name := fmt.Sprintf("%s as a process, %s, median", r.name, how)
		if r.target > 0 {
			b.addTarget(name, milliseconds(median(r.wall)), "ms", r.target, true)
		} else {
			b.add(name, milliseconds(median(r.wall)), "ms")
		}
		b.add("processor time of the same, median", milliseconds(median(r.consumed)), "ms")
	}
	return nil
}

// process runs a command to its end and returns how long that took and how
// much processor time.
func process(ctx context.Context, argv []string) (wall, consumed time.Duration, err error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), "KITH_SITE=")
	began := time.Now()
	err = cmd.Run()
	wall = time.Since(began)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
