package main

import (
	"errors"
	"math"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/testbed/workload"
)

// jobSource is the flags that say which jobs to replay: a log or a model, and
// what to change in it.
type jobSource struct {
	trace, model string
	seed         uint64
	count, skip  int // count 0 means all
	stretch      float64
	load         float64
	loadGiven    bool
	overrun      cli.Parsed[workload.Overrun]
	perfect      bool
}

// The models of --generate.
const (
	modelCTC    = "ctc"
	modelLublin = "lublin"
)

func (j *jobSource) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&j.trace, "trace", "", "replay the log in `FILE`")
	flags.StringVar(&j.model, "generate", "", "replay jobs made up by a `MODEL` instead: ctc looks like the log of the Cornell Theory Center, lublin is the model of Lublin and Feitelson")
	flags.Uint64Var(&j.seed, "seed", 0, "what --generate draws from, as a number `N`")
	flags.IntVar(&j.count, "jobs", 0, "replay only `N` jobs (default all; 5000 with --generate)")
	flags.IntVar(&j.skip, "skip", 0, "leave out the first `N` jobs that fit")
	flags.Float64Var(&j.stretch, "scale-runtime", 1, "multiply run times and estimates by `X`")
	flags.Float64Var(&j.load, "load", 0, "bring the jobs closer or farther apart, so that they ask for `X` of what the site can do: 0.7 (default as they are; ctc 0.6)")
	j.overrun = cli.Parsed[workload.Overrun]{Value: workload.Kill, Text: workload.Kill.String(), Kind: "kill|raise", Parse: parseOverrun}
	flags.Var(&j.overrun, "overrun", "jobs that ran longer than estimated are killed then, or have their estimate raised")
	flags.BoolVar(&j.perfect, "perfect-estimates", false, "as if users knew the run times")
	cli.Complete(cmd, "generate", modelCTC, modelLublin)
	cli.Complete(cmd, "overrun", workload.Kill.String(), workload.Raise.String())
}

func parseOverrun(s string) (workload.Overrun, error) {
	if o, err := workload.ParseOverrun(s); err == nil && o != workload.Keep {
		return o, nil
	}
	return 0, errors.New("choose kill or raise")
}

// check refuses flags that make no sense.
func (j *jobSource) check(cmd *cobra.Command) error {
	j.loadGiven = cmd.Flags().Changed("load")
	switch {
	case j.trace == "" && j.model == "":
		return cli.Usagef("%s: which jobs? Give --trace FILE, or --generate %s|%s", cmd.Name(), modelCTC, modelLublin)
	case j.trace != "" && j.model != "":
		return cli.Usagef("--trace %s, --generate %s: choose one of them", j.trace, j.model)
	case j.model != "" && j.model != modelCTC && j.model != modelLublin:
		return cli.Usagef("--generate %s: choose %s or %s", j.model, modelCTC, modelLublin)
	case j.trace != "" && cmd.Flags().Changed("seed"):
		return cli.Usagef("--seed %d: goes with --generate; a log is as it is", j.seed)
	case cmd.Flags().Changed("jobs") && (j.count < 1 || j.count > workload.MaxJobs):
		return cli.Usagef("--jobs %d: write a number from 1 to %d", j.count, workload.MaxJobs)
	case j.skip < 0 || j.skip > workload.MaxJobs:
		return cli.Usagef("--skip %d: write a number from 0 to %d", j.skip, workload.MaxJobs)
	case !(j.stretch > 0) || math.IsInf(j.stretch, 0):
		return cli.Usagef("--scale-runtime %v: write a number above 0", j.stretch)
	case j.loadGiven && (!(j.load > 0) || j.load > 100):
		return cli.Usagef("--load %v: write a number above 0 and at most 100; 1 is all that the site can do", j.load)
	}
	return nil
}

// workload returns the jobs as they will be replayed, and how many processors there
// are for them; processors 0 leaves that to the log.
func (j *jobSource) workload(processors int32) (*workload.Workload, error) {
	w, err := j.open(processors)
	if err != nil {
		return nil, err
	}
	if processors == 0 {
		processors = w.Processors
	}
	if processors == 0 {
		return nil, cli.Usagef("--trace %s: the log does not say how large the machine is; give --processors P", j.trace)
	}
	return j.transform(w, processors)
}

// open reads the log or asks the model.
func (j *jobSource) open(processors int32) (*workload.Workload, error) {
	if j.trace != "" {
		return openLog(j.trace)
	}
	count := j.count
	if count == 0 {
		count = 5000
	}
	if count > workload.MaxJobs-j.skip {
		return nil, cli.Usagef("--jobs %d, --skip %d: together at most %d", count, j.skip, workload.MaxJobs)
	}
	count += j.skip
	rng := workload.NewRand(j.seed, 0)
	var w *workload.Workload
	var err error
	if j.model == modelCTC {
		w, err = workload.CTCLike{Jobs: count, Processors: processors}.Generate(rng)
	} else {
		w, err = workload.Lublin{Jobs: count, Processors: processors}.Generate(rng)
	}
	if err != nil {
		return nil, cli.Refusedf("--generate %s: %v", j.model, err)
	}
	return w, nil
}

// openLog reads a log.
func openLog(path string) (*workload.Workload, error) {
	w, err := workload.Open(path)
	if err != nil {
		return nil, cli.ReadFailure("--trace", path, err)
	}
	return w, nil
}

// transform does what the flags say, in the order in which published schedules
// were made: what does not fit goes first, then the window is cut, then run
// times are stretched.
func (j *jobSource) transform(w *workload.Workload, processors int32) (*workload.Workload, error) {
	fitting, err := w.Fit(processors, j.overrun.Value)
	if err != nil {
		return nil, err
	}
	w, err = fitting.Window(j.skip, j.count)
	if err != nil {
		return nil, err
	}
	if len(w.Jobs) == 0 {
		return nil, cli.Usagef("%s has %s for %s, --skip is %d: none is left", w.Name, cli.Plural(int64(len(fitting.Jobs)), "job", "jobs"),
			cli.Plural(int64(processors), "processor", "processors"), j.skip)
	}
	if w, err = w.Stretch(j.stretch); err != nil {
		return nil, err
	}
	if j.perfect {
		w = w.PerfectEstimates()
	}
	if j.loadGiven {
		now := w.OfferedLoad(processors)
		if now == 0 {
			return nil, cli.Usagef("--load %v: the jobs were all submitted at one instant", j.load)
		}
		if w, err = w.ScaleLoad(j.load / now); err != nil {
			return nil, err
		}
	}
	if len(w.Jobs) == 0 {
		return nil, cli.Usagef("--scale-runtime %v: makes all jobs longer than ten years", j.stretch)
	}
	return w, nil
}
