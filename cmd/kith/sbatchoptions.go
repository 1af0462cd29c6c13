package main

import "slices"

// What to do without an option, where several have the same answer.
const (
	oneMachine  = "remove it; a job runs at one site on one machine"
	noChoice    = "remove it; Kith chooses among all sites that have room, whichever starts the job first"
	noDevices   = "remove it, or submit at a site's own Slurm; Kith hands out processors and memory only"
	noAccounts  = "remove it; Kith has no accounts: a site runs all jobs under one account of its own"
	noMail      = `remove it; "kith wait" or "kith submit --wait" tells when the job has ended`
	noPriority  = "remove it; each site serves its queue by its own policy"
	noPlace     = "remove it; the site places the job's processes on its processors itself"
	noEffect    = "remove it; kith submit says all there is to say"
	commandOnly = "give it on the command line of kith submit"
)

// slurmOptions is what sbatch can be told: the options that kith submit has
// too, its own, and those that it does not have, with what to do without them.
func slurmOptions() []option {
	return slices.Concat(supportedOptions(), unbuiltOptions(), unsupportedOptions())
}

func supportedOptions() []option {
	return []option{
		{long: "job-name", short: 'J', arg: takesArgument, flag: "job-name"},
		{long: "ntasks", short: 'n', arg: takesArgument, flag: "ntasks"},
		{long: "cpus-per-task", short: 'c', arg: takesArgument, flag: "cpus-per-task"},
		{long: "nodes", short: 'N', arg: takesArgument, flag: "nodes"},
		{long: "time", short: 't', arg: takesArgument, flag: "time"},
		{long: "mem", arg: takesArgument, flag: "mem"},
		{long: "mem-per-cpu", arg: takesArgument, flag: "mem-per-cpu"},
		{long: "output", short: 'o', arg: takesArgument, flag: "stdout"},
		{long: "error", short: 'e', arg: takesArgument, flag: "stderr"},
		{long: "chdir", short: 'D', arg: takesArgument, flag: "chdir"},
		{long: "export", arg: takesArgument, flag: "export"},
		{long: "dependency", short: 'd', arg: takesArgument, flag: "dependency"},
		{long: "hold", short: 'H', flag: "hold"},
		{long: "array", short: 'a', arg: takesArgument, flag: "array"},
		{long: "signal", arg: takesArgument, flag: "signal"},
		{long: "requeue", flag: "requeue"},
		{long: "parsable", flag: "parsable"},
		{long: "wait", short: 'W', flag: "wait"},
		// Kith's own, which Slurm would refuse.
		{long: "copies", arg: takesArgument, flag: "copies"},
		{long: "label", arg: takesArgument, flag: "label"},
		{long: "output-file", arg: takesArgument, flag: "output-file"},
		{long: "on-site-lost", arg: takesArgument, flag: "on-site-lost"},
		{long: "require-outputs", flag: "require-outputs"},
		{long: "checkpoint", arg: takesArgument, flag: "checkpoint"},
		{long: "level", arg: takesArgument, flag: "level"},
		{long: "estimate", arg: takesArgument, flag: "estimate"},
		{long: "checkpoint-exit", arg: takesArgument, flag: "checkpoint-exit"},
		{long: "checkpoint-signal", arg: takesArgument, flag: "checkpoint-signal"},
		{long: "checkpoint-grace", arg: takesArgument, flag: "checkpoint-grace"},
		{long: "checkpoint-every", arg: takesArgument, flag: "checkpoint-every"},
		{long: "stdout", arg: takesArgument, flag: "stdout"},
		{long: "stderr", arg: takesArgument, flag: "stderr"},
	}
}

// unbuiltOptions are Kith's own that it does not have yet. Help names none of them.
func unbuiltOptions() []option {
	return []option{
		{long: "worker", arg: mayTakeArgument, unbuilt: true, remedy: "leave it out, and each task starts its program; where that takes longer than the work, let a task do many rows, in a loop over a range that its index stands for"},
		{long: "dag", arg: takesArgument, unbuilt: true, remedy: "submit the jobs of the graph one after the other, each with --dependency afterok:ID of those that it needs"},
	}
}

func unsupportedOptions() []option {
	return []option{
		{long: "account", short: 'A', arg: takesArgument, remedy: noAccounts},
		{long: "acctg-freq", arg: takesArgument, remedy: "remove it; the outcome of a job has its CPU time and memory"},
		{long: "batch", arg: takesArgument, remedy: noChoice},
		{long: "bb", arg: takesArgument, remedy: noDevices},
		{long: "bbf", arg: takesArgument, remedy: noDevices},
		{long: "begin", short: 'b', arg: takesArgument, remedy: "submit with --hold and run \"kith release\" when it is time"},
		{long: "cluster-constraint", arg: takesArgument, remedy: noChoice},
		{long: "clusters", short: 'M', arg: takesArgument, remedy: noChoice},
		{long: "comment", arg: takesArgument, remedy: "use --label NAME=VALUE"},
		{long: "consolidate-segments", remedy: oneMachine},
		{long: "constraint", short: 'C', arg: takesArgument, remedy: noChoice},
		{long: "container", arg: takesArgument, remedy: "start the container from the script"},
		{long: "container-id", arg: takesArgument, remedy: "start the container from the script"},
		{long: "contiguous", remedy: oneMachine},
		{long: "core-spec", short: 'S', arg: takesArgument, remedy: noPlace},
		{long: "cores-per-socket", arg: takesArgument, remedy: noPlace},
		{long: "cpu-freq", arg: takesArgument, remedy: noPlace},
		{long: "cpus-per-gpu", arg: takesArgument, remedy: noDevices},
		{long: "deadline", arg: takesArgument, remedy: "remove it; \"kith cancel\" ends a job that has become useless"},
		{long: "delay-boot", arg: takesArgument, remedy: "remove it"},
		{long: "distribution", short: 'm', arg: takesArgument, remedy: oneMachine},
		{long: "exclude", short: 'x', arg: takesArgument, remedy: noChoice},
		{long: "exclusive", arg: mayTakeArgument, remedy: "remove it; ask for as many processors as the machine has"},
		{long: "export-file", arg: takesArgument, remedy: "use --export VAR=VALUE, or --input FILE and read it in the script"},
		{long: "extra", arg: takesArgument, remedy: "use --label NAME=VALUE"},
		{long: "extra-node-info", short: 'B', arg: takesArgument, remedy: noPlace},
		{long: "get-user-env", arg: mayTakeArgument, remedy: "use --export"},
		{long: "gid", arg: takesArgument, remedy: noAccounts},
		{long: "gpu-bind", arg: takesArgument, remedy: noDevices},
		{long: "gpu-freq", arg: takesArgument, remedy: noDevices},
		{long: "gpus", short: 'G', arg: takesArgument, remedy: noDevices},
		{long: "gpus-per-node", arg: takesArgument, remedy: noDevices},
		{long: "gpus-per-socket", arg: takesArgument, remedy: noDevices},
		{long: "gpus-per-task", arg: takesArgument, remedy: noDevices},
		{long: "gres", arg: takesArgument, remedy: noDevices},
		{long: "gres-flags", arg: takesArgument, remedy: noDevices},
		{long: "help", remedy: commandOnly},
		{long: "hint", arg: takesArgument, remedy: noPlace},
		{long: "ignore-pbs", remedy: "remove it; #PBS lines are comments for Kith"},
		{long: "input", short: 'i', arg: takesArgument, remedy: "take the file along with --input FILE on the command line of kith submit, and redirect stdin in the script"},
		{long: "kill-on-invalid-dep", arg: takesArgument, remedy: "remove it; a job whose dependency can never be met is cancelled"},
		{long: "licenses", short: 'L', arg: takesArgument, remedy: noDevices},
		{long: "mail-type", arg: takesArgument, remedy: noMail},
		{long: "mail-user", arg: takesArgument, remedy: noMail},
		{long: "mcs-label", arg: takesArgument, remedy: noAccounts},
		{long: "mem-bind", arg: takesArgument, remedy: noPlace},
		{long: "mem-per-gpu", arg: takesArgument, remedy: "use --mem"},
		{long: "mincpus", arg: takesArgument, remedy: "use --cpus-per-task"},
		{long: "network", arg: takesArgument, remedy: noPlace},
		{long: "nice", arg: mayTakeArgument, remedy: noPriority},
		{long: "no-kill", short: 'k', arg: mayTakeArgument, remedy: oneMachine},
		{long: "no-requeue", remedy: "remove it; --on-site-lost=wait, the default, never runs a job twice"},
		{long: "nodefile", short: 'F', arg: takesArgument, remedy: noChoice},
		{long: "nodelist", short: 'w', arg: takesArgument, remedy: noChoice},
		{long: "ntasks-per-core", arg: takesArgument, remedy: noPlace},
		{long: "ntasks-per-gpu", arg: takesArgument, remedy: noDevices},
		{long: "ntasks-per-node", arg: takesArgument, remedy: "use --ntasks with the same number: all tasks run on one machine"},
		{long: "ntasks-per-socket", arg: takesArgument, remedy: noPlace},
		{long: "oom-kill-step", arg: mayTakeArgument, remedy: "remove it"},
		{long: "open-mode", arg: takesArgument, remedy: "remove it; each job has files of its own"},
		{long: "overcommit", short: 'O', remedy: "remove it; ask for as many processors as the job should have"},
		{long: "oversubscribe", short: 's', remedy: "remove it; processors are never shared between jobs"},
		{long: "share", remedy: "remove it; processors are never shared between jobs"},
		{long: "partition", short: 'p', arg: takesArgument, remedy: noChoice},
		{long: "power", arg: takesArgument, remedy: noPlace},
		{long: "prefer", arg: takesArgument, remedy: noChoice},
		{long: "priority", arg: takesArgument, remedy: noPriority},
		{long: "profile", arg: takesArgument, remedy: "remove it; the outcome of a job has its CPU time and memory"},
		{long: "propagate", arg: mayTakeArgument, remedy: "set limits in the script with ulimit"},
		{long: "qos", short: 'q', arg: takesArgument, remedy: noPriority},
		{long: "quiet", short: 'Q', remedy: "remove it; --parsable prints the job's id only"},
		{long: "reboot", remedy: "remove it"},
		{long: "request-id", arg: takesArgument, remedy: commandOnly + ": a script that has one could be submitted only once"},
		{long: "reservation", arg: takesArgument, remedy: noChoice},
		{long: "resv-ports", arg: mayTakeArgument, remedy: oneMachine},
		{long: "segment", arg: takesArgument, remedy: oneMachine},
		{long: "sockets-per-node", arg: takesArgument, remedy: noPlace},
		{long: "spread-job", remedy: oneMachine},
		{long: "stepmgr", remedy: oneMachine},
		{long: "switches", arg: takesArgument, remedy: oneMachine},
		{long: "test-only", remedy: commandOnly + ": a script that has it could never be submitted"},
		{long: "thread-spec", arg: takesArgument, remedy: noPlace},
		{long: "threads-per-core", arg: takesArgument, remedy: noPlace},
		{long: "time-min", arg: takesArgument, remedy: "use --time with the longest run time"},
		{long: "tmp", arg: takesArgument, remedy: "remove it; a job's private folder is on the site's disk"},
		{long: "tres-bind", arg: takesArgument, remedy: noPlace},
		{long: "tres-per-job", arg: takesArgument, remedy: noDevices},
		{long: "tres-per-task", arg: takesArgument, remedy: noDevices},
		{long: "uid", arg: takesArgument, remedy: noAccounts},
		{long: "usage", remedy: commandOnly},
		{long: "use-min-nodes", remedy: oneMachine},
		{long: "verbose", short: 'v', remedy: noEffect},
		{long: "version", short: 'V', remedy: commandOnly},
		{long: "wait-all-nodes", arg: takesArgument, remedy: oneMachine},
		{long: "wckey", arg: takesArgument, remedy: "use --label NAME=VALUE"},
		{long: "workdir", arg: takesArgument, remedy: "use --chdir"},
		{long: "wrap", arg: takesArgument, remedy: commandOnly},
	}
}
