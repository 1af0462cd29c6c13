package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// whyVerb is "kith why".
func whyVerb(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "why JOB",
		Short: "Explain where a job waits or ran, and why not elsewhere",
		Long: `Explain where a job waits or ran, and why not elsewhere: what its origin thought
of each site when it placed the job, where its copies are, and what happened to
its claim.

A lower score is better. It is the time that a site needs to drain its work, the
time until the job would start or end there, or the processors asked for over
those there, as the origin is configured; the weight is already in it.`,
		ValidArgsFunction: c.completeJobs(false),
		Args:              oneJob,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.dial(cmd.Context(), func(ctx context.Context, s *site) error {
				got, err := c.getJob(ctx, s, args[0])
				if err != nil {
					return c.bagOr(ctx, s, args[0], err, func(b *kithv1.Bag) error {
						return c.printWhy(ctx, s, b)
					})
				}
				return c.printMessage(got, func() string { return c.whyText(got.GetJob()) })
			})
		},
	}
}

// whyText is what a job's origin decided, for people.
func (c *client) whyText(j *kithv1.Job) string {
	s := j.GetStatus()
	var b strings.Builder
	fmt.Fprintf(&b, "Job %s", cli.Clean(j.GetId()))
	if j.GetName() != "" {
		fmt.Fprintf(&b, " (%s)", cli.Clean(j.GetName()))
	}
	fmt.Fprintf(&b, " is %s", c.stateText(j))
	why := s.GetReason()
	if ended(s.GetState()) {
		why = howItEnded(s)
	}
	if why != "" {
		fmt.Fprintf(&b, ": %s", cli.Clean(why))
	}
	b.WriteString(".\n\n")
	if s.GetState() == kithv1.JobStatus_STATE_BLOCKED {
		b.WriteString("It is placed when that has ended as it must:\n" + strings.Join(afterLines(j.GetAfter(), j.GetSingleton()), "\n") + "\n")
	} else if len(s.GetDecisions()) == 0 {
		b.WriteString("It has not been placed yet.\n")
	} else {
		b.WriteString(rankText(s.GetRank()) + "\n")
		b.WriteString(c.decisionTable(s).Render(c.Width))
	}
	if len(s.GetCopies()) > 0 {
		fmt.Fprintf(&b, "\nCopies of attempt %d:\n", s.GetAttempt())
		copies := cli.Grid{Columns: []cli.Column{{Title: "SITE"}, {Title: "STATE"}}}
		for _, copied := range s.GetCopies() {
			copies.Add(copied.GetSiteId(), copyWord(copied.GetState()))
		}
		b.WriteString(copies.Render(c.Width))
	}
	b.WriteString(levelText(s))
	if f := s.GetForecast(); f != nil {
		b.WriteString("\n" + c.forecastText(f))
	}
	if lines := c.actLines(s); len(lines) > 0 {
		b.WriteString("\nWhat people did:\n")
		for _, line := range lines {
			b.WriteString(cli.Clean(line) + "\n")
		}
	}
	if len(s.GetClaimEvents()) > 0 {
		b.WriteString("\nThe claim:\n")
		events := cli.Grid{Columns: []cli.Column{
			{Title: "TIME"}, {Title: "ATTEMPT", Right: true}, {Title: "EVENT"}, {Title: "SITE"}, {Title: "DETAIL", Elastic: true},
		}}
		for _, e := range s.GetClaimEvents() {
			events.Add(c.at(e.GetTime()), fmt.Sprint(e.GetAttempt()), eventWord(e.GetKind()),
				orDefault(e.GetSiteId(), cli.Nothing), orDefault(sentenceOf(e.GetDetail()), cli.Nothing))
		}
		b.WriteString(events.Render(c.Width))
	}
	return b.String()
}

func rankText(rank string) string {
	switch rank {
	case "work":
		return "Ranked by the time that each site needs to drain its work:"
	case "procs":
		return "Ranked by processors asked for over processors there:"
	case "start":
		return "Ranked by the time until the job would start:"
	case "completion":
		return "Ranked by the time until the job would end:"
	case "forecast":
		return "Ranked by the time until the job would end, by forecasts:"
	case "none", "":
		return "Not ranked: there was no choice."
	}
	return "Ranked by " + cli.Clean(rank) + ":"
}

func (c *client) decisionTable(s *kithv1.JobStatus) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{
		{Title: "SITE"}, {Title: "CHOSEN"}, {Title: "SCORE", Right: true}, {Title: "WEIGHT", Right: true},
		{Title: "LOAD AGE", Right: true}, {Title: "REASON", Elastic: true},
	}}
	for _, d := range s.GetDecisions() {
		chosen, age := "no", spanOf(d.GetLoadAge())
		if d.GetChosen() {
			chosen = "yes"
		}
		if d.GetSiteId() == s.GetOriginSiteId() {
			age = cli.Nothing // its own load is never old
		}
		why := orDefault(d.GetDetail(), sentenceOf(d.GetReason()))
		g.Add(d.GetSiteId(), chosen, scoreText(s.GetRank(), d), fmt.Sprintf("%.4g", d.GetWeight()), age, orDefault(why, cli.Nothing))
	}
	return g
}

// scoreText writes what a site was ranked by, in the unit of the rank.
func scoreText(rank string, d *kithv1.SiteDecision) string {
	switch d.GetReason() {
	case "", "outranked":
	default: // it was not ranked
		return cli.Nothing
	}
	switch rank {
	case "work", "start", "completion", "forecast":
		return cli.Seconds(d.GetScore())
	case "procs":
		return fmt.Sprintf("%.3g", d.GetScore())
	}
	return cli.Nothing
}

func eventWord(k kithv1.ClaimEvent_Kind) string {
	switch k {
	case kithv1.ClaimEvent_KIND_OPENED:
		return "opened"
	case kithv1.ClaimEvent_KIND_GRANTED:
		return "granted"
	case kithv1.ClaimEvent_KIND_DENIED:
		return "denied"
	case kithv1.ClaimEvent_KIND_RETURNED:
		return "given back"
	case kithv1.ClaimEvent_KIND_REPLACED:
		return "replaced"
	case kithv1.ClaimEvent_KIND_CLOSED:
		return "closed"
	case kithv1.ClaimEvent_KIND_SUPERSEDED:
		return "came too late"
	case kithv1.ClaimEvent_KIND_REVOKED:
		return "revoked"
	case kithv1.ClaimEvent_KIND_OUTRACED:
		return "won the race"
	case kithv1.ClaimEvent_KIND_DEMOTED:
		return "ended to go on"
	case kithv1.ClaimEvent_KIND_LOWERED:
		return "a level down"
	}
	return "unknown"
}
