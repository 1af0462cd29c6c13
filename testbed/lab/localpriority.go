package lab

import (
	"context"
	"fmt"
	"strings"

	"kith/testbed/workload"
)

// localPriority is the experiment of spec 004.
func localPriority() Experiment {
	e := Experiment{
		ID: "004", Title: "Sites that start their own jobs first, and weights that make up for it",
		Source: "Local priority policies and adaptive site selection (thesis)",
		Seeds:  priorityRuns, Run: runLocalPriority,
	}
	for _, q := range priorityQuestions() {
		e.Claims = append(e.Claims, q.Claim)
	}
	return e
}

// priorityQuestion is a claim together with the trials that answer it.
type priorityQuestion struct {
	Claim
	needs []priorityTrial
	judge func(a *priorityAnswers) *priorityReading
	// extra answers a claim that is not about trials.
	extra func(ctx context.Context, env *Env) (*priorityReading, error)
	// why is what we think where the claim does not hold, remark what to know
	// in any case.
	why, remark string
	// informs says that there is no band.
	informs bool
}

// priorityQuestions are the claims of the source and the checks of our own.
func priorityQuestions() []priorityQuestion {
	var all []priorityQuestion
	for _, some := range [][]priorityQuestion{mctQuestions(), switchQuestions(), gainQuestions(), weightQuestions(), checkQuestions()} {
		all = append(all, some...)
	}
	return all
}

// runLocalPriority runs the trials of all wanted claims at once.
func runLocalPriority(ctx context.Context, env *Env) (*Report, error) {
	var wanted []priorityQuestion
	var trials []priorityTrial
	for _, q := range priorityQuestions() {
		if env.Wants(q.ID) {
			wanted = append(wanted, q)
			trials = append(trials, q.needs...)
		}
	}
	a, err := answerPriority(ctx, env, trials)
	if err != nil {
		return nil, err
	}
	r := &Report{Workload: "5 sites of 4 nodes, 4400 sequential jobs of which the middle 4000 count; exponential sizes and gaps (spec 004 section 3.1)"}
	if env.Jobs > 0 {
		r.Workload = fmt.Sprintf("5 sites of 4 nodes, %d sequential jobs in all; exponential sizes and gaps as in spec 004 section 3.1", prioritySites*env.Jobs)
	}
	for _, q := range wanted {
		f, err := q.find(ctx, env, a)
		if err != nil {
			return nil, fmt.Errorf("claim %s: %w", q.ID, err)
		}
		r.Find(f)
	}
	a.remarks(r)
	r.Tables, r.Plots = a.tables(), a.plots()
	return r, nil
}

// find answers the question.
func (q *priorityQuestion) find(ctx context.Context, env *Env, a *priorityAnswers) (Finding, error) {
	var r *priorityReading
	if q.extra != nil {
		var err error
		if r, err = q.extra(ctx, env); err != nil {
			return Finding{}, err
		}
	} else {
		r = q.judge(a)
	}
	f := Finding{Claim: Claim{ID: q.ID}, Measured: strings.Join(r.parts, "; "), Values: r.values, Verdict: VerdictOf(r.met()), Note: q.remark, Differs: strings.Join(r.differs, " ")}
	switch {
	case q.informs:
		f.Verdict = Informational
	case f.Verdict == Fails:
		var errors []float64
		if q.judge != nil {
			errors = a.standardErrors(q.judge)
		}
		f.Note = r.missing(errors)
		why := q.why
		if env.Jobs > 0 || len(env.SeedList()) < priorityRuns {
			why = "" // it explains what comes out of the whole experiment
		}
		for _, s := range []string{why, q.remark} {
			if s != "" {
				f.Note += " " + s
			}
		}
	}
	return f, nil
}

// remarks says how things were read.
func (a *priorityAnswers) remarks(r *Report) {
	n := len(a.env.SeedList())
	r.Remark("Each number is the mean over %d seeds of a mean over the jobs of an origin.", n)
	r.Remark("Maxima, standard deviations (divisor n-1), gains and losses over the sites are taken from the means over 10 seeds, as in the source, and averaged over the lots of 10: the fewer runs, the larger they come out by noise alone.")
	r.Remark("Where a claim fails, the distance from its band is given in standard errors of the figure over the seeds (jackknife).")
	if n < priorityRuns {
		r.Remark("Under heavy load the sites cannot keep up, so that one run says little; with %d seeds instead of %d verdicts on bands may be chance.", n, priorityRuns)
	}
	if a.env.Trace != nil {
		r.Remark("The source has no log: the trace was not used.")
	}
	if a.env.Jobs > 0 && a.env.Jobs < priorityJobs {
		r.Remark("With %d jobs a site instead of %d the bands mean little.", a.env.Jobs, priorityJobs)
	}
	r.Remark("Every site places its own jobs with the production pipeline (scheme mct): it asks all sites when the job would be completed and takes the best; the source has one central scheduler that does the same.")
}

// prioritySites and priorityJobs are the number of sites and of jobs at a site
// on average, priorityRuns how many runs there are of each setting (spec 004
// section 3.1).
const (
	priorityRuns  = 40
	prioritySites = 5
	priorityJobs  = 880
)

// priorityLoads are in the order of the source.
var priorityLoads = []workload.PriorityLoad{workload.Heavy, workload.Medium, workload.Light}
