package faults

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"kith/internal/job"
	"kith/testbed/sim"
)

// unending is how long an estimator takes that does not stop.
const unending = 24 * time.Hour

// estimates reports whether jobs of a schedule of levels bring estimators.
func (s *Schedule) estimates() bool { return s.Seed%3 != 0 }

// bringEstimators has most jobs of a hierarchy bring an estimator. What it says is about what its job
// needs, far more or far less, from attempt to attempt something else, rising, nonsense or nothing;
// some never stop. More goes wrong around the start of attempts and their end. It has draws of its own,
// so that the schedule is else what it was.
func (s *Schedule) bringEstimators() {
	d := &draw{Rand: rand.New(rand.NewPCG(s.Seed, 0x657374696d617465)), s: s}
	for i := range s.Sites {
		if x := &s.Sites[i]; x.Rank > 0 {
			x.Alpha = []float64{0.06, 0.06, 0.3, 0.9, 0}[d.IntN(5)]
		}
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.Level == 0 || d.one(4) {
			continue
		}
		for range 1 + d.IntN(3) {
			j.Estimators = append(j.Estimators, d.estimator(j))
		}
	}
	kinds := []Kind{Crash, Crash, Freeze, Reboot, Isolate}
	around := []string{"launch", "started", "result", "result-ack", "place-copy", "verdict", "ask-checkpoint"}
	for range d.IntN(4) {
		s.Faults = append(s.Faults, Fault{
			Kind: kinds[d.IntN(len(kinds))], For: d.upTo(5 * time.Minute), Site: d.site(),
		})
		f := &s.Faults[len(s.Faults)-1]
		f.Before = &Point{Site: f.Site, Effect: around[d.IntN(len(around))], Nth: 1 + d.IntN(12)}
	}
}

func (d *draw) estimator(j *Job) sim.Estimator {
	e := sim.Estimator{Takes: d.upTo(20 * time.Second)}
	if d.one(6) {
		e.Takes = unending
	}
	work := j.Run.Seconds() * float64(j.Processors)
	factors := []float64{0.02, 0.5, 1, 1, 1.5, 4, 30, 1000}
	for range d.IntN(5) {
		if d.one(6) {
			e.Lines = append(e.Lines, boundLine([]string{"x", "-5", "0", "nan", "1e999"}[d.IntN(5)]))
		} else {
			e.Lines = append(e.Lines, boundLine(strconv.FormatFloat(work*factors[d.IntN(len(factors))], 'f', 1, 64)))
		}
	}
	return e
}

const boundWord = "bound "

func boundLine(word string) string { return boundWord + word }

// estimating is how long the estimators of a job take at most in one of its attempts.
func (s *Schedule) estimating(j *Job) (longest time.Duration) {
	if len(j.Estimators) == 0 {
		return 0
	}
	for i := range s.Sites {
		longest = max(longest, time.Duration(s.Sites[i].Alpha*float64(s.Sites[i].Use)))
	}
	return longest
}

// estimatorWords writes estimators as [line.estimators] reads them: of each attempt how long it takes and
// what it says for bounds.
func estimatorWords(list []sim.Estimator) string {
	words := make([]string, len(list))
	for i, e := range list {
		words[i] = e.Takes.String() + ":"
		for n, line := range e.Lines {
			if n > 0 {
				words[i] += ","
			}
			words[i] += strings.TrimPrefix(line, boundWord)
		}
	}
	return strings.Join(words, ";")
}

func (l *line) estimators() (list []sim.Estimator) {
	text := l.named("estimate", "")
	if text == "" {
		return nil
	}
	for one := range strings.SplitSeq(text, ";") {
		takes, says, _ := strings.Cut(one, ":")
		span, err := time.ParseDuration(takes)
		if err != nil || span < 0 || span > maxSpan || len(list) >= job.MaxAttempts {
			l.fail("estimate=%s: choose how long it takes and the bounds that it says, as 5s:120,90, with semicolons between those of one attempt and the next", text)
			return nil
		}
		e := sim.Estimator{Takes: span}
		for word := range strings.SplitSeq(says, ",") {
			if word != "" {
				e.Lines = append(e.Lines, boundLine(word))
			}
		}
		list = append(list, e)
	}
	return list
}

// alpha reads which part of a run an estimator may take.
func (l *line) alpha() float64 {
	text := l.named("alpha", "0")
	part, err := strconv.ParseFloat(text, 64)
	if !(part >= 0 && part < 1) || err != nil {
		l.fail("alpha=%s: choose a part from 0 to below 1", text)
		return 0
	}
	return part
}
