package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// harmVerb is "kith harm", what guests cost the jobs of a site.
func harmVerb(c *client) *cobra.Command {
	days := int32(7)
	cmd := &cobra.Command{
		Use:   "harm [--days N]",
		Short: "Show what jobs of other sites cost those of this one",
		Long: `Show what jobs of other sites cost those that were submitted at this one, and what
they got. It is about jobs that started in the last days, as far as the site
remembers them.

BLOCKED is for how long other sites' jobs, and nothing else, kept a job waiting:
without them it would have been started. PROMISES MOVED are guarantees of a start
that other sites' jobs broke: none. The rest compares with a schedule of this
site's own jobs alone, without guests and without other sites that help: who
started later than there, who sooner, and by how much in all. Single jobs move
both ways whatever guests do; the sums tell.`,
		Example: `  kith harm
  kith harm --days 28 --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days < 1 || days > 3660 {
				return cli.Usagef("harm: --days %d: give 1 to 3660", days)
			}
			return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
				r, err := s.sites.GetHarm(ctx, &kithv1.GetHarmRequest{Days: days})
				if err != nil {
					return err
				}
				return c.printMessage(r, func() string { return c.harmText(r, days) })
			})
		},
	}
	cmd.Flags().Int32Var(&days, "days", days, "of jobs that started in so many days")
	return cmd
}

// share writes a part of a whole in percent.
func share(part, whole int64) string {
	if whole == 0 {
		return cli.Nothing
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

// shift writes a delay with its sign.
func shift(seconds float64) string {
	if seconds <= -0.5 { // less is no second
		return "-" + cli.Seconds(-seconds)
	}
	return "+" + cli.Seconds(seconds)
}

var harmClasses = [...]string{"short, narrow", "short, wide", "long, narrow", "long, wide"}

func (c *client) harmText(r *kithv1.GetHarmResponse, days int32) string {
	var b strings.Builder
	say := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%-16s  %s\n", label, fmt.Sprintf(format, args...))
	}
	f, n := r.GetJobs(), r.GetCounters()
	say("JOBS", "%s of this site started in %s", cli.Plural(f.GetJobs(), "job", "jobs"), cli.Plural(int64(days), "day", "days"))
	if r.GetFirstTime() != nil && r.GetFirstTime().AsTime().After(r.GetSinceTime().AsTime()) {
		say("", "what ended before %s is not remembered", c.at(r.GetFirstTime()))
	}
	if !r.GetPromises() {
		say("PROMISES", "none are made: guests and home jobs have one queue here, or a batch system decides")
	} else {
		say("PROMISES MOVED", "%d", f.GetPromisesMoved())
	}
	if n.GetMeasured() {
		say("BLOCKED", "%d by guests alone (%s), %d for more than 10 min, %d for more than 1 h; %s in all, %s at most", f.GetBlockedJobs(), share(f.GetBlockedJobs(), f.GetJobs()),
			f.GetBlocked_10MJobs(), f.GetBlocked_1HJobs(), cli.Seconds(f.GetBlockedSeconds()), cli.Seconds(f.GetWorstBlockedSeconds()))
		say("VIOLATIONS", "%d blocked for more than %s", f.GetViolations(), spanOf(r.GetBound()))
		say("BLOCKED NOW", "%s", cli.Plural(int64(n.GetBlockedNow()), "job", "jobs"))
	} else {
		say("BLOCKED", "not measured: a batch system schedules the jobs of this site")
	}
	if r.GetShadowTime() == nil {
		return b.String() + harmGuests(r)
	}
	lag := r.GetTime().AsTime().Sub(r.GetShadowTime().AsTime())
	say("WITHOUT GUESTS", "known up to %s, %s behind", c.at(r.GetShadowTime()), cli.Span(lag))
	if r.GetAssumedJobs() > 0 {
		say("", "%s by limits alone, as nobody knows for a week how long they run", cli.Plural(r.GetAssumedJobs(), "job", "jobs"))
	}
	if n := f.GetJobs() - f.GetComparedJobs(); n > 0 {
		say("", "%s not in what follows: still waiting in that schedule, too wide for this site, or not got to yet", cli.Plural(n, "job is", "jobs are"))
	}
	if f.GetComparedJobs() > 0 {
		say("WAIT", "%s on average, %s without guests and other sites", cli.Seconds(f.GetWaitSeconds()), cli.Seconds(f.GetAloneWaitSeconds()))
		say("DELAYS AND GAINS", "%s lost by some, %s gained by others", cli.Seconds(f.GetDelaysSeconds()), cli.Seconds(f.GetGainsSeconds()))
	}
	b.WriteString(harmGuests(r))
	if f.GetComparedJobs() > 0 {
		b.WriteString("\n" + c.harmTable(r).Render(c.Width))
	}
	return b.String()
}

func harmGuests(r *kithv1.GetHarmResponse) string {
	text := fmt.Sprintf("%-16s  %s started here, %.1f processor hours, %s wait on average\n", "GUESTS", cli.Plural(r.GetGuestAttempts(), "job", "jobs"),
		r.GetGuestProcessorSeconds()/time.Hour.Seconds(), cli.Seconds(r.GetGuestWaitSeconds()))
	var caps []string
	if d := r.GetGuestWalltime(); d.AsDuration() > 0 {
		caps = append(caps, "limits of at most "+spanOf(d))
	}
	if k := r.GetKeepFree(); k > 0 {
		caps = append(caps, cli.Plural(int64(k), "processor is", "processors are")+" kept free of them")
	}
	if len(caps) > 0 {
		text += fmt.Sprintf("%-16s  %s\n", "", strings.Join(caps, ", "))
	}
	return text
}

// harmTable has a row for all jobs and one for each class that has any.
func (c *client) harmTable(r *kithv1.GetHarmResponse) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{
		{Title: "CLASS"}, {Title: "JOBS", Right: true}, {Title: "DELAY", Right: true}, {Title: "95 % UP TO", Right: true},
		{Title: "> 1 min", Right: true}, {Title: "> 10 min", Right: true}, {Title: "> 1 h", Right: true}, {Title: "BLOCKED", Right: true},
	}}
	row := func(name string, f *kithv1.HarmFigures) {
		if n := f.GetComparedJobs(); n > 0 {
			g.Add(name, fmt.Sprint(n), shift(f.GetDelaySeconds()), shift(f.GetDelayP95Seconds()), share(f.GetLater_1MJobs(), n), share(f.GetLater_10MJobs(), n),
				share(f.GetLater_1HJobs(), n), share(f.GetBlockedJobs(), f.GetJobs()))
		}
	}
	row("all", r.GetJobs())
	for i, f := range r.GetClasses() {
		if i < len(harmClasses) {
			row(harmClasses[i], f)
		}
	}
	return g
}
