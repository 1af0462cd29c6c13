package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"kith/internal/job"
	"kith/meta"
)

// The log names a copy that no longer fits as every other line does.
func TestOutgrownCopyIsNamedByItsID(t *testing.T) {
	var lines bytes.Buffer
	f := &effects{log: slog.New(slog.NewJSONHandler(&lines, nil))}
	first := job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 7, Seq: 3}, Number: 2}
	f.carry(meta.Outgrown{Copies: 1, First: first, Reason: job.TooNarrow})
	if want := `"first":"` + first.String() + `"`; !strings.Contains(lines.String(), want) {
		t.Errorf("want %s: %s", want, lines.String())
	}
}
