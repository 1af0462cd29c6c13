package raftstore

import (
	"bytes"
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// newLogger returns a logger for raft whose warnings and errors become lines of l.
func newLogger(l *slog.Logger) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, DisableTime: true, Output: lines{l}})
}

// lines is told one line of raft's log at a time.
type lines struct{ to *slog.Logger }

func (w lines) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	text := bytes.TrimSpace(line)
	if rest, ok := bytes.CutPrefix(text, []byte("[ERROR] ")); ok {
		level, text = slog.LevelError, rest
	} else if rest, ok := bytes.CutPrefix(text, []byte("[WARN]  ")); ok {
		text = rest
	}
	w.to.Log(context.Background(), level, "raft says", "text", string(text))
	return len(line), nil
}
