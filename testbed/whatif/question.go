package whatif

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kith/internal/job"
	"kith/sitesched"
	"kith/testbed/report"
)

// Attempt is an attempt of a job that has ended, as the site tells it.
type Attempt struct {
	// Origin is where its job was submitted, Host where it ran, "" if nowhere.
	Origin, Host job.SiteID
	// User stands for its user at the origin.
	User int64
	// Submit is when the job was submitted, or at a host that is not the origin when its
	// copy came. Start is zero if the command never began.
	Submit, Start, End time.Time
	// Run is how long it ran and Limit its walltime, on a processor of speed 1.
	Run, Limit time.Duration
	Processors int32
}

// Question is what is asked about a site.
type Question struct {
	// Site is the site, Now when it is asked.
	Site job.SiteID
	Now  time.Time
	// Days is how many days back the past reaches: jobs that ended earlier do not count.
	Days int
	// Config is the site as it is, and Speed that of its processors; zero means 1.
	Config  sitesched.Config
	Speed   float64
	Changes Changes
	// Seed is that of the jobs that are drawn for more load.
	Seed uint64
}

// Changes are what is to be different. Zero values leave the site as it is.
type Changes struct {
	// AddLoad is how much more work comes in, as a share of what came.
	AddLoad float64
	// Backfill and Queues are another discipline.
	Backfill *sitesched.Backfill
	Queues   *sitesched.Queues
	// Processors is another size.
	Processors int32
	// GuestWalltime is the longest time limit of a guest; those with longer ones are refused.
	GuestWalltime time.Duration
	// Lose are sites that are gone: what they sent does not come, and what of this site's
	// jobs they ran has to run here.
	Lose []job.SiteID
}

// Bounds of a question.
const (
	// MaxDays is the longest past, MaxAddLoad the most that can be added, MaxJobs how many
	// jobs there may be in all.
	MaxDays    = 3660
	MaxAddLoad = 10
	MaxJobs    = 2_000_000
	// maxGuests is how many sites have rows of their own in the answer; the others share one.
	maxGuests = 12
)

// Errors of [Open]; the texts say what is wrong and what to do.
var (
	// ErrQuestion is wrapped where the question makes no sense.
	ErrQuestion = errors.New("not a question that can be answered")
	// ErrNoPast is wrapped where nothing is known that could be replayed.
	ErrNoPast = errors.New("nothing is past")
)

// problem is a text that wraps an error without its words.
type problem struct {
	text string
	kind error
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.kind }

func wrong(format string, args ...any) error {
	return &problem{fmt.Sprintf(format, args...), ErrQuestion}
}

func nothing(format string, args ...any) error {
	return &problem{fmt.Sprintf(format, args...), ErrNoPast}
}

// Validate returns what is wrong with the question itself; whether the past can answer it
// [Open] finds out.
func (q *Question) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, wrong(format, args...)) }
	c := &q.Changes
	if q.Days < 1 || q.Days > MaxDays {
		bad("days %d: give 1 to %d", q.Days, MaxDays)
	}
	if !(c.AddLoad >= 0 && c.AddLoad <= MaxAddLoad) {
		bad("add-load %v%%: give a share above 0%% and up to %d%%", 100*c.AddLoad, 100*MaxAddLoad)
	}
	if c.Processors < 0 || c.Processors > job.MaxProcessors {
		bad("processors %d: give 1 to %d", c.Processors, job.MaxProcessors)
	}
	if c.GuestWalltime < 0 || c.GuestWalltime > job.MaxWalltime {
		bad("guest-walltime %v: give more than 0 and at most 10 years", c.GuestWalltime)
	}
	for i, s := range c.Lose {
		switch {
		case s == q.Site:
			bad("lose %s: is the site itself; name another one", s)
		case slices.Contains(c.Lose[:i], s):
			bad("lose %s: is named twice", s)
		}
	}
	if q.Speed < 0 || math.IsNaN(q.Speed) || math.IsInf(q.Speed, 0) {
		bad("speed %v: must be a number above 0", q.Speed)
	}
	if err := q.Config.Validate(); err != nil {
		bad("site %s: %v", q.Site, err)
	}
	return errors.Join(errs...)
}

// Any reports whether anything is to be different.
func (c *Changes) Any() bool {
	return c.AddLoad > 0 || c.Backfill != nil || c.Queues != nil || c.Processors > 0 || c.GuestWalltime > 0 || len(c.Lose) > 0
}

// changed is the site as it would be.
func (q *Question) changed() sitesched.Config {
	cfg, c := q.Config, &q.Changes
	if c.Processors > 0 {
		cfg.Processors = c.Processors
	}
	if c.Backfill != nil {
		cfg.Backfill = *c.Backfill
	}
	if c.Queues != nil {
		cfg.Queues = *c.Queues
	}
	return cfg
}

func (q *Question) speed() float64 {
	if q.Speed == 0 {
		return 1
	}
	return q.Speed
}

// Words says what is to be different, for people: "with 20% more load and 64 instead of 128
// processors".
func (q *Question) Words() string {
	var parts []string
	c := &q.Changes
	if c.AddLoad > 0 {
		parts = append(parts, percentWords(c.AddLoad)+" more load")
	}
	if c.Processors > 0 {
		parts = append(parts, fmt.Sprintf("%s instead of %d", report.Count(int(c.Processors), "processor", "processors"), q.Config.Processors))
	}
	was, then := q.Config, q.changed()
	if c.Backfill != nil {
		parts = append(parts, "backfill "+then.Backfill.String()+instead(was.Backfill.String(), then.Backfill.String()))
	}
	if c.Queues != nil {
		parts = append(parts, "queues "+then.Queues.String()+instead(was.Queues.String(), then.Queues.String()))
	}
	if c.GuestWalltime > 0 {
		parts = append(parts, "guests of at most "+report.Span(c.GuestWalltime.Seconds()))
	}
	text := ""
	if len(parts) > 0 {
		text = "with " + list(parts)
	}
	if len(c.Lose) > 0 {
		names := make([]string, len(c.Lose))
		for i, s := range c.Lose {
			names[i] = string(s)
		}
		text = strings.TrimSpace(text + " without " + list(names))
	}
	return text
}

func instead(was, then string) string {
	if was == then {
		return " as now"
	}
	return " instead of " + was
}

func percentWords(share float64) string { return fmt.Sprintf("%.4g%%", 100*share) }

// list writes some words as in a sentence.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
