package scenarios

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"kith/internal/job"
	"kith/testbed/check/faults"
)

//go:embed *.txt
var files embed.FS

// Scenario is a schedule with a name.
type Scenario struct {
	Name     string
	Schedule *faults.Schedule
	Expected []Expectation
}

// Expectation is what must have become of a job.
type Expectation struct {
	Job     int
	State   string
	Host    job.SiteID // "" for any
	Attempt uint32     // 0 for any
	// Starts is how many processes there were, -1 for any number.
	Starts int
	// From and To bound the last start; zero for no bound.
	From, To time.Duration
}

// All returns all scenarios by name.
func All() ([]Scenario, error) {
	names, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var list []Scenario
	for _, f := range names {
		text, err := files.ReadFile(f.Name())
		if err != nil {
			return nil, err
		}
		s, err := Parse(strings.TrimSuffix(f.Name(), path.Ext(f.Name())), string(text))
		if err != nil {
			return nil, fmt.Errorf("scenario %s: %w", f.Name(), err)
		}
		list = append(list, s)
	}
	return list, nil
}

// Parse reads a scenario. Its errors wrap [faults.ErrSchedule].
func Parse(name, text string) (Scenario, error) {
	s := Scenario{Name: name}
	var rest strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "expect ") {
			rest.WriteString(line)
			continue
		}
		rest.WriteByte('\n') // so that errors name the right line
		x, err := expectation(strings.Fields(line)[1:])
		if err != nil {
			return s, fmt.Errorf("%.80q: %w: %w", strings.TrimSpace(line), err, faults.ErrSchedule)
		}
		s.Expected = append(s.Expected, x)
	}
	var err error
	s.Schedule, err = faults.Parse(rest.String())
	return s, err
}

func expectation(words []string) (Expectation, error) {
	x := Expectation{Starts: -1}
	if len(words) < 2 {
		return x, errors.New("write expect JOB STATE")
	}
	var err error
	if x.Job, err = strconv.Atoi(words[0]); err != nil {
		return x, fmt.Errorf("job %q: choose a number", words[0])
	}
	x.State = words[1]
	for _, w := range words[2:] {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "host":
			x.Host = job.SiteID(v)
		case "attempt":
			var n uint64
			n, err = strconv.ParseUint(v, 10, 32)
			x.Attempt = uint32(n) // 32 bits were asked for
		case "starts":
			x.Starts, err = strconv.Atoi(v)
		case "from":
			x.From, err = time.ParseDuration(v)
		case "to":
			x.To, err = time.ParseDuration(v)
		default:
			err = fmt.Errorf("%s: choose host, attempt, starts, from or to", k)
		}
		if err != nil {
			return x, fmt.Errorf("%s: %w", w, err)
		}
	}
	return x, nil
}

// Run plays a scenario and returns all that is not as it should be, joined.
func (s *Scenario) Run(trace func(line string)) error {
	r := faults.Run(s.Schedule, trace)
	var errs []error
	if r.Violation != nil {
		errs = append(errs, r.Violation)
	}
	for _, x := range s.Expected {
		if err := x.check(r.Jobs[x.Job]); err != nil {
			errs = append(errs, fmt.Errorf("job %d: %w", x.Job, err))
		}
	}
	return errors.Join(errs...)
}

func (x *Expectation) check(f faults.Fate) error {
	var last time.Duration
	if n := len(f.Starts); n > 0 {
		last = slices.Max(f.Starts)
	}
	switch {
	case f.State.String() != x.State:
		return fmt.Errorf("it is %v, expected %s", f.State, x.State)
	case x.Host != "" && f.Holder != x.Host:
		return fmt.Errorf("its host is %q, expected %s", f.Holder, x.Host)
	case x.Attempt != 0 && f.Attempt != x.Attempt:
		return fmt.Errorf("it ended in attempt %d, expected %d", f.Attempt, x.Attempt)
	case x.Starts >= 0 && len(f.Starts) != x.Starts:
		return fmt.Errorf("it was started %d times, at %v, expected %d", len(f.Starts), f.Hosts, x.Starts)
	case last < x.From:
		return fmt.Errorf("it was started at %v, expected from %v on", last, x.From)
	case x.To > 0 && last > x.To:
		return fmt.Errorf("it was started at %v, expected until %v", last, x.To)
	}
	return nil
}
