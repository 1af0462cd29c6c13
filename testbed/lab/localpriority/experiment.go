package localpriority

import (
	"fmt"
	"slices"
	"strings"

	"kith/testbed/lab"
	"kith/testbed/workload"
)

// Experiment is the experiment of spec 004.
func Experiment() lab.Experiment {
	study := lab.Study[trial, *answers]{Questions: questions(), Answer: answer}
	return study.Experiment(lab.Experiment{
		ID: "004", Title: "Sites that start their own jobs first, and weights that make up for it",
		Source: "Local priority policies and adaptive site selection (thesis)",
		Jobs:   siteJobs, Seeds: seedCount,
	})
}

// question is a statement together with the trials that answer it.
type question = lab.Question[trial, *answers]

// questions are the statements of the source and the checks of our own.
func questions() []question {
	return slices.Concat(mctQuestions(), switchQuestions(), gainQuestions(), weightQuestions(), checkQuestions())
}

// judged turns what a reading says into a finding. why is what we think where
// the statement does not hold.
func judged(judge func(*answers) *reading, why ...string) func(*answers) lab.Finding {
	return func(a *answers) lab.Finding {
		r := judge(a)
		f := lab.Finding{Measured: strings.Join(r.parts, "; "), Values: r.values, Result: lab.ResultOf(r.met()), Note: r.remark, Differs: strings.Join(r.differs, " ")}
		switch {
		case r.informs:
			f.Result = lab.Informational
		case f.Result == lab.Fails:
			words := []string{r.missing(a.standardErrors(judge))}
			if a.env.Jobs == 0 && a.env.Seeds >= seedCount {
				words = append(words, why...) // it explains what comes out of the whole experiment
			}
			if r.remark != "" {
				words = append(words, r.remark)
			}
			f.Note = strings.Join(words, " ")
		}
		return f
	}
}

// Workload says which jobs were run.
func (a *answers) Workload() string {
	if a.env.Jobs > 0 {
		return fmt.Sprintf("5 sites of 4 nodes, %d sequential jobs in all; exponential sizes and gaps as in spec 004 section 3.1", siteCount*a.env.Jobs)
	}
	return "5 sites of 4 nodes, 4400 sequential jobs of which the middle 4000 count; exponential sizes and gaps (spec 004 section 3.1)"
}

// Remark says how things were read.
func (a *answers) Remark(r *lab.Report) {
	n := len(a.env.SeedList())
	r.Remark("Each number is the mean over %d seeds of a mean over the jobs of an origin.", n)
	r.Remark("Maxima, standard deviations (divisor n-1), gains and losses over the sites are taken from the means over 10 seeds, as in the source, and averaged over the lots of 10: the fewer runs, the larger they come out by noise alone.")
	r.Remark("Where a claim fails, the distance from its band is given in standard errors of the figure over the seeds (jackknife).")
	if n < seedCount {
		r.Remark("Under heavy load the sites cannot keep up, so that one run says little; with %d seeds instead of %d verdicts on bands may be chance.", n, seedCount)
	}
	if a.env.Trace != nil {
		r.Remark("The source has no log: the trace was not used.")
	}
	r.Remark("Every site places its own jobs with the production pipeline (scheme mct): it asks all sites when the job would be completed and takes the best; the source has one central scheduler that does the same.")
}

// siteCount and siteJobs are the number of sites and of jobs at a site
// on average, seedCount how many runs there are of each setting (spec 004
// section 3.1).
const (
	seedCount = 40
	siteCount = 5
	siteJobs  = 880
)

// loads are in the order of the source.
var loads = []workload.PriorityLoad{workload.Heavy, workload.Medium, workload.Light}
