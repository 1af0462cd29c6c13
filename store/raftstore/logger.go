package raftstore

import (
	"bytes"
	"context"
	"log/slog"
	"time"

	"github.com/hashicorp/go-hclog"

	"kith/internal/loglines"
)

// linePause is how long a thing that raft says or a greeting that is refused is not told again: of
// a member that is away raft speaks several times a second.
const linePause = time.Minute

// newLogger returns a logger for raft whose warnings and errors become lines of l.
func newLogger(l *slog.Logger) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, DisableTime: true, Output: &lines{to: l}})
}

// lines is told one line of raft's log at a time.
type lines struct {
	to   *slog.Logger
	pace loglines.Pacer[string]
}

func (w *lines) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	text := bytes.TrimSpace(line)
	if rest, ok := bytes.CutPrefix(text, []byte("[ERROR] ")); ok {
		level, text = slog.LevelError, rest
	} else if rest, ok := bytes.CutPrefix(text, []byte("[WARN]  ")); ok {
		text = rest
	}
	what, _, _ := bytes.Cut(text, []byte(":")) // without what differs from line to line
	if held, ok := w.pace.Pass(string(what), time.Now(), linePause); ok {
		w.to.Log(context.Background(), level, "raft says", "text", string(text), "held_back", held)
	}
	return len(line), nil
}
