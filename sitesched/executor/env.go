package executor

import (
	"cmp"
	"maps"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kith/sitesched/work"
)

// environment builds what a job finds in its environment: a clean base, over
// it the job's own variables, over those what Kith says about the job. Nothing
// of the daemon's own environment gets in but LANG.
type environment struct {
	host string // the machine's name
	user string // the user that the daemon runs as
	lang string
}

// defaultPath is the PATH of a job that brings none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func newEnvironment() environment {
	e := environment{host: hostName(), user: strconv.Itoa(unix.Geteuid()), lang: "C.UTF-8"}
	if u, err := user.LookupId(e.user); err == nil {
		e.user = u.Username
	}
	if lang := os.Getenv("LANG"); lang != "" {
		e.lang = lang
	}
	return e
}

// variable is one entry of an environment.
type variable struct{ name, value string }

// build returns the environment of an attempt in a stable order.
func (e *environment) build(s *work.Spec, folder string) []string {
	facts := e.facts(s, folder)
	base := e.base(s, folder)
	w := entries{text: make([]byte, 0, 2048), ends: make([]int, 0, len(facts)+len(s.Env)+len(base))}
	for _, v := range base {
		if _, own := s.Env[v.name]; !own {
			w.add(v.name, v.value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !isFact(facts, name) {
			w.add(name, s.Env[name])
		}
	}
	for _, v := range facts {
		if v.value != "" {
			w.add(v.name, v.value)
		}
	}
	return w.list()
}

// entries are those of an environment in one text: a task has some fifty, and what is made for
// each of thousands a second is worth little memory.
type entries struct {
	text []byte
	ends []int
}

func (w *entries) add(name, value string) {
	w.text = append(append(append(w.text, name...), '='), value...)
	w.ends = append(w.ends, len(w.text))
}

func (w *entries) list() []string {
	all, begin := string(w.text), 0
	list := make([]string, len(w.ends))
	for i, end := range w.ends {
		list[i], begin = all[begin:end], end
	}
	return list
}

// isFact reports whether Kith says something about name, be it that the job
// does not have it, so that no variable of the user can pretend it.
func isFact(facts []variable, name string) bool {
	if !strings.HasPrefix(name, "SLURM") && !strings.HasPrefix(name, "KITH_") {
		return false
	}
	return slices.ContainsFunc(facts, func(v variable) bool { return v.name == name })
}

func (e *environment) base(s *work.Spec, folder string) []variable {
	name := e.user
	if s.Account != nil {
		name = s.Account.Name
		if name == "" {
			name = strconv.FormatUint(uint64(s.Account.UID), 10)
		}
	}
	return []variable{
		{"PATH", defaultPath},
		{"HOME", folder + "/" + workName},
		{"TMPDIR", folder + "/" + tmpName},
		{"USER", name},
		{"LOGNAME", name},
		{"SHELL", "/bin/sh"},
		{"LANG", e.lang},
	}
}

// workVariable names the work folder. It is also how the processes of an
// attempt are recognised when their shim is gone; see sweep.go.
const workVariable = "KITH_WORK_DIR"

// facts lists what a script written for Slurm looks at, and the same as KITH_*.
// What the job does not have is empty and left out.
func (e *environment) facts(s *work.Spec, folder string) []variable {
	id := cmp.Or(s.JobID, s.Attempt.Job.String())
	slurmID := cmp.Or(s.SlurmJobID, id)
	private := folder + "/" + workName
	submit := s.SubmitDirectory
	if submit == "" {
		submit = private
	}
	width, count := max(s.Processors, 1), max(s.Tasks, 1)
	var c work.Checkpoint
	restart, used := "", ""
	if s.Checkpoint != nil {
		c = *s.Checkpoint
		if c.Demotions > 0 {
			restart = "1"
		}
		used = strconv.FormatInt(int64(c.Used/time.Second), 10)
	}
	processors, tasks := strconv.Itoa(width), strconv.Itoa(count)
	return []variable{
		{"SLURM_JOB_ID", slurmID},
		{"SLURM_JOBID", slurmID},
		{"SLURM_JOB_NAME", s.Name},
		{"SLURM_JOB_USER", s.User},
		{"SLURM_SUBMIT_DIR", submit},
		{"SLURM_CPUS_PER_TASK", strconv.Itoa(max(width/count, 1))},
		{"SLURM_NTASKS", tasks},
		{"SLURM_NPROCS", tasks},
		{"SLURM_TASKS_PER_NODE", tasks},
		{"SLURM_JOB_NUM_NODES", "1"},
		{"SLURM_NNODES", "1"},
		{"SLURM_NODEID", "0"},
		{"SLURM_JOB_CPUS_PER_NODE", processors},
		{"SLURM_CPUS_ON_NODE", processors},
		{"SLURM_MEM_PER_NODE", positive(s.MemoryBytes >> 20)},
		{"SLURM_JOB_NODELIST", e.host},
		{"SLURM_NODELIST", e.host},
		{"SLURMD_NODENAME", e.host},
		{"SLURM_CLUSTER_NAME", string(s.HostSite)},
		{"KITH_JOB_ID", id},
		{"KITH_ATTEMPT", s.Attempt.String()},
		{"KITH_JOB_NAME", s.Name},
		{"KITH_USER", s.User},
		{"KITH_ORIGIN", string(s.OriginSite)},
		{"KITH_SITE", string(s.HostSite)},
		{"KITH_PROCESSORS", processors},
		{"KITH_TASKS", tasks},
		{"KITH_MEMORY_BYTES", positive(s.MemoryBytes)},
		{"KITH_WALLTIME_SECONDS", positive(int64(s.Walltime.Seconds()))},
		{"KITH_SUBMIT_DIR", submit},
		{"KITH_CHECKPOINT_DIR", c.Dir},
		{"KITH_RESTART", restart},
		{"KITH_CHECKPOINT_SEQUENCE", positiveCount(c.Sequence)},
		{"KITH_USED_SECONDS", used},
		{workVariable, private},
	}
}

// positiveCount returns v as text, or nothing if it is zero.
func positiveCount(v uint64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatUint(v, 10)
}

// positive returns v as text, or nothing if there is no such limit.
func positive(v int64) string {
	if v <= 0 {
		return ""
	}
	return strconv.FormatInt(v, 10)
}
