package daemon

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/work"
)

// toyFederation is alpha, a site of Kith's own, and beta, whose work a toy batch
// system runs; its daemon can be restarted.
func toyFederation(t *testing.T) (alpha, beta *testSite) {
	t.Helper()
	dir := startToy(t)
	host := func(cfg config.Config, log *slog.Logger) Host {
		h := ownHost(cfg, log)
		h.System = func(report func(work.Event)) (work.System, error) { return openToy(t, dir, report), nil }
		return h
	}
	sites := federationOn(t, func(c *config.Config) {
		if c.Site == "beta" {
			c.Scheduler.Processors = 8
		}
	}, map[string]func(config.Config, *slog.Logger) Host{"beta": host}, "alpha", "beta")
	return sites[0], sites[1]
}

// Jobs that are submitted at another site run in the toy batch system once, with
// their files, and come home; a restart of its kithd loses none.
func TestToyBatchSystem(t *testing.T) {
	t.Parallel()
	a, b := toyFederation(t)
	l := newLedger(t)
	sign := func(text string, processors int32) string {
		j := l.signed(text)
		j.Processors = processors
		j.Inputs = []*kithv1.InputFile{{Path: "in", Content: &kithv1.InputFile_Data{Data: []byte(strings.Repeat("data ", 20000))}}}
		return a.submit(j)
	}
	wait, open := barrier(t)
	var ids []string
	for n := range 4 { // only beta is wide enough
		ids = append(ids, sign(fmt.Sprintf("wc -c <in; exit %d", n%2), 3))
	}
	for range 8 { // a copy at each: the one that loses its claim goes quietly
		ids = append(ids, sign("true", 2))
	}
	for n, id := range ids {
		want := kithv1.JobStatus_STATE_COMPLETED
		if n < 4 && n%2 == 1 {
			want = kithv1.JobStatus_STATE_FAILED
		}
		a.waitState(id, want)
	}
	if got := strings.TrimSpace(a.output(ids[0], "stdout")); got != "100000" {
		t.Errorf("it read %q bytes", got)
	}

	running, unwanted := sign("echo before; "+wait, 3), sign("exec sleep 600", 3)
	for _, id := range []string{running, unwanted} {
		a.waitState(id, kithv1.JobStatus_STATE_RUNNING)
	}
	b.restart()
	open()
	a.waitState(running, kithv1.JobStatus_STATE_COMPLETED)
	if _, err := a.jobs.CancelJob(a.ctx(), &kithv1.CancelJobRequest{JobId: unwanted}); err != nil {
		t.Error(err)
	}
	a.waitState(unwanted, kithv1.JobStatus_STATE_CANCELLED)
	l.expect(append(ids, running, unwanted)...)
}
