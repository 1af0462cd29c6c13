package faults

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"kith/internal/job"
)

// Waits is what a job or a bag of a schedule waits for, all of it of the same site. A client
// submits it when it knows the ids of that.
type Waits struct {
	// Name is that of the submission, empty for one that no other has.
	Name  string
	After [mostAfter]Dependency
}

const mostAfter = 3

// Dependency is one on a job or a bag of the schedule, or with [job.Singleton] on none. The
// zero value is none.
type Dependency struct {
	Condition job.Condition
	Job, Bag  int // number, 0 for none
}

// none reports whether there is nothing to wait for.
func (d Dependency) none() bool { return d.Condition == 0 }

// named returns the name of a submission.
func (w *Waits) named(standard string) string {
	if w.Name != "" {
		return w.Name
	}
	return standard
}

// words returns those of a line.
func (w *Waits) words() string {
	text := ""
	if w.Name != "" {
		text = " name=" + w.Name
	}
	var after []string
	for _, d := range w.After {
		switch {
		case d.none():
		case d.Condition == job.Singleton:
			after = append(after, d.Condition.String())
		case d.Bag > 0:
			after = append(after, fmt.Sprintf("%v:bag%d", d.Condition, d.Bag))
		default:
			after = append(after, fmt.Sprintf("%v:%d", d.Condition, d.Job))
		}
	}
	if len(after) > 0 {
		text += " after=" + strings.Join(after, ",")
	}
	return text
}

// waits reads the words of a line.
func (l *line) waits() (w Waits) {
	if w.Name = l.named("name", ""); len(w.Name) > 64 {
		l.fail("name=%.20s…: at most 64 bytes", w.Name)
	}
	text := l.named("after", "")
	if text == "" {
		return w
	}
	words := strings.Split(text, ",")
	if len(words) > mostAfter {
		l.fail("after=%.80s: at most %d", text, mostAfter)
		return w
	}
	for i, word := range words {
		condition, on, _ := strings.Cut(word, ":")
		d := &w.After[i]
		for c := job.AfterOK; c.Known(); c++ {
			if c.String() == condition {
				d.Condition = c
			}
		}
		number, ofBag := strings.CutPrefix(on, "bag")
		n, err := strconv.Atoi(number)
		if d.Condition == job.Singleton && on == "" {
			continue
		}
		if d.none() || d.Condition == job.Singleton || err != nil || n < 1 {
			l.fail("after=%.40s: choose afterok, afterany or afternotok with the number of a job or bag, as afterok:3 or afterany:bag1, or singleton", word)
			return w
		}
		if ofBag {
			d.Bag = n
		} else {
			d.Job = n
		}
	}
	return w
}

// place is where a schedule has a job or a bag.
type place struct {
	what  string
	from  *job.SiteID
	at    *time.Duration
	waits *Waits
}

// places returns the jobs of a schedule, and behind them its bags.
func (s *Schedule) places() []place {
	list := make([]place, 0, len(s.Jobs)+len(s.Bags))
	for i := range s.Jobs {
		j := &s.Jobs[i]
		list = append(list, place{fmt.Sprint("job ", j.Number), &j.From, &j.At, &j.Waits})
	}
	for i := range s.Bags {
		b := &s.Bags[i]
		list = append(list, place{fmt.Sprint("bag ", b.Number), &b.From, &b.At, &b.Waits})
	}
	return list
}

// on returns which of the places a dependency is on, -1 for none.
func (s *Schedule) on(d Dependency) int {
	for i := range s.Jobs {
		if d.Job == s.Jobs[i].Number {
			return i
		}
	}
	for i := range s.Bags {
		if d.Bag == s.Bags[i].Number {
			return len(s.Jobs) + i
		}
	}
	return -1
}

// checkWaits finds dependencies on what is not there, or is of another site, and circles.
func (s *Schedule) checkWaits() error {
	list := s.places()
	settled := make([]bool, len(list))
	for again := true; again; {
		left := ""
		again = false
		for i, p := range list {
			if settled[i] {
				continue
			}
			waits := false
			for _, d := range p.waits.After {
				if d.none() || d.Condition == job.Singleton {
					continue
				}
				on := s.on(d)
				if on < 0 || *list[on].from != *p.from {
					return fmt.Errorf("%s:%s: there is no such thing at site %s", p.what, p.waits.words(), *p.from)
				}
				waits = waits || !settled[on]
			}
			if waits {
				left = p.what
			} else {
				settled[i], again = true, true
			}
		}
		if !again && left != "" {
			return fmt.Errorf("%s: waits for itself", left)
		}
	}
	return nil
}

// forgetDependencies drops those on what was left out.
func (s *Schedule) forgetDependencies() {
	list := s.places()
	for _, p := range list {
		for i, d := range p.waits.After {
			if d.none() || d.Condition == job.Singleton {
				continue
			}
			if on := s.on(d); on < 0 || *list[on].from != *p.from {
				p.waits.After[i] = Dependency{}
			}
		}
	}
}

// someDependencies has jobs and bags of one site wait for each other, in every third
// schedule. The draws are its own, and begin so that the seeds which tests name are without.
func (s *Schedule) someDependencies() {
	d := &draw{Rand: rand.New(rand.NewPCG(s.Seed, dependenciesBeside)), s: s}
	if !d.one(3) {
		return
	}
	list, home := s.places(), d.site()
	order := d.Perm(len(list))
	if most := 2 + d.IntN(8); len(order) > most {
		order = order[:most]
	}
	for n, i := range order {
		x := list[i]
		*x.from = home
		if d.one(3) {
			x.waits.Name = fmt.Sprint("group-", d.IntN(2))
		}
		if n == 0 {
			continue
		}
		for k := range 1 + d.IntN(mostAfter) {
			c := []job.Condition{job.AfterOK, job.AfterOK, job.AfterAny, job.AfterNotOK, job.Singleton}[d.IntN(5)]
			if c == job.Singleton {
				if x.waits.Name != "" {
					x.waits.After[k].Condition = c
				}
				continue
			}
			on := order[d.IntN(n)]
			if x.waits.After[k].Condition = c; on < len(s.Jobs) {
				x.waits.After[k].Job = s.Jobs[on].Number
			} else {
				x.waits.After[k].Bag = s.Bags[on-len(s.Jobs)].Number
			}
			if d.one(2) { // while that may still run
				*x.at = min(*list[on].at+d.upTo(time.Minute), s.End)
			}
		}
	}
}

// dependenciesBeside begins the draws of [Schedule.someDependencies].
const dependenciesBeside = 54

// after returns what a submission waits for, and false if its client has yet to learn an id
// of that. What was refused is left out.
func (x *run) after(w *Waits) (after []job.Dependency, known bool) {
	for _, d := range w.After {
		switch {
		case d.none():
			continue
		case d.Condition == job.Singleton:
			after = append(after, job.Dependency{Condition: d.Condition})
			continue
		}
		id, ok := x.ids[d.Job]
		if d.Bag > 0 {
			id, ok = x.bags[d.Bag]
		}
		switch {
		case !ok:
			return nil, false
		case !id.IsZero():
			after = append(after, job.Dependency{On: id, Condition: d.Condition})
		}
	}
	return after, true
}

// retry is how often a client looks whether it knows what a submission is to wait for.
const retry = time.Second

// simplifyWaits leaves out what is waited for, one after another.
func (k *shrinker) simplifyWaits() {
	for i := range k.best.places() {
		for n := range mostAfter {
			if !k.best.places()[i].waits.After[n].none() {
				k.try(func(s *Schedule) { s.places()[i].waits.After[n] = Dependency{} })
			}
		}
		if k.best.places()[i].waits.Name != "" {
			k.try(func(s *Schedule) { s.places()[i].waits.Name = "" })
		}
	}
}
