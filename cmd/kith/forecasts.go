package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// forecastsVerb is "kith forecasts".
func forecastsVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "forecasts",
		Short: "Show how often this site's forecasts held",
		Long: `Show how often this site's forecasts held: of the last 1,000 ranges of 80 %, how
many had the truth within them, and how many jobs started earlier or later, ran for
less or for longer. Ranges are good if 800 of 1,000 hold: if more do they are too
wide. A truth that ties with a bound counts by the part of it inside.

Starts are those of jobs that were submitted here and had to wait. LOSS is the mean
pinball loss over nine levels: the less, the better. WIDTH is the mean width of the
ranges.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				r, err := s.sites.GetForecasts(ctx, &kithv1.GetForecastsRequest{})
				if err != nil {
					return err
				}
				return c.printMessage(r, func() string { return c.forecastsText(r) })
			})
		},
	}
}

// forecastsText is how forecasts did, for people.
func (c *client) forecastsText(r *kithv1.GetForecastsResponse) string {
	if !r.GetEnabled() {
		return "This site makes no forecasts: forecast.enabled is off in its configuration.\n"
	}
	var b strings.Builder
	if r.GetBegunAnew() {
		b.WriteString("What was kept of earlier forecasts could not be read: these figures begin with the start of this daemon.\n\n")
	}
	b.WriteString("When jobs would start, those that had to wait:\n")
	b.WriteString(c.recordTable("STARTED EARLIER", "STARTED LATER", r.GetStarts()))
	u := r.GetUnscored()
	if n := u.GetCancelled() + u.GetHeld() + u.GetReplaced() + u.GetAtOnce() + u.GetNotMade(); n > 0 {
		fmt.Fprintf(&b, "Not counted: %d cancelled and %d held before they started, %d placed anew, %d started at once, %d that no site had a forecast of in time.\n",
			u.GetCancelled(), u.GetHeld(), u.GetReplaced(), u.GetAtOnce(), u.GetNotMade())
	}
	b.WriteString("\nHow long jobs would run:\n")
	b.WriteString(c.recordTable("RAN FOR LESS", "RAN FOR LONGER", r.GetRuns()))
	fmt.Fprintf(&b, "Learnt from %d run times.\n", r.GetLearnt())
	return b.String()
}

func (c *client) recordTable(earlier, later string, list []*kithv1.ForecastRecord) string {
	g := cli.Grid{Columns: []cli.Column{
		{Title: "CLASS", Elastic: true}, {Title: "RANGES", Right: true}, {Title: "HELD", Right: true}, {Title: earlier, Right: true}, {Title: later, Right: true},
		{Title: "LOSS", Right: true}, {Title: "WIDTH", Right: true},
	}}
	for _, r := range list {
		if r.GetForecasts() == 0 {
			g.Add(r.GetClass(), "0", cli.Nothing, cli.Nothing, cli.Nothing, cli.Nothing, cli.Nothing)
			continue
		}
		n := float64(r.GetForecasts())
		g.Add(r.GetClass(), fmt.Sprint(r.GetForecasts()), percent(r.GetHeld()/n), percent(r.GetEarlier()/n), percent(r.GetLater()/n),
			fmt.Sprintf("%.3g s", r.GetPinballSeconds()), cli.Seconds(r.GetWidthSeconds()))
	}
	return g.Render(c.Width)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// forecastLine says in a line when a job starts; empty if nothing is known.
func (c *client) forecastLine(f *kithv1.StartForecast) string {
	if f == nil || f.GetLow() == nil || f.GetEnd() != kithv1.StartForecast_END_OPEN {
		return ""
	}
	return fmt.Sprintf("starts %s, probably %s (80 %%)", c.between(f.GetLow(), f.GetHigh()), c.shortTime(f.GetMedian(), f.GetHigh()))
}

func (c *client) between(low, high *timestamppb.Timestamp) string {
	from, to := c.shortTime(low, high), c.shortTime(high, high)
	if from == to {
		return "at about " + to
	}
	return "between " + from + " and " + to
}

// shortTime is an instant that is soon: without the day if all of it lies within a day from
// now, with seconds if it lies within ten minutes.
func (c *client) shortTime(t, last *timestamppb.Timestamp) string {
	ahead := last.AsTime().Sub(c.Now())
	layout := "2006-01-02 15:04"
	switch {
	case ahead < 10*time.Minute:
		layout = time.TimeOnly
	case ahead < 20*time.Hour:
		layout = "15:04"
	}
	return t.AsTime().In(c.Zone).Format(layout)
}

// How long kith submit waits for a forecast: most are there within some milliseconds, and
// those of other sites take a message there and back.
const (
	firstLook    = 10 * time.Millisecond
	forecastWait = 700 * time.Millisecond
)

// forecastOf returns when a job that was just submitted starts, in a line; empty if it
// started at once, or if that is not known soon.
func (c *client) forecastOf(ctx context.Context, s *site, id string) string {
	ctx, cancel := context.WithTimeout(ctx, forecastWait)
	defer cancel()
	for wait := firstLook; ; wait = min(2*wait, 100*time.Millisecond) {
		r, err := s.jobs.GetJob(ctx, &kithv1.GetJobRequest{JobId: id})
		if err != nil {
			return "" // the job is submitted, whatever this says
		}
		if st := r.GetJob().GetStatus(); !st.GetForecastPending() || st.GetForecast() != nil {
			return c.forecastLine(st.GetForecast())
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ""
		}
	}
}

// forecastText is what was said of the start of a job, and what became of that.
func (c *client) forecastText(f *kithv1.StartForecast) string {
	var b strings.Builder
	stamp := func(t *timestamppb.Timestamp) string {
		if t == nil {
			return cli.Nothing
		}
		return c.at(t)
	}
	answered := 0
	for _, s := range f.GetSites() {
		if s.GetMedian() != nil {
			answered++
		}
	}
	fmt.Fprintf(&b, "Forecast when it was placed (%s): starts between %s and %s, probably %s (80 %%).\n",
		c.at(f.GetMadeTime()), stamp(f.GetLow()), stamp(f.GetHigh()), stamp(f.GetMedian()))
	fmt.Fprintf(&b, "It rests on %s.", basisText(f.GetBasis(), answered))
	if f.GetScored() > 0 {
		fmt.Fprintf(&b, " Such ranges held %s of the last %d times.", percent(f.GetHeldShare()), f.GetScored())
	} else {
		b.WriteString(" No such range has been compared with a start yet.")
	}
	b.WriteString("\n")
	switch f.GetEnd() {
	case kithv1.StartForecast_END_HELD:
		fmt.Fprintf(&b, "It held: started %s.\n", c.at(f.GetStartTime()))
	case kithv1.StartForecast_END_EARLIER:
		fmt.Fprintf(&b, "Missed: started %s, earlier.\n", c.at(f.GetStartTime()))
	case kithv1.StartForecast_END_LATER:
		fmt.Fprintf(&b, "Missed: started %s, later.\n", c.at(f.GetStartTime()))
	case kithv1.StartForecast_END_UNSCORED:
		b.WriteString("It was not compared with a start.\n")
	}
	g := cli.Grid{Columns: []cli.Column{{Title: "SITE"}, {Title: "NOT BEFORE"}, {Title: "PROBABLY"}, {Title: "NOT AFTER"}, {Title: "BASIS", Elastic: true}}}
	for _, s := range f.GetSites() {
		g.Add(s.GetSiteId(), stamp(s.GetLow()), stamp(s.GetMedian()), stamp(s.GetHigh()), s.GetBasis())
	}
	b.WriteString(g.Render(c.Width))
	return b.String()
}

func basisText(basis string, sites int) string {
	at := fmt.Sprintf(" at %d sites", sites)
	if sites == 1 {
		at = " at one site"
	}
	switch basis {
	case "scenarios":
		return "scenarios of the schedulers" + at
	case "limits":
		return "time limits, and how such promises came out before," + at
	case "past waits":
		return "how long such jobs waited before" + at
	}
	return cli.Clean(orDefault(basis, "nothing")) + at
}
