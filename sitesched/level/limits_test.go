package level

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestBadLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*Limits)
		want  string
	}{
		"rank 0":            {func(l *Limits) { l.Rank = 0 }, "rank 0: must be 1"},
		"rank 17":           {func(l *Limits) { l.Rank = 17 }, "rank 17"},
		"no queue limit":    {func(l *Limits) { l.Queue, l.Run = 0, 0 }, "queue_limit 0s: must be above 0s"},
		"queue limit below": {func(l *Limits) { l.Queue = -1 }, "queue_limit -1ns"},
		"run above queue":   {func(l *Limits) { l.Run = 7 * time.Minute }, "run_limit 7m0s: must be at most queue_limit, which is 6m0s"},
		"no processors":     {func(l *Limits) { l.Processors = 0 }, "processors 0: must be 1 to"},
		"no speed":          {func(l *Limits) { l.Speed = 0 }, "speed 0"},
		"speed not known":   {func(l *Limits) { l.Speed = math.NaN() }, "speed NaN"},
		"endless speed":     {func(l *Limits) { l.Speed = math.Inf(1) }, "speed +Inf"},
		"β 0":               {func(l *Limits) { l.Bound = 0 }, "beta 0: must be above 0, at most 1"},
		"β above 1":         {func(l *Limits) { l.Bound = 1.1 }, "beta 1.1"},
		"β not known":       {func(l *Limits) { l.Bound = math.NaN() }, "beta NaN"},
		"α 1":               {func(l *Limits) { l.EstimateShare = 1 }, "estimate_share 1: must be 0 to below 1"},
		"α below":           {func(l *Limits) { l.EstimateShare = -0.1 }, "estimate_share -0.1"},
		"no such action":    {func(l *Limits) { l.Actions[Overdue] = 9 }, "overdue unknown(9)"},
		"end of an arrival": {func(l *Limits) { l.Actions[Overload] = Terminate }, "overload terminate: must be demote, reject or off"},
	} {
		l := queues[0].limits
		c.spoil(&l)
		err := l.Validate()
		if !errors.Is(err, ErrLimits) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	var l Limits
	if got := strings.Count(l.Validate().Error(), "invalid level"); got != 6 {
		t.Errorf("of limits that are all zero %d were named, want 6", got)
	}
}

// The table of spec 000 section 2.4, and what a site may say instead.
func TestActions(t *testing.T) {
	t.Parallel()
	var l Limits
	for trigger, want := range map[Trigger][2]Action{
		Overload: {Demote, Reject}, Mismatch: {Demote, Reject}, Overdue: {Demote, Terminate},
		TaskOverdue: {Demote, Off}, QueueOverdue: {Demote, Off},
	} {
		if got := [2]Action{l.Action(trigger, false), l.Action(trigger, true)}; got != want {
			t.Errorf("%v: %v, want %v", trigger, got, want)
		}
		for a := Demote; a <= Off; a++ {
			l.Actions[trigger] = a
			onlast := a
			if a == Demote {
				onlast = want[1] // nothing is below
			}
			if got := [2]Action{l.Action(trigger, false), l.Action(trigger, true)}; got != [2]Action{a, onlast} {
				t.Errorf("%v set to %v: %v", trigger, a, got)
			}
		}
		l.Actions[trigger] = Default
	}
	for _, name := range actionNames {
		if a, err := ParseAction(name); err != nil || a.String() != name {
			t.Errorf("%s is read as %v, %v", name, a, err)
		}
	}
	if _, err := ParseAction("promote"); !errors.Is(err, ErrUnknownWord) {
		t.Errorf("promote: %v", err)
	}
}

// What may be left of a task that was estimated is what [ProcessNewTask] lets stay.
func TestMostLeft(t *testing.T) {
	t.Parallel()
	for _, action := range []Action{Default, Off, Reject} {
		for _, last := range []bool{false, true} {
			l := Limits{Rank: 1, Queue: time.Hour, Run: time.Minute, Processors: 4, Speed: 1.5, Bound: 0.9}
			l.Actions[Mismatch] = action
			most, limited := l.MostLeft(0.5, last)
			for _, left := range []Complexity{0, most - 1, most, most + 1, 100 * most} {
				v := ProcessNewTask(&l, 0, Arrival{Task: Task{Left: left, Bound: 0.5}, Estimated: true}, last)
				if stays := !limited || left <= most; stays != (v.Step == Stay) {
					t.Errorf("%v, last %v: %v left of %v: %+v", action, last, left, most, v)
				}
			}
		}
	}
}
