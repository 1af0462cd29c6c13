package runner

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	"kith/sitesched/work"
)

// An attempt that its origin has gone on without ends at once, however much it has left:
// nobody wants that. One that a user cancels is collected to the end.
func TestStaleOutputIsNotCollected(t *testing.T) {
	for name, stale := range map[string]bool{"stale": true, "cancelled": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			stdout := filepath.Join(dir, "stdout")
			if err := os.WriteFile(stdout, []byte("much"), 0o600); err != nil {
				t.Fatal(err)
			}
			reads, goOn, ends := make(chan struct{}), make(chan struct{}), make(chan job.Outcome, 1)
			s := &Runner{
				files: &Files{}, log: slog.New(slog.DiscardHandler), ctx: t.Context(), runs: newRuns(), collector: &transfer.Collector{}, system: idleSystem{},
				small: newLane(1), large: newLane(1),
				cfg: Config{Tell: func(ev meta.Event) {
					if ev, ok := ev.(meta.AttemptEnded); ok {
						ends <- ev.Outcome
					}
				}},
				collect: func(ctx context.Context, _ transfer.Leaving) (transfer.Collection, error) {
					close(reads)
					select {
					case <-ctx.Done():
						return transfer.Collection{}, ctx.Err()
					case <-goOn:
					}
					return transfer.Collection{Set: transfer.Set{Files: []transfer.File{{Path: "stdout", Size: 4, Inline: []byte("much")}}}}, nil
				},
			}
			r := &run{attempt: own(1), ended: make(chan struct{}), begun: true, files: work.Files{Work: dir, Stdout: stdout}}
			s.byID[r.attempt] = r
			s.finished(r, job.Outcome{Kind: job.Success, Start: 1, End: 2}, false)
			<-reads
			s.Kill(meta.Kill{Attempt: r.attempt, Early: true, Stale: stale})
			s.Kill(meta.Kill{Attempt: r.attempt, Early: true}) // again, by who knows less
			if !stale {
				close(goOn)
			}
			o := <-ends
			if got := strings.Contains(o.Reason, unwanted); o.FilesLost != stale || got != stale || (len(o.Files) == 0) != stale {
				t.Errorf("ended with %d bytes of files, lost %v, reason %q", len(o.Files), o.FilesLost, o.Reason)
			}
			s.wg.Wait()
		})
	}
}

// idleSystem runs nothing.
type idleSystem struct{ work.System }

func (idleSystem) Stop(job.AttemptID, work.StopReason) {}
