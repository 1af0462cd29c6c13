package whatif

import (
	"fmt"

	"kith/sitesched"
	"kith/testbed/join"
	"kith/testbed/metrics"
	"kith/testbed/report"
)

// harm reckons what guests cost the users of the site, as it is and as asked.
func (a *Answer) harm(s *Study) error {
	q := &s.q
	var away []metrics.Record
	for i := range s.past.elsewhere {
		away = append(away, q.away(&s.past.elsewhere[i]))
	}
	for _, x := range []struct {
		harm *join.Harm
		name string
		cfg  sitesched.Config
		ran  []metrics.Record
		// returned says that jobs of sites that are gone ran here.
		returned bool
	}{{&a.WasHarm, asItIs, q.Config, a.was, false}, {&a.ThenHarm, asAsked, q.changed(), a.then, true}} {
		records := append(append([]metrics.Record(nil), away...), x.ran...)
		for i := range s.past.jobs {
			if j := &s.past.jobs[i]; !j.here && !x.returned {
				records = append(records, q.away(j))
			}
		}
		metrics.BySubmission(records)
		h, err := join.HarmOf(&metrics.HarmQuestion{Site: q.Site, Config: x.cfg}, records)
		if err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		h.Site = string(q.Site) + ", " + x.name
		*x.harm = h
	}
	return nil
}

// away is a job of the site that ran at another one.
func (q *Question) away(j *pastJob) metrics.Record {
	r := q.recorded(j, 0)
	r.Site = "" // which one does not matter
	return r
}

// Harms are what guests cost, as the site is and as asked; none if no guest is in it and
// nothing ran elsewhere.
func (a *Answer) Harms() []join.Harm {
	if a.WasHarm.Guests+a.ThenHarm.Guests == 0 && a.LeftOut.Elsewhere == 0 && a.All.Returned.Jobs == 0 {
		return nil
	}
	return []join.Harm{a.WasHarm, a.ThenHarm}
}

// harmSection is the part of the page that is about guests.
func (a *Answer) harmSection() report.Section {
	list := a.Harms()
	if list == nil {
		return report.Section{Name: "harm", Title: "What guests cost", Texts: []string{fmt.Sprintf("No job of another site is in this past, and no job of %s ran elsewhere.", a.Site)}}
	}
	s := join.HarmSection(list, "")
	s.Texts = append(s.Texts, "Jobs of the site that ran at other sites started when they did, whatever is asked, and how long they were blocked in its own queue a replay does not know.")
	return s
}

// harmWords says in a sentence what becomes of what guests cost.
func (a *Answer) harmWords() string {
	was, then := &a.WasHarm, &a.ThenHarm
	line := fmt.Sprintf("What guests cost its users: they alone keep %s of its jobs waiting at some time instead of %s, %s for more than 10 min instead of %s",
		join.Part(then.Blocked, then.Jobs), join.Part(was.Blocked, was.Jobs), join.Part(then.Blocked10m, then.Jobs), join.Part(was.Blocked10m, was.Jobs))
	if then.PromisesMoved+was.PromisesMoved > 0 {
		return line + fmt.Sprintf("; and they moved %d promises, which must not be and is a fault of the scheduler.", then.PromisesMoved+was.PromisesMoved)
	}
	return line + "."
}
