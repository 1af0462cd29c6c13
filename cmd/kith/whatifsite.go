package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched"
	"kith/testbed/join"
	"kith/testbed/metrics"
	"kith/testbed/replay"
	"kith/testbed/whatif"
)

// whatIfSiteOptions are the flags of "kith what-if site".
type whatIfSiteOptions struct {
	days       int
	addLoad    cli.Parsed[float64]
	policy     cli.Parsed[sitesched.Backfill]
	queues     cli.Parsed[sitesched.Queues]
	processors cli.Parsed[int32]
	guests     cli.Parsed[time.Duration]
	lose, join []string
	seed       uint64
	report     string
}

// Replays that take longer are given up: a queue that grows without end is no answer.
const longestReplay = 10 * time.Minute

func whatIfSiteVerb(c *client) *cobra.Command {
	var opt whatIfSiteOptions
	cmd := &cobra.Command{
		Use:   "site [--days N] [--add-load SHARE] [--policy WORD] [--queues WORD] [--processors P] [--guest-walltime D] [--lose SITE] [--join FILE]",
		Short: "Replay what ran at this site as if the site had been another one",
		Long: `Replay the jobs that ran at this site in the last days, its own and those of
guests, through its scheduler in virtual time: as the site is, and as it would be.
Tell who wins and who loses, by the site of the users and by the kind of job, and
what guests cost the site's own users. It is for operators, runs in this process, and changes nothing.

Several changes may be asked for together. --add-load draws jobs of the past once
more, at the same time of another day, until there is as much more work.
--guest-walltime is no_harm.guest_walltime: guests with longer limits do not come. --lose is
a site that is gone: its guests do not come, and what it ran of this site's jobs
runs here. --join is a log of another site, as "kith history export" writes it or
in one of the formats of "kith replay": the answer is then that of "kith replay
--federation", with all that ran here as jobs of this site. It may be given several
times, as --lose may.

A replay knows no drains, restarts, claims and files: what was recorded stands
beside it. Settings of the scheduler that a site does not tell are taken to be the
defaults, and memory to be no limit.`,
		Example: `  kith what-if site --add-load 20%
  kith what-if site --days 90 --processors 256 --queues single --report smaller.html
  kith what-if site --join partner.swf`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opt.check(cmd); err != nil {
				return err
			}
			return c.attend(cmd.Context(), func(ctx context.Context, s *site) error { return c.whatIfSite(ctx, s, &opt) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&opt.days, "days", 28, "how many days back to look, as a number `N`")
	opt.addLoad = cli.Parsed[float64]{Kind: "SHARE", Parse: parsePercent}
	flags.Var(&opt.addLoad, "add-load", "so much more work, such as 20%")
	opt.policy = cli.Parsed[sitesched.Backfill]{Kind: "WORD", Parse: replay.ParsePolicy}
	flags.Var(&opt.policy, "policy", strings.Join(replay.Policies(), "|"))
	cli.Complete(cmd, "policy", replay.Policies()...)
	opt.queues = cli.Parsed[sitesched.Queues]{Kind: "WORD", Parse: parseQueues}
	flags.Var(&opt.queues, "queues", "single|dual-strict|dual-backfill")
	cli.Complete(cmd, "queues", "single", "dual-strict", "dual-backfill")
	opt.processors = cli.Parsed[int32]{Kind: "P", Parse: parseCount}
	flags.Var(&opt.processors, "processors", "another number of processors")
	opt.guests = cli.Parsed[time.Duration]{Kind: "D", Parse: parseWalltime}
	flags.Var(&opt.guests, "guest-walltime", "the longest time limit of guests, such as 4h")
	flags.StringArrayVar(&opt.lose, "lose", nil, "without the other site `SITE`")
	flags.StringArrayVar(&opt.join, "join", nil, "in a federation with the site whose log is `FILE`")
	flags.Uint64Var(&opt.seed, "seed", 0, "what --add-load draws from, as a number `N`")
	flags.StringVar(&opt.report, "report", "", "write a page with tables and plots to `FILE`.html")
	return cmd
}

// parsePercent reads a share in percent.
func parsePercent(text string) (float64, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil {
		return 0, errors.New("write a share in percent, such as 20%")
	}
	if !(v > 0 && v <= 100*whatif.MaxAddLoad) {
		return 0, fmt.Errorf("write a share above 0%% and up to %d%%", 100*whatif.MaxAddLoad)
	}
	return v / 100, nil
}

func parseQueues(text string) (sitesched.Queues, error) {
	q, err := sitesched.ParseQueues(text)
	if err != nil {
		return 0, errors.New("choose single, dual-strict or dual-backfill")
	}
	return q, nil
}

// check refuses flags that make no sense.
func (o *whatIfSiteOptions) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	if o.days < 1 || o.days > whatif.MaxDays {
		return cli.Usagef("--days %d: write a number from 1 to %d", o.days, whatif.MaxDays)
	}
	if !changed("add-load") && !changed("policy") && !changed("queues") && !changed("processors") && !changed("guest-walltime") && len(o.lose)+len(o.join) == 0 {
		return cli.Usagef("what-if site: what is to be different? Give --add-load, --policy, --queues, --processors, --guest-walltime, --lose or --join")
	}
	if changed("seed") && !changed("add-load") {
		return cli.Usagef("--seed %d: goes with --add-load; what is past is as it is", o.seed)
	}
	for _, name := range o.lose {
		if _, err := job.ParseSiteID(name); err != nil {
			return cli.Usagef("--lose: %v", err)
		}
	}
	return nil
}

// question is what is asked of a site that says of itself what it is.
func (o *whatIfSiteOptions) question(about *kithv1.Site, now time.Time, backfillGiven, queuesGiven bool) (whatif.Question, error) {
	cfg, err := configOf(about)
	if err != nil {
		return whatif.Question{}, cli.Refusedf("%v", err)
	}
	q := whatif.Question{
		Site: job.SiteID(about.GetId()), Now: now, Days: o.days, Config: cfg, Speed: about.GetSpeed(), Seed: o.seed,
		Changes: whatif.Changes{AddLoad: o.addLoad.Value, Processors: o.processors.Value, GuestWalltime: o.guests.Value},
	}
	if backfillGiven {
		q.Changes.Backfill = &o.policy.Value
	}
	if queuesGiven {
		q.Changes.Queues = &o.queues.Value
	}
	for _, name := range o.lose {
		q.Changes.Lose = append(q.Changes.Lose, job.SiteID(name))
	}
	return q, nil
}

// What a site does not tell of its scheduler is taken to be as kithd has it by default.
const (
	defaultDepth    = 1000
	defaultPatience = 10 * time.Minute
)

// configOf is the scheduler of a site by what it says of itself, in the words of
// [sitesched.Config.Policy].
func configOf(about *kithv1.Site) (cfg sitesched.Config, err error) {
	words := strings.Split(about.GetPolicy(), ", ")
	cfg = sitesched.Config{Processors: about.GetProcessors(), GuaranteeDepth: defaultDepth}
	if len(words) >= 2 {
		if cfg.Backfill, err = sitesched.ParseBackfill(words[0]); err == nil {
			cfg.Queues, err = sitesched.ParseQueues(words[1])
		}
	}
	if err == nil && len(words) == 3 {
		cfg.Scope, err = sitesched.ParseScope(strings.TrimPrefix(words[2], "scope "))
	}
	if err != nil || len(words) < 2 || len(words) > 3 {
		return cfg, fmt.Errorf("the site says of its policy %.80q, which this kith does not know: is it of another version?", about.GetPolicy())
	}
	if cfg.Queues == sitesched.DualBackfill {
		cfg.Patience = defaultPatience
	}
	return cfg, nil
}

// attempts takes what is past for a replay.
func attempts(past []*kithv1.PastAttempt) []whatif.Attempt {
	list := make([]whatif.Attempt, len(past))
	for i, a := range past {
		list[i] = whatif.Attempt{
			Origin: job.SiteID(a.GetOriginSiteId()), Host: job.SiteID(a.GetHostSiteId()), User: a.GetUserNumber(), Processors: a.GetProcessors(),
			Submit: a.GetSubmitTime().AsTime(), End: a.GetEndTime().AsTime(), Run: a.GetRunTime().AsDuration(), Limit: a.GetWalltime().AsDuration(),
		}
		if a.GetStartTime() != nil {
			list[i].Start = a.GetStartTime().AsTime()
		}
	}
	return list
}

// whatIfSite asks the site for its past, and replays it here.
func (c *client) whatIfSite(ctx context.Context, s *site, o *whatIfSiteOptions) error {
	out, err := cli.CreateFile("--report", o.report)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // What is left of a file that is not there does no harm.
	about, err := s.sites.GetSite(ctx, &kithv1.GetSiteRequest{})
	if err != nil {
		return err
	}
	q, err := o.question(about.GetSite(), c.Now(), o.policy.Text != "", o.queues.Text != "")
	if err != nil {
		return err
	}
	past, err := history(ctx, s)
	if err != nil {
		return err
	}
	study, err := whatif.Open(q, attempts(past))
	switch {
	case errors.Is(err, whatif.ErrQuestion):
		return cli.Usagef("what-if site: %v", err)
	case err != nil:
		return cli.Refusedf("what-if site: %v", err)
	}
	allProcessors()
	defer cli.CollectLess()()
	ctx, cancel := context.WithTimeoutCause(ctx, longestReplay, errTooLong)
	defer cancel()
	if len(o.join) > 0 {
		return c.whatIfJoin(ctx, study, o, out)
	}
	bar := c.Progress("replay", study.Jobs())
	began := c.Now()
	a, err := study.Run(ctx, bar.Set)
	bar.Clear()
	if err != nil {
		return replayFailure(err)
	}
	a.ElapsedSeconds = c.Now().Sub(began).Seconds()
	if out != nil {
		if err := out.Write(a.Page().WriteHTML); err != nil {
			return cli.Refusedf("--report %s: %v", o.report, cli.Bare(err))
		}
	}
	return c.Print(a, func() string { return whatIfText(a, c.Width) })
}

var errTooLong = errors.New("the replay takes longer than " + cli.Span(longestReplay) + ", and was given up; give fewer --days, or less --add-load")

// replayFailure says why there is no answer.
func replayFailure(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return cli.ExitWith(cli.ExitInterrupted)
	case errors.Is(err, context.DeadlineExceeded):
		err = errTooLong
	}
	return cli.Refusedf("what-if site: %v", err)
}

// whatIfJoin asks what a federation would do for the site.
func (c *client) whatIfJoin(ctx context.Context, s *whatif.Study, o *whatIfSiteOptions, out *cli.OutFile) error {
	study, err := s.Join(o.join)
	if wrong, ok := errors.AsType[*join.Error](err); ok {
		f := &cli.Failure{Code: cli.ExitUsage}
		for _, p := range wrong.Problems {
			f.Problems = append(f.Problems, fmt.Sprintf("--join: %v", p))
		}
		return f
	}
	if err != nil {
		return cli.Usagef("what-if site: %v", err)
	}
	bar := c.Progress("replay", study.Runs()*study.Jobs())
	began := c.Now()
	a, err := study.Run(ctx, func(done, _ int) { bar.Set(done) })
	bar.Clear()
	if err != nil {
		return replayFailure(err)
	}
	a.ElapsedSeconds = c.Now().Sub(began).Seconds()
	if out != nil {
		if err := out.Write(a.Page().WriteHTML); err != nil {
			return cli.Refusedf("--report %s: %v", o.report, cli.Bare(err))
		}
	}
	return c.Print(a, func() string { return joinText(a, c.Width) })
}

// whatIfText is the answer for people.
func whatIfText(a *whatif.Answer, width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s to %s, %s:\n\n", cli.Clean(a.Site), a.First.UTC().Format(time.DateOnly), a.Last.UTC().Format(time.DateOnly), cli.Clean(a.Changes))
	b.WriteString(whatIfMachine(a).Render(width))
	for _, n := range a.LeftOut.Notes() {
		b.WriteString(n + "\n")
	}
	fmt.Fprintf(&b, "\nUsers of each site, as it is and as asked:\n\n%s", whatIfUsers(a).Render(width))
	fmt.Fprintf(&b, "\nChange of the mean turnaround by kind of job:\n\n%s", whatIfKinds(a).Render(width))
	if list := a.Harms(); list != nil {
		b.WriteString(harmReport(list, "", width))
	}
	// What counts stands last, where the eye is.
	b.WriteString("\n")
	for _, line := range a.Sentences[1:] {
		b.WriteString(cli.Clean(line) + "\n")
	}
	b.WriteString("\n" + cli.Clean(a.Sentences[0]) + "\n")
	return b.String()
}

func whatIfMachine(a *whatif.Answer) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{
		{Title: "MACHINE"}, {Title: "PROCESSORS", Right: true}, {Title: "POLICY"}, {Title: "JOBS", Right: true}, {Title: "OFFERED LOAD", Right: true}, {Title: "BUSY", Right: true},
	}}
	row := func(name string, m *whatif.Machine) {
		g.Add(name, strconv.Itoa(int(m.Processors)), m.Policy, strconv.Itoa(m.Jobs), fmt.Sprintf("%.2f", m.OfferedLoad), fmt.Sprintf("%.0f%%", 100*m.Utilisation))
	}
	row("as it is", &a.Was)
	row("as asked", &a.Then)
	return g
}

// whatIfGroups are the groups that have jobs to compare, and all together.
func whatIfGroups(a *whatif.Answer) (list []*whatif.Group) {
	for i := range a.Groups {
		if a.Groups[i].Then.Jobs > 0 {
			list = append(list, &a.Groups[i])
		}
	}
	if len(list) != 1 {
		list = append(list, &a.All)
	}
	return list
}

func groupName(g *whatif.Group) string {
	if g.Name == "" {
		return "other sites"
	}
	return cli.Clean(g.Name)
}

func whatIfUsers(a *whatif.Answer) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{
		{Title: "USERS OF"}, {Title: "JOBS", Right: true}, {Title: "RECORDED WAIT", Right: true}, {Title: "WAIT", Right: true}, {Title: "AS ASKED", Right: true},
		{Title: "TURNAROUND", Right: true}, {Title: "AS ASKED", Right: true}, {Title: "CHANGE", Right: true}, {Title: ""},
		{Title: "SLOWDOWN", Right: true}, {Title: "AS ASKED", Right: true}, {Title: "USERS WHO WIN", Right: true}, {Title: "LOSE", Right: true}, {Title: "TOO WIDE", Right: true},
	}}
	for _, x := range whatIfGroups(a) {
		g.Add(groupName(x), strconv.Itoa(x.Then.Jobs), cli.Seconds(x.Recorded.Wait), cli.Seconds(x.Was.Wait), cli.Seconds(x.Then.Wait),
			cli.Seconds(x.Was.Turnaround), cli.Seconds(x.Then.Turnaround), effectWord(&x.Then), string(x.Then.Effect),
			cli.Number(x.Was.BoundedSlowdown), cli.Number(x.Then.BoundedSlowdown), strconv.Itoa(x.Users.Win), strconv.Itoa(x.Users.Lose), strconv.Itoa(x.TooWide.Jobs))
	}
	return g
}

func whatIfKinds(a *whatif.Answer) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{{Title: "USERS OF"}}}
	for c := range metrics.Class(metrics.Classes) {
		g.Columns = append(g.Columns, cli.Column{Title: strings.ToUpper(c.String()), Right: true}, cli.Column{Title: "JOBS", Right: true})
	}
	for _, x := range whatIfGroups(a) {
		cells := []string{groupName(x)}
		for c := range x.ThenKinds {
			cells = append(cells, effectWord(&x.ThenKinds[c]), strconv.Itoa(x.ThenKinds[c].Jobs))
		}
		g.Add(cells...)
	}
	return g
}
