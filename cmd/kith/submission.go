package main

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/cli"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// submission is what the flags of kith submit and the #SBATCH lines of the
// script ask for.
type submission struct {
	name           string
	tasks, cpus    cli.Parsed[int32]
	nodes          cli.Parsed[int]
	walltime       cli.Parsed[time.Duration]
	memory, perCPU cli.Parsed[int64]
	stdout, stderr string
	chdir          string
	export         cli.Parsed[exports]
	hold           bool
	dependency     cli.Parsed[dependencies]
	copies         cli.Parsed[int32]
	labels         pairs
	outputs        []string
	onSiteLost     cli.Parsed[kithv1.Job_OnSiteLost]
	require        bool
	checkpoint     []string
	checkpointExit cli.Parsed[int32]
	// How it is asked to save.
	signal, checkpointSignal cli.Parsed[askSignal]
	checkpointGrace          cli.Parsed[time.Duration]
	checkpointEvery          cli.Parsed[time.Duration]
	requeue                  bool
	level                    cli.Parsed[int32]
	estimate                 string
	parsable, wait           bool
	testOnly                 bool

	// Only on the command line.
	wrap      string
	inputs    []string
	requestID string

	bag bagOptions
}

// newSubmission returns a submission with the defaults.
func newSubmission() *submission {
	return &submission{
		tasks:      cli.Parsed[int32]{Value: 1, Text: "1", Kind: "N", Parse: parseCount},
		cpus:       cli.Parsed[int32]{Value: 1, Text: "1", Kind: "N", Parse: parseCount},
		nodes:      cli.Parsed[int]{Kind: "1", Parse: parseNodes},
		walltime:   cli.Parsed[time.Duration]{Value: time.Hour, Text: "1h", Kind: "TIME", Parse: parseTime},
		memory:     cli.Parsed[int64]{Kind: "SIZE[K|M|G|T]", Parse: parseMemory},
		perCPU:     cli.Parsed[int64]{Kind: "SIZE[K|M|G|T]", Parse: parseMemory},
		export:     cli.Parsed[exports]{Text: "NONE", Kind: "LIST", Parse: parseExport},
		copies:     cli.Parsed[int32]{Kind: "K", Parse: parseSpread},
		dependency: cli.Parsed[dependencies]{Kind: "afterok:ID[:ID][,...]", Parse: parseDependency},
		onSiteLost: cli.Parsed[kithv1.Job_OnSiteLost]{Text: "wait", Kind: "wait|rerun|race", Parse: parseOnSiteLost},
		bag:        newBagOptions(),

		checkpointExit:   cli.Parsed[int32]{Text: "85", Kind: "CODE", Parse: parseCount},
		signal:           cli.Parsed[askSignal]{Kind: "[B:]SIG[@SECONDS]", Parse: parseSlurmSignal},
		checkpointSignal: cli.Parsed[askSignal]{Kind: "[ALL:]SIG", Parse: parseCheckpointSignal},
		checkpointGrace:  cli.Parsed[time.Duration]{Kind: "TIME", Parse: parseWalltime},
		checkpointEvery:  cli.Parsed[time.Duration]{Kind: "TIME", Parse: parseWalltime},
		level:            cli.Parsed[int32]{Kind: "N", Parse: parseLevel},
	}
}

// register adds the flags. Those of Slurm that Kith does not have are there
// too, hidden, to say what to do without them.
func (o *submission) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.SetInterspersed(false) // what follows the script is the script's
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "error" {
			name = "stderr"
		}
		return pflag.NormalizedName(name)
	})
	flags.StringVarP(&o.name, "job-name", "J", "", "the job's `NAME` (default that of the script or command)")
	flags.VarP(&o.tasks, "ntasks", "n", "number of tasks")
	flags.VarP(&o.cpus, "cpus-per-task", "c", "processors for each task; the job holds ntasks times as many")
	flags.VarP(&o.nodes, "nodes", "N", "only 1: a job runs at one site on one machine")
	flags.VarP(&o.walltime, "time", "t", "longest run time: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S, or 90s, 1h30m; the job is stopped then. \"unknown\": it begins at a small level and goes down")
	flags.Var(&o.memory, "mem", "memory of the whole job; without a letter, megabytes (default no limit of its own)")
	flags.Var(&o.perCPU, "mem-per-cpu", "memory for each processor, instead of --mem")
	flags.StringVarP(&o.stdout, "stdout", "o", "", "`FILE` under which \"kith fetch\" writes stdout; %j is the job's id, %x its name (default kith-%j.out)")
	flags.StringVarP(&o.stderr, "stderr", "e", "", "`FILE` for stderr, likewise; also --error (default kith-%j.err)")
	flags.StringVarP(&o.chdir, "chdir", "D", "", "`DIR` to run in: absolute at the site, or below the private folder (default the private folder)")
	flags.Var(&o.export, "export", "variables to take along: NONE, ALL, or VAR[=VALUE][,...]")
	flags.VarP(&o.dependency, "dependency", "d", "start only when jobs or bags of this site have ended: afterok, afterany, afternotok, each with ids, or singleton")
	flags.BoolVarP(&o.hold, "hold", "H", false, "do not start before \"kith release\"")
	flags.Var(&o.copies, "copies", "sites to queue at; the first that can start the job runs it (default the site's)")
	flags.Var(&o.labels, "label", "mark the job, to find it again; repeatable")
	flags.StringArrayVar(&o.inputs, "input", nil, "take a file or folder along, as `LOCAL[:PATH]`; repeatable")
	flags.StringArrayVar(&o.outputs, "output-file", nil, "bring back `PATH`, what is beneath it, or what matches it; repeatable")
	flags.BoolVar(&o.require, "require-outputs", false, "the job is FAILED if an --output-file does not come back")
	flags.Var(&o.onSiteLost, "on-site-lost", "when the site of the running job cannot be reached")
	flags.StringArrayVar(&o.checkpoint, "checkpoint", nil, "the job saves files that match `PATTERN` in $KITH_CHECKPOINT_DIR, and goes on from them when it asks to be run again; repeatable")
	flags.Var(&o.checkpointExit, "checkpoint-exit", "the exit code with which it asks for that")
	flags.Var(&o.checkpointSignal, "checkpoint-signal", "the signal that asks it to save and end: for its first process, with ALL: for all (default USR1)")
	flags.Var(&o.checkpointGrace, "checkpoint-grace", "how long it may take then (default 1m, at most what the site gives)")
	flags.Var(&o.checkpointEvery, "checkpoint-every", "how often what it has saved is copied to its own site while it runs, so that it goes on from there if its host is lost (default never)")
	flags.Var(&o.signal, "signal", "ask it to save so long before its time limit, and go on in another attempt; without B: all its processes")
	flags.BoolVar(&o.requeue, "requeue", false, "the job may begin again: as --on-site-lost rerun, and when its site needs the processors")
	if o.bag.wanted { // what tasks have finished stays finished
		for _, name := range []string{"checkpoint", "checkpoint-exit", "checkpoint-signal", "checkpoint-grace", "checkpoint-every", "signal", "requeue"} {
			flags.Lookup(name).Hidden = true
		}
	}
	flags.Var(&o.level, "level", "the level of the hierarchy at which the job begins, 1 to 16 (default 1 with --time unknown, else none); it needs --checkpoint, or --on-site-lost rerun")
	flags.StringVar(&o.estimate, "estimate", "", "run `COMMAND` with /bin/sh before the job, which prints bounds of what the job needs: \"bound SECONDS\"; for --time unknown or --level")
	if o.bag.wanted {
		flags.Lookup("level").Usage = "the level of the hierarchy at which the bag begins, 1 to 16 (default 1 with --time unknown, else none)"
		flags.Lookup("estimate").Hidden = true
	}
	flags.StringVar(&o.wrap, "wrap", "", "run `TEXT` with /bin/sh")
	flags.BoolVar(&o.parsable, "parsable", false, "print the job's id and nothing else")
	flags.BoolVarP(&o.wait, "wait", "W", false, "wait for the end, print the job's output, and exit with its code")
	flags.BoolVar(&o.testOnly, "test-only", false, "check the job, tell where it would go and when it would start at this site, and submit nothing")
	flags.StringVar(&o.requestID, "request-id", "", "`ID` of this submission: repeating it submits nothing twice (default a random one)")
	if o.bag.wanted {
		o.bag.register(flags)
	} else {
		o.bag.registerArray(flags)
	}
	for _, opt := range slices.Concat(unbuiltOptions(), unsupportedOptions()) {
		refuse(flags, opt)
	}
}

// refuse adds a hidden flag that is never accepted.
func refuse(flags *pflag.FlagSet, opt option) {
	if strings.HasPrefix(opt.remedy, commandOnly) {
		return
	}
	name, short := opt.long, ""
	if flags.Lookup(name) != nil { // Kith means something else by it
		name = "slurm-" + name
	}
	if opt.short != 0 {
		short = string(opt.short)
	}
	f := flags.VarPF(&refusal{opt}, name, short, "")
	f.Hidden = true
	if opt.arg != takesArgument {
		f.NoOptDefVal = "true"
	}
}

// refusal is the value of a flag that is never accepted.
type refusal struct{ option option }

// Set implements pflag.Value.
func (r *refusal) Set(string) error { return cli.Usagef("%v", r.option.unsupported()) }

// String implements pflag.Value.
func (r *refusal) String() string { return "" }

// Type implements pflag.Value.
func (r *refusal) Type() string { return "" }

// follow obeys the #SBATCH lines of a script, as far as the command line does
// not say otherwise. Labels and outputs add up.
func (o *submission) follow(flags *pflag.FlagSet, p *program) error {
	found, problems := parseDirectives(p.script, slurmOptions())
	given := make(map[string]bool)
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	if given["mem"] || given["mem-per-cpu"] {
		given["mem"], given["mem-per-cpu"] = true, true
	}
	var outputs, checkpoint []string
	for _, d := range found {
		var err error
		switch {
		case d.option.flag == "label":
			err = addPair(&o.labels.below, d.value)
		case d.option.flag == "output-file":
			outputs = append(outputs, d.value)
		case d.option.flag == "checkpoint":
			checkpoint = append(checkpoint, d.value)
		case !given[d.option.flag]:
			if err = flags.Lookup(d.option.flag).Value.Set(d.value); err == nil && (d.option.flag == "stdout" || d.option.flag == "stderr") {
				_, err = fillName(d.value, "", o.bag.is() || slices.ContainsFunc(found, isArray))
			}
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("line %d: %v %s: %v", d.line, d, d.value, err))
		}
	}
	o.outputs, o.checkpoint = append(outputs, o.outputs...), append(checkpoint, o.checkpoint...)
	if len(problems) == 0 {
		return nil
	}
	for i, problem := range problems {
		problems[i] = p.source + " " + problem
	}
	return &cli.Failure{Code: cli.ExitUsage, Problems: problems}
}

// job returns the job to be submitted, without its inputs.
func (o *submission) job(p *program, environ []string) (*kithv1.Job, error) {
	j := &kithv1.Job{
		Name: orDefault(o.name, nameFrom(p.name)), Command: p.command, Script: p.script, Arguments: p.arguments,
		WorkingDirectory: o.chdir, Walltime: durationpb.New(o.walltime.Value), Copies: o.copies.Value,
		Labels: o.labels.merged(), OnSiteLost: o.onSiteLost.Value, Hold: o.hold,
		After: o.dependency.Value.after, Singleton: o.dependency.Value.singleton,
	}
	processors, ok := times(int64(o.tasks.Value), int64(o.cpus.Value), job.MaxProcessors)
	if !ok {
		return nil, cli.Usagef("--ntasks %d times --cpus-per-task %d: a job has at most %d processors", o.tasks.Value, o.cpus.Value, job.MaxProcessors)
	}
	j.Processors, j.Tasks = int32(processors), o.tasks.Value
	j.MemoryBytes = o.memory.Value
	if o.perCPU.Text != "" {
		if o.memory.Text != "" {
			return nil, cli.Usagef("--mem and --mem-per-cpu: choose one of them")
		}
		if j.MemoryBytes, ok = times(o.perCPU.Value, processors, job.MaxMemoryBytes); !ok {
			return nil, cli.Usagef("--mem-per-cpu %s for %d processors: a job has at most %d T of memory", o.perCPU.Text, processors, int64(job.MaxMemoryBytes)>>40)
		}
	}
	var err error
	if j.Environment, err = o.export.Value.environment(environ); err != nil {
		return nil, err
	}
	if j.StdoutPath, err = outputName("--stdout (-o)", o.stdout, j.Name, o.bag.is()); err != nil {
		return nil, err
	}
	if j.StderrPath, err = outputName("--stderr (-e)", o.stderr, j.Name, o.bag.is()); err != nil {
		return nil, err
	}
	if orDefault(j.StdoutPath, stdoutName) == orDefault(j.StderrPath, stderrName) {
		return nil, cli.Usagef("--stdout and --stderr are both %s: Kith keeps them apart; leave one out, or put 2>&1 into the script", orDefault(j.StdoutPath, stdoutName))
	}
	if j.Outputs, err = declaredOutputs(o.outputs); err != nil {
		return nil, err
	}
	j.RequireOutputs = o.require
	if j.Checkpoint, err = o.checkpointOf(); err != nil {
		return nil, err
	}
	if o.requeue {
		switch j.OnSiteLost {
		case kithv1.Job_ON_SITE_LOST_RACE:
			return nil, cli.Usagef("--requeue and --on-site-lost=race: choose one of them")
		case kithv1.Job_ON_SITE_LOST_WAIT:
			return nil, cli.Usagef("--requeue and --on-site-lost=wait: choose one of them")
		}
		j.OnSiteLost = kithv1.Job_ON_SITE_LOST_RERUN
	}
	j.Estimate = o.estimate
	if j.Level = o.level.Value; o.walltime.Value == unknownTime {
		j.Walltime, j.WalltimeUnknown = nil, true
	}
	if _, err := proto.Marshal(j); err != nil {
		return nil, cli.Usagef("an option's value is not UTF-8 text")
	}
	return j, nil
}

// declaredOutputs checks what is to come back. A site would run the job first
// and find a wrong one afterwards.
func declaredOutputs(names []string) ([]*kithv1.OutputFile, error) {
	var outputs []*kithv1.OutputFile
	var problems []string
	for _, name := range names {
		clean := path.Clean(name)
		dir, last := path.Split(clean)
		_, err := path.Match(last, "")
		switch {
		case !filepath.IsLocal(name) || clean == ".":
			problems = append(problems, fmt.Sprintf("--output-file %s: must be a path inside the job's private folder", name))
		case strings.ContainsAny(dir, "*?["):
			problems = append(problems, fmt.Sprintf("--output-file %s: only the last element may be a pattern; for all files beneath a folder name the folder", name))
		case err != nil:
			problems = append(problems, fmt.Sprintf("--output-file %s: %q is not a pattern: write * ? or [a-z], and \\ before one that stands for itself", name, last))
		}
		outputs = append(outputs, &kithv1.OutputFile{Path: clean})
	}
	if len(problems) > 0 {
		return nil, &cli.Failure{Code: cli.ExitUsage, Problems: problems}
	}
	return outputs, nil
}

// nameFrom makes a job's name of a file's.
func nameFrom(file string) string {
	name := strings.ToValidUTF8(file, "?")
	for len(name) > job.MaxNameLength {
		_, last := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-last]
	}
	return name
}

// outputName checks a name for stdout or stderr and fills in the job's name
// for %x; %j, and %A and %a of a bag, stay for "kith fetch" and "kith bag fetch".
func outputName(flag, text, jobName string, ofBag bool) (string, error) {
	name, err := fillName(text, jobName, ofBag)
	if err != nil {
		return "", cli.Usagef("%s %s: %v", flag, text, err)
	}
	return name, nil
}

// fillName is outputName without the flag in its errors. Without a job's name it
// finds what is wrong with the text whatever the name is.
func fillName(text, jobName string, ofBag bool) (string, error) {
	var name strings.Builder
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case strings.HasPrefix(rest, "%x"):
			name.WriteString(orDefault(jobName, "x"))
			i++
		case strings.HasPrefix(rest, "%j"):
			name.WriteString("%j")
			i++
		case ofBag && (strings.HasPrefix(rest, "%A") || strings.HasPrefix(rest, "%a")):
			name.WriteString(rest[:2])
			i++
		case ofBag && strings.HasPrefix(rest, "{{"):
			return "", errors.New("parameters have no place in it; %A is the bag's id and %a the task's index")
		case ofBag && text[i] == '%':
			return "", errors.New("only %A for the bag's id, %a for the task's index, %j for both and %x for the job's name are available")
		case text[i] == '%':
			return "", errors.New("only %j for the job's id and %x for its name are available")
		default:
			name.WriteByte(text[i])
		}
	}
	if text != "" && (!filepath.IsLocal(name.String()) || strings.HasSuffix(text, "/")) {
		return "", errors.New("must be a relative name of a file; \"kith fetch\" writes it into the folder of your choice")
	}
	return name.String(), nil
}

// isArray reports whether a line makes a bag.
func isArray(d directive) bool { return d.option.flag == "array" }

func parseOnSiteLost(text string) (kithv1.Job_OnSiteLost, error) {
	switch text {
	case "wait":
		return kithv1.Job_ON_SITE_LOST_WAIT, nil
	case "rerun":
		return kithv1.Job_ON_SITE_LOST_RERUN, nil
	case "race":
		return kithv1.Job_ON_SITE_LOST_RACE, nil
	}
	return 0, fmt.Errorf("choose wait, rerun or race")
}
