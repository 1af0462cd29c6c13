package sitesched

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
)

var rewrite = flag.Bool("rewrite", false, "write what the transcripts in testdata should say; then read the diff")

// TestTranscripts tells the stories in testdata. A story is a sequence of
// blocks: commands, a line "----", and what they answer, up to an empty line.
// Lines that begin with # and empty lines between blocks are kept as they are.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			old, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			told := (&teller{}).tell(t, name, old)
			if *rewrite {
				if err := os.WriteFile(name, told, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// teller carries out the commands of one transcript.
type teller struct {
	s     *Scheduler
	now   job.Time
	names map[string]job.AttemptID
	out   strings.Builder
}

// tell runs a transcript, reports every answer that differs, and returns the
// transcript with the answers given.
func (l *teller) tell(t *testing.T, name string, text []byte) []byte {
	var told bytes.Buffer
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		fmt.Fprintln(&told, line)
		switch {
		case line == "----":
			var want strings.Builder
			more := false
			for n++; lines.Scan(); n++ {
				if more = lines.Text() == ""; more {
					break
				}
				fmt.Fprintln(&want, lines.Text())
			}
			got := l.out.String()
			if l.out.Reset(); got != want.String() && !*rewrite {
				t.Errorf("%s:%d: got\n%swant\n%s", name, n, got, want.String())
			}
			told.WriteString(got)
			if more {
				fmt.Fprintln(&told)
			}
		case line != "" && line[0] != '#':
			if err := l.command(strings.Fields(line)); err != nil {
				t.Fatalf("%s:%d: %s: %v", name, n, line, err)
			}
			if l.s != nil {
				if err := l.s.Check(); err != nil {
					t.Fatalf("%s:%d: %s: %v", name, n, line, err)
				}
			}
		}
	}
	return told.Bytes()
}

func (l *teller) say(format string, args ...any) { fmt.Fprintf(&l.out, format+"\n", args...) }

// id returns the attempt that a name stands for.
func (l *teller) id(name string) job.AttemptID {
	id, ok := l.names[name]
	if !ok {
		id = attempt("a", len(l.names)+1)
		l.names[name] = id
	}
	return id
}

func (l *teller) name(id job.AttemptID) string {
	for name, known := range l.names {
		if known == id {
			return name
		}
	}
	return "?"
}

var errCommand = errors.New("not a command of the transcripts")

func (l *teller) command(words []string) error {
	o, err := parseOptions(words)
	if err != nil {
		return err
	}
	switch verb := words[0]; verb {
	case "site":
		l.names = map[string]job.AttemptID{}
		if l.s, err = New(o.cfg); err != nil {
			return err
		}
		l.say("%d processors, %s", o.cfg.Processors, o.cfg.Policy())
	case "at":
		seconds, err := strconv.ParseFloat(words[1], 64)
		l.now = job.Time(seconds * float64(second))
		return err
	case "pass":
		starts := l.s.Step(l.now, Event{Kind: Pass})
		for _, id := range starts {
			l.say("start %s", l.name(id))
		}
		if len(starts) == 0 {
			l.say("nothing starts")
		}
	case "drain", "resume":
		l.s.Step(l.now, Event{Kind: map[string]EventKind{"drain": Drain, "resume": Resume}[verb]})
	case "show":
		l.show()
	case "load":
		load := l.s.Load(l.now)
		l.say("work %g s, procs %g, free %d, %d queued, %d running",
			load.Work, load.Procs, load.Free, load.Queued, load.Running)
	case "wake":
		l.say("wake at %s", clock(l.s.NextWake(l.now)))
	default:
		return l.about(verb, words[1], o)
	}
	return nil
}

// about carries out a command about one copy.
func (l *teller) about(verb, name string, o options) error {
	c := o.copy
	c.id = l.id(name)
	if !o.hasArrival {
		c.arrival = l.now
	}
	whole := c.copy()
	switch verb {
	case "enqueue":
		if err := l.s.cfg.Fits(&whole.Request); err != nil {
			l.say("%s: %v", name, err)
			return nil
		}
		l.s.Step(l.now, Event{Kind: Enqueue, Copy: c})
	case "adopt":
		l.s.Step(l.now, Event{Kind: Adopt, Copy: c, At: o.at})
	case "withdraw", "confirm", "finish", "postpone":
		for k := range eventKinds {
			if k.String() == verb {
				l.s.Step(l.now, Event{Kind: k, ID: c.id, At: o.at})
			}
		}
	case "whatif":
		p, err := l.s.WhatIf(l.now, whole)
		if err != nil {
			l.say("%s: %v", name, err)
			return nil
		}
		if p.Start == job.Never {
			l.say("%s would never start", name)
			return nil
		}
		l.say("%s would start at %s%s", name, clock(p.Start), map[bool]string{false: ", roughly"}[p.Exact])
	case "earliest":
		l.say("earliest hole for %s at %s", name, clock(l.s.earliestStart(l.now, &c)))
	default:
		return errCommand
	}
	return nil
}

func (l *teller) show() {
	for c := range l.s.Running {
		l.say("running %-4s %d processors until %s%s", l.name(c.Copy.ID), l.s.cfg.Charge(&c.Copy.Request), clock(c.End),
			map[bool]string{true: ", reserved"}[c.Reserved])
	}
	for c := range l.s.Queued {
		text := fmt.Sprintf("queued  %-4s %d processors for %d s", l.name(c.Copy.ID), l.s.cfg.Charge(&c.Copy.Request), c.Copy.Request.Walltime/time.Second)
		if c.Copy.Remote {
			text += ", remote"
		}
		if c.Guarantee != job.Never {
			text += ", guaranteed at " + clock(c.Guarantee)
		}
		if c.NotBefore > 0 {
			text += ", not before " + clock(c.NotBefore)
		}
		l.say("%s", text)
	}
	l.say("%d free", l.s.free)
}

func clock(t job.Time) string {
	if t == job.Never {
		return "never"
	}
	return strconv.FormatFloat(time.Duration(t).Seconds(), 'f', -1, 64)
}

type options struct {
	cfg        Config
	copy       entry
	at         job.Time
	hasArrival bool
}

// parseOptions reads the words of the form name=value and the word remote.
func parseOptions(words []string) (o options, err error) {
	for _, w := range words[1:] {
		name, value, ok := strings.Cut(w, "=")
		if w == "remote" {
			o.copy.remote = true
		}
		if !ok {
			continue
		}
		n, numberErr := strconv.ParseInt(value, 10, 64)
		switch name {
		case "backfill":
			o.cfg.Backfill, err = ParseBackfill(value)
		case "queues":
			o.cfg.Queues, err = ParseQueues(value)
		case "scope":
			o.cfg.Scope, err = ParseScope(value)
		default:
			err = numberErr
		}
		switch name {
		case "processors":
			o.cfg.Processors = int32(n)
		case "steps":
			o.cfg.WhatIfSteps = n
		case "memory":
			o.cfg.MemoryBytes, o.copy.memoryBytes = n, n
		case "procs":
			o.copy.processors = int32(n)
		case "wall":
			o.copy.walltime = time.Duration(n) * time.Second
		case "since", "until":
			o.at = job.Time(n) * second
		case "arrival":
			o.copy.arrival, o.hasArrival = job.Time(n)*second, true
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}
