package daemon

import (
	"log/slog"
	"strings"
	"testing"

	"kith/meta"
	"kith/sitesched/batch"
)

// A plan of a batch system's queue needs a system that has one.
func TestHostNeedsQueue(t *testing.T) {
	t.Parallel()
	c, log := testConfig(t, "alpha"), slog.New(slog.DiscardHandler)
	host := ownHost(c, log)
	host.Site = func() (meta.Site, error) { return batch.New(2), nil }
	d, err := OpenWith(c, log, Options{Host: host})
	if err == nil {
		d.Close() //nolint:errcheck // the test has failed
		t.Fatal("opened")
	}
	if !strings.Contains(err.Error(), "work.Batch") {
		t.Error(err)
	}
}
