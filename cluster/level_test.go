package cluster

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// What no site can say of its level does not count, and the error names the field.
func TestPossibleLevel(t *testing.T) {
	good := Level{Rank: 2, Queue: time.Hour, Run: time.Minute, Work: 3, Limit: 40}
	for _, c := range []struct {
		field  string
		change func(*Level)
	}{
		{"", func(*Level) {}},
		{"", func(l *Level) { l.Run = l.Queue }},
		{"level.rank", func(l *Level) { l.Rank = 0 }},
		{"level.rank", func(l *Level) { l.Rank = 17 }},
		{"level.queue_limit", func(l *Level) { l.Queue = 0 }},
		{"level.queue_limit", func(l *Level) { l.Queue = math.MaxInt64 }},
		{"level.run_limit", func(l *Level) { l.Run = -1 }},
		{"level.run_limit", func(l *Level) { l.Run = l.Queue + 1 }},
		{"level.work ", func(l *Level) { l.Work = math.NaN() }},
		{"level.work ", func(l *Level) { l.Work = -1 }},
		{"level.work_limit", func(l *Level) { l.Limit = math.Inf(1) }},
		{"level.available", func(l *Level) { l.Available = math.NaN() }},
		{"level.available", func(l *Level) { l.Available = -1 }},
		{"level.latency", func(l *Level) { l.Latency = -1 }},
		{"level.latency", func(l *Level) { l.Latency = math.MaxInt64 }},
	} {
		l := good
		c.change(&l)
		d := Digest{Site: "far", Level: &l}
		switch err := d.Possible(); {
		case c.field == "" && err != nil:
			t.Errorf("%+v: %v", l, err)
		case c.field != "" && (!errors.Is(err, ErrImpossible) || !strings.Contains(err.Error(), c.field)):
			t.Errorf("%+v: got %v, want an error about %s", l, err, c.field)
		}
	}
}
