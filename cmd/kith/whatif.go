package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/cli"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// whatIfOptions are the flags of "kith what-if" beside those of a job.
type whatIfOptions struct {
	job     *submission
	id      string
	times   cli.Parsed[[]time.Duration]
	widths  cli.Parsed[[]int32]
	copies  cli.Parsed[[]int32]
	serial  cli.Parsed[float64]
	details bool
}

// mostAlternatives is how many a site looks at together.
const mostAlternatives = 64

// whatIfVerb is "kith what-if", questions that change nothing.
func whatIfVerb(c *client) *cobra.Command {
	o := whatIfOptions{
		job:    newSubmission(),
		times:  cli.Parsed[[]time.Duration]{Kind: "TIME[,TIME...]", Parse: listOf(parseWalltime)},
		widths: cli.Parsed[[]int32]{Kind: "N[,N...]", Parse: listOf(parseCount)},
		copies: cli.Parsed[[]int32]{Kind: "K[,K...]", Parse: listOf(parseSpread)},
		serial: cli.Parsed[float64]{Kind: "F", Parse: parseFraction},
	}
	cmd := &cobra.Command{
		Use: `what-if [--times LIST] [--widths LIST] [--copies LIST] [flags] SCRIPT [ARGS...]
  kith what-if [...] -- COMMAND [ARGS...]
  kith what-if [...] --job ID`,
		Short: "Ask when a job would start and end if it asked for something else",
		Long: `Ask when and where a job would start and end, and how likely its time limit would
stop it, for each combination of --times, --widths and --copies. Nothing is
submitted, and nothing is recorded.

SCRIPT, a COMMAND and their flags are those of kith submit; #SBATCH lines count.
With --job it is a job that waits, and its copies would be gone. Without --times
the limit is that of the job, and unless --widths or --copies are given also the
one that 95 % of such jobs stay below, and twice that; without --copies it is one
copy, two, and so on. At most 64 combinations, 16 of them of a time and a width.

Ranges are forecasts, no promises: each holds with 80 %. Run times are taken to be
those of the user's latest jobs, more of those with the same limit and width, whatever
the width: nobody knows how a job scales. With --serial-fraction F it is taken to
take F + (1 - F) / N of its time on one processor on N of them. "kith forecasts"
tells how often ranges held.

A site answers 60 such questions of another site at once, and one a second from
then on; a question is a combination of a time and a width.`,
		Example: `  kith what-if job.sh
  kith what-if --times 1h,4h,24h --widths 1,2,4 job.sh
  kith what-if --job uni-a.k3f9.17 --copies 1,2,3`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return c.whatIf(cmd, args, &o) },
	}
	flags := cmd.Flags()
	o.job.register(flags)
	// What says nothing of when a job starts is accepted for the lines of scripts, and not shown.
	shown := []string{"ntasks", "cpus-per-task", "time", "mem", "mem-per-cpu", "wrap", "copies"}
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = f.Hidden || !slices.Contains(shown, f.Name) })
	f := flags.Lookup("copies")
	f.Value, f.Usage, f.DefValue = &o.copies, "sites to queue at", ""
	flags.Var(&o.times, "times", "time limits")
	flags.Var(&o.widths, "widths", "processors of the job")
	flags.Var(&o.serial, "serial-fraction", "the part of the run time, 0 to 1, that more processors do not shorten; with --widths")
	flags.StringVar(&o.id, "job", "", "the job `ID`, which waits, instead of one that is not submitted")
	flags.BoolVar(&o.details, "sites", false, "show what each site says for each alternative, not only for the best")
	cmd.SetFlagErrorFunc(submitFlagFailure)
	cmd.AddCommand(whatIfSiteVerb(c), whatIfBagVerb(c))
	return cmd
}

// parseFraction reads a part of a whole.
func parseFraction(text string) (float64, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, errors.New("write a number from 0 to 1")
	}
	return f, nil
}

// listOf reads several values with commas between them, none of them twice.
func listOf[T comparable](parse func(string) (T, error)) func(string) ([]T, error) {
	return func(text string) (list []T, err error) {
		for part := range strings.SplitSeq(text, ",") {
			v, err := parse(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			if slices.Contains(list, v) {
				return nil, fmt.Errorf("%s is named twice", strings.TrimSpace(part))
			}
			if list = append(list, v); len(list) > mostAlternatives {
				return nil, fmt.Errorf("give at most %d", mostAlternatives)
			}
		}
		return list, nil
	}
}

// whatIf carries out "kith what-if".
func (c *client) whatIf(cmd *cobra.Command, args []string, o *whatIfOptions) error {
	r := &kithv1.ForecastJobRequest{JobId: o.id}
	if cmd.Flags().Changed("job") {
		if _, err := job.ParseID(o.id); err != nil {
			return cli.Usagef("--job: %v", err)
		}
		if len(args) > 0 || o.job.wrap != "" {
			return cli.Usagef("--job %s: is a job by itself; leave the script or command out", o.id)
		}
	} else {
		p, err := c.readProgram(cmd, args, o.job.wrap)
		if err != nil {
			return err
		}
		asked := cmd.Flags().Changed("copies")
		if p.source != "" {
			if err := o.job.follow(cmd.Flags(), p); err != nil {
				return err
			}
		}
		if list := o.copies.Value; !asked && len(list) > 0 { // the script says how many the job has
			o.job.copies.Value, o.copies.Value = list[len(list)-1], nil
		}
		if o.job.bag.is() {
			return cli.Usagef("--array %s: is a bag; kith what-if is about one job, kith what-if bag about bags", o.job.bag.array.Text)
		}
		if r.Job, err = o.job.job(p, c.Environ); err != nil {
			return err
		}
		// They need not be taken along: when a job starts does not hang on them.
		r.Job.Inputs = nil
	}
	if cmd.Flags().Changed("serial-fraction") {
		if len(o.widths.Value) == 0 {
			return cli.Usagef("--serial-fraction %v: says what other widths change; give --widths", o.serial.Value)
		}
		r.SerialFraction = &o.serial.Value
	}
	var err error
	if r.Alternatives, err = o.alternatives(); err != nil {
		return err
	}
	return c.ask(cmd.Context(), func(ctx context.Context, s *site) error {
		resp, err := s.jobs.ForecastJob(ctx, r)
		if err != nil {
			return err
		}
		return c.printMessage(resp, func() string { return c.whatIfJobText(resp, o.details) })
	})
}

// alternatives are all combinations; none if the site is to choose.
func (o *whatIfOptions) alternatives() (list []*kithv1.JobAlternative, err error) {
	times, widths, copies := o.times.Value, o.widths.Value, o.copies.Value
	if len(times)+len(widths)+len(copies) == 0 {
		return nil, nil
	}
	n := max(len(times), 1) * max(len(widths), 1) * max(len(copies), 1)
	if n > mostAlternatives {
		return nil, cli.Usagef("--times, --widths and --copies: %d combinations; at most %d are looked at together", n, mostAlternatives)
	}
	if len(times) == 0 {
		times = []time.Duration{0}
	}
	if len(widths) == 0 {
		widths = []int32{0}
	}
	if len(copies) == 0 {
		copies = []int32{0}
	}
	for _, t := range times {
		for _, w := range widths {
			for _, k := range copies {
				a := &kithv1.JobAlternative{Processors: w, Copies: k}
				if t != 0 {
					a.Walltime = durationpb.New(t)
				}
				list = append(list, a)
			}
		}
	}
	return list, nil
}

// whatIfJobText is the answer for people.
func (c *client) whatIfJobText(r *kithv1.ForecastJobResponse, details bool) string {
	var b strings.Builder
	b.WriteString("Nothing was submitted.\n\n")
	list := r.GetAlternatives()
	b.WriteString(c.alternativesTable(list).Render(c.Width))
	best := bestShape(list, r.GetMadeTime().AsTime())
	for _, a := range list {
		if a.GetRefused() == "" && (details || a == best) {
			fmt.Fprintf(&b, "\n%s, %s, %s:\n", spanOf(a.GetWalltime()), cli.Plural(int64(a.GetProcessors()), "processor", "processors"), cli.Plural(int64(a.GetCopies()), "copy", "copies"))
			b.WriteString(c.siteAlternatives(a).Render(c.Width))
		}
	}
	for _, line := range c.adviceOf(list, best) {
		b.WriteString("\n" + line)
	}
	if r.GetScored() > 0 {
		fmt.Fprintf(&b, "\nRanges are of 80 %%; those of starts held %s of the last %d times.\n", percent(r.GetHeldShare()), r.GetScored())
	} else {
		b.WriteString("\nRanges are of 80 %; none of a start has been compared with the truth here yet.\n")
	}
	return b.String()
}

func (c *client) alternativesTable(list []*kithv1.AlternativeForecast) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{
		{Title: "TIME", Right: true}, {Title: "CPUS", Right: true}, {Title: "COPIES", Right: true}, {Title: "STARTS"}, {Title: "PROBABLY"}, {Title: "ENDS"}, {Title: "PROBABLY"},
		{Title: "STOPPED", Right: true}, {Title: "BASIS", Elastic: true},
	}}
	for i, a := range list {
		if a.GetRefused() == "" && slices.ContainsFunc(list[:i], func(x *kithv1.AlternativeForecast) bool {
			return x.GetRefused() == "" && sameShape(x, a) && x.GetCopies() == a.GetCopies()
		}) {
			continue // no more sites fit it than were asked for before
		}
		if why := a.GetRefused(); why != "" {
			if i > 0 && list[i-1].GetRefused() == why && sameShape(list[i-1], a) {
				continue // more copies make no difference
			}
			g.Add(spanOf(a.GetWalltime()), fmt.Sprint(a.GetProcessors()), cli.Nothing, cli.Nothing, cli.Nothing, cli.Nothing, cli.Nothing, cli.Nothing, cli.Clean(why))
			continue
		}
		g.Add(spanOf(a.GetWalltime()), fmt.Sprint(a.GetProcessors()), fmt.Sprint(a.GetCopies()),
			c.rangeText(a.GetStartLow(), a.GetStartHigh()), c.soon(a.GetStartMedian(), a.GetStartHigh()),
			c.rangeText(a.GetEndLow(), a.GetEndHigh()), c.soon(a.GetEndMedian(), a.GetEndHigh()), stoppedText(a), cli.Clean(a.GetBasis()))
	}
	return g
}

// soon is shortTime of an instant that may not be known.
func (c *client) soon(t, last *timestamppb.Timestamp) string {
	if t == nil {
		return cli.Nothing
	}
	return c.shortTime(t, last)
}

// rangeText is a range of instants.
func (c *client) rangeText(low, high *timestamppb.Timestamp) string {
	if low == nil {
		return cli.Nothing
	}
	from, to := c.shortTime(low, high), c.shortTime(high, high)
	if from == to {
		return to
	}
	return from + " – " + to
}

func stoppedText(a *kithv1.AlternativeForecast) string {
	if a.StoppedShare == nil {
		return cli.Nothing
	}
	return percent(a.GetStoppedShare())
}

// siteAlternatives is what the sites say of an alternative.
func (c *client) siteAlternatives(a *kithv1.AlternativeForecast) *cli.Grid {
	g := &cli.Grid{Columns: []cli.Column{
		{Title: "SITE"}, {Title: "STARTS"}, {Title: "PROBABLY"}, {Title: "LATEST"}, {Title: "ENDS"}, {Title: "LOAD AGE", Right: true}, {Title: "BASIS"}, {Title: "REASON", Elastic: true},
	}}
	for _, s := range a.GetSites() {
		g.Add(cli.Clean(s.GetSiteId()), c.rangeText(s.GetStartLow(), s.GetStartHigh()), c.soon(s.GetStartMedian(), s.GetStartHigh()), c.soon(s.GetLatest(), s.GetLatest()),
			c.rangeText(s.GetEndLow(), s.GetEndHigh()), spanOf(s.GetLoadAge()), cli.Clean(s.GetBasis()), cli.Clean(s.GetReason()))
	}
	return g
}

// riskOf is the chance that the limit stops a job; certain where nothing is known of it, for
// a limit is then no shorter than the user says.
func riskOf(a *kithv1.AlternativeForecast) float64 {
	if a.StoppedShare == nil {
		return 1
	}
	return a.GetStoppedShare()
}

// fairRisk is a chance to be stopped that people put up with.
const fairRisk = 0.05

// bestShape is the alternative that probably ends first among those that are stopped no more
// likely than the first one, or seldom; of those that end as early the one with fewer copies.
// Nobody is told to ask for something else for a gain that is little, see [worthIt]. It is nil if
// nothing is known. made is when the answer was made.
func bestShape(list []*kithv1.AlternativeForecast, made time.Time) *kithv1.AlternativeForecast {
	base := baseOf(list)
	if base == nil {
		return nil
	}
	best := firstToEnd(list, base, func(*kithv1.AlternativeForecast) bool { return true })
	if best != nil && !sameShape(best, base) && !worthIt(base.GetEndMedian().AsTime().Sub(best.GetEndMedian().AsTime()), base.GetEndMedian().AsTime().Sub(made)) {
		return firstToEnd(list, base, func(a *kithv1.AlternativeForecast) bool { return sameShape(a, base) })
	}
	return best
}

// worthIt reports whether it is worth asking for something else to have a job end earlier by a
// time, of all that it takes until it ends: the scenarios that say so are drawn.
func worthIt(gain, all time.Duration) bool {
	const least = 10 * time.Second
	return gain >= least && float64(gain) >= littleGain*float64(all)
}

// firstToEnd is the best of those that may be.
func firstToEnd(list []*kithv1.AlternativeForecast, base *kithv1.AlternativeForecast, may func(*kithv1.AlternativeForecast) bool) (best *kithv1.AlternativeForecast) {
	for _, a := range list {
		if a.GetEndMedian() == nil || !may(a) || riskOf(a) > max(fairRisk, riskOf(base)) {
			continue
		}
		const asEarly = time.Second
		if best == nil || a.GetEndMedian().AsTime().Add(asEarly).Before(best.GetEndMedian().AsTime()) ||
			a.GetEndMedian().AsTime().Before(best.GetEndMedian().AsTime().Add(asEarly)) && a.GetCopies() < best.GetCopies() && sameShape(a, best) {
			best = a
		}
	}
	return best
}

// baseOf is the alternative with which others are compared: the first shape of which something
// is known, with the most copies.
func baseOf(list []*kithv1.AlternativeForecast) (base *kithv1.AlternativeForecast) {
	for _, a := range list {
		if a.GetEndMedian() != nil && (base == nil || sameShape(a, base) && a.GetCopies() > base.GetCopies()) {
			base = a
		}
	}
	return base
}

func sameShape(a, b *kithv1.AlternativeForecast) bool {
	return a.GetWalltime().AsDuration() == b.GetWalltime().AsDuration() && a.GetProcessors() == b.GetProcessors()
}

// adviceOf says in words what to ask for.
func (c *client) adviceOf(list []*kithv1.AlternativeForecast, best *kithv1.AlternativeForecast) (lines []string) {
	base := baseOf(list)
	if base == nil || best == nil {
		return []string{"Nothing is known of when it would start."}
	}
	risk := "nothing is known of how long such jobs run"
	if best.StoppedShare != nil {
		risk = percent(best.GetStoppedShare()) + " risk to be stopped"
	}
	last := best.GetStartHigh()
	if base.GetStartHigh().AsTime().After(last.AsTime()) {
		last = base.GetStartHigh()
	}
	start, ends := c.shortTime(best.GetStartMedian(), last), c.shortTime(best.GetEndMedian(), best.GetEndHigh())
	if sameShape(best, base) {
		lines = append(lines, fmt.Sprintf("%s and %s are as good as any of these: it starts probably %s and ends probably %s; %s.",
			spanOf(best.GetWalltime()), cli.Plural(int64(best.GetProcessors()), "processor", "processors"), start, ends, risk))
	} else {
		lines = append(lines, fmt.Sprintf("Ask for %s: it starts probably %s instead of %s%s, and ends probably %s; %s.",
			wanted(best, base), start, c.shortTime(base.GetStartMedian(), last), atSoonest(best), ends, risk))
	}
	if line := copiesAdvice(list, best); line != "" {
		lines = append(lines, line)
	}
	return lines
}

// wanted says what is different between two shapes.
func wanted(a, base *kithv1.AlternativeForecast) string {
	var parts []string
	if a.GetWalltime().AsDuration() != base.GetWalltime().AsDuration() {
		parts = append(parts, spanOf(a.GetWalltime())+" instead of "+spanOf(base.GetWalltime()))
	}
	if a.GetProcessors() != base.GetProcessors() {
		parts = append(parts, fmt.Sprintf("%s instead of %d", cli.Plural(int64(a.GetProcessors()), "processor", "processors"), base.GetProcessors()))
	}
	return strings.Join(parts, " and ")
}

// atSoonest names the site at which an alternative would probably start first, if there are
// several.
func atSoonest(a *kithv1.AlternativeForecast) string {
	var soonest *kithv1.SiteAlternative
	for _, s := range a.GetSites() {
		if s.GetStartMedian() != nil && (soonest == nil || s.GetStartMedian().AsTime().Before(soonest.GetStartMedian().AsTime())) {
			soonest = s
		}
	}
	if soonest == nil || len(a.GetSites()) < 2 {
		return ""
	}
	return ", soonest at " + cli.Clean(soonest.GetSiteId())
}

// littleGain is what another copy must gain of the mean wait to be worth it.
const littleGain = 0.05

// copiesAdvice says from how many copies on another one gains little; empty if there is one
// number only.
func copiesAdvice(list []*kithv1.AlternativeForecast, best *kithv1.AlternativeForecast) string {
	var same []*kithv1.AlternativeForecast
	for _, a := range list {
		if a.GetEndMedian() != nil && sameShape(a, best) && !slices.ContainsFunc(same, func(x *kithv1.AlternativeForecast) bool { return x.GetCopies() == a.GetCopies() }) {
			same = append(same, a)
		}
	}
	if len(same) < 2 {
		return ""
	}
	slices.SortFunc(same, func(a, b *kithv1.AlternativeForecast) int { return int(a.GetCopies()) - int(b.GetCopies()) })
	if same[0].GetMeanWaitSeconds() < 1 {
		return fmt.Sprintf("%s enough: it would start at once.", copiesAre(same[0].GetCopies()))
	}
	for i := range same[1:] {
		now, next := same[i].GetMeanWaitSeconds(), same[i+1].GetMeanWaitSeconds()
		if now-next < littleGain*now || now < 1 {
			return fmt.Sprintf("%s enough: more gain less than %.0f %% of the mean wait.", copiesAre(same[i].GetCopies()), 100*littleGain)
		}
	}
	return fmt.Sprintf("Up to %d copies each further one gains %.0f %% of the mean wait or more.", same[len(same)-1].GetCopies(), 100*littleGain)
}

func copiesAre(k int32) string {
	if k == 1 {
		return "One copy is"
	}
	return fmt.Sprintf("%d copies are", k)
}
