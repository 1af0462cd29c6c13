package daemon

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/cluster"
	"kith/cmd/kithd/config"
	"kith/internal/harvest"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/executor/owner"
)

// ownerBench is an owner's watch whose clock and sensor a test moves.
type ownerBench struct {
	*ownerWatch
	at   job.Time
	span owner.Span
	err  error
	told []*cluster.Owner
	log  strings.Builder
}

func newOwnerBench(t *testing.T, path string) *ownerBench {
	w := &ownerBench{at: job.Time(1000 * time.Hour)}
	w.ownerWatch = &ownerWatch{
		read: func() (owner.Span, error) { return w.span, w.err }, now: func() job.Time { return w.at },
		tell: func(ev meta.Event) { w.told = append(w.told, ev.(meta.OwnerSeen).Owner) },
		path: path, log: slog.New(slog.NewTextHandler(&w.log, nil)), fastest: 10 * time.Second, meter: harvest.Meter{Processors: 2},
	}
	w.begin()
	return w
}

// pass lets time pass with the owner holding so many processors.
func (w *ownerBench) pass(d time.Duration, held float64) {
	for end := w.at.Add(d); w.at < end; {
		w.at = w.at.Add(w.interval)
		w.span = owner.Span{Length: w.interval, Held: held}
		w.look()
	}
}

func (w *ownerBench) last() *cluster.Owner { return w.told[len(w.told)-1] }

// Before anything was measured half of the time is expected to be the owner's; then what was
// measured, from the first minutes on; and the same after a restart.
func TestOwnerWatch(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), ownerName)
	w := newOwnerBench(t, path)
	if len(w.told) != 1 || w.last().Left(1, 2) != 0.5 {
		t.Fatalf("at a cold start: %v", w.told)
	}
	if w.log.Len() > 0 {
		t.Errorf("the first start, which has no file, is no trouble: %s", w.log.String())
	}
	w.pass(12*time.Minute, 1.25)
	// Of one processor of two he takes a quarter, of both all.
	if o := w.last(); math.Abs(o.Left(1, 2)-0.75) > 0.01 || !o.TooBusy(2, 2) {
		t.Errorf("after 12 minutes: %+v", o)
	}
	w.pass(49*time.Minute, 1.25)
	w.pass(time.Hour, 0)
	if o := w.last(); o.Left(1, 2) < 0.85 {
		t.Errorf("after an hour without him: %+v", o)
	}
	before := w.last()
	again := newOwnerBench(t, path)
	again.at = w.at
	again.hour = w.hour
	again.say()
	if got := again.last(); math.Abs(got.Left(1, 2)-before.Left(1, 2)) > 0.05 {
		t.Errorf("before a restart %+v, then %+v", before, got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// Spans that are lost, or longer than they may be, are counted and say nothing of the owner.
func TestOwnerWatchWithoutMeasurements(t *testing.T) {
	t.Parallel()
	w := newOwnerBench(t, filepath.Join(t.TempDir(), ownerName))
	w.err = errors.New("nobody may read that")
	w.pass(30*time.Minute, 2)
	w.err = nil
	w.at = w.at.Add(20 * time.Hour)
	w.span = owner.Span{Length: 20 * time.Hour, Held: 2} // the machine slept
	w.look()
	w.pass(65*time.Minute, 0)
	if o := w.last(); o.Left(1, 2) != 1 {
		t.Errorf("what was not measured counts: %+v", o)
	}
	for _, want := range []string{"lost=", "nobody may read that", "a span of 20h0m0s"} {
		if !strings.Contains(w.log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, w.log.String())
		}
	}
}

// A file that cannot be what was written begins anew, and says so: cut short, of impossible
// values, too long, a pipe.
func TestOwnersFileThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"cut short": func(path string) error { return os.WriteFile(path, []byte(`[{"Hour":1`), 0o600) },
		"impossible": func(path string) error {
			return os.WriteFile(path, []byte(`[{"Hour":999,"Loads":[{"Rho":7},{},{}]}]`), 0o600)
		},
		"too long": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat(" ", maxOwnerFile+1)), 0o600) },
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		path := filepath.Join(t.TempDir(), ownerName)
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		w := newOwnerBench(t, path)
		if w.last().Left(1, 2) != 0.5 || !strings.Contains(w.log.String(), "begins anew") {
			t.Errorf("%s: %+v, log: %s", name, w.last(), w.log.String())
		}
	}
}

// A site that shares its machine with an owner runs jobs below everything else, and tells
// other sites of him; other sites say nothing of the kind.
func TestSharedMachine(t *testing.T) {
	t.Parallel()
	sites := federation(t, func(c *config.Config) {
		c.Owner.Sharing = c.Site == "beta"
	}, "alpha", "beta")
	alpha, beta := sites[0], sites[1]
	alpha.eventually("alpha sees beta", func() bool { return alpha.reaches("beta") })
	id := beta.submit(shell(`test "$(sed 's/.*) //' /proc/self/stat | cut -d' ' -f39)" = 5`))
	beta.waitState(id, completed)
	alpha.eventually("alpha hears of beta's owner", func() bool {
		r, err := alpha.sites.ListSites(context.Background(), &kithv1.ListSitesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.GetSites() {
			if s.GetId() == "alpha" && len(s.GetOwnerLoads()) != 0 {
				t.Error("alpha tells of an owner")
			}
			if s.GetId() == "beta" && len(s.GetOwnerLoads()) == harvest.Widths {
				return true
			}
		}
		return false
	})
}
