package executor

import (
	"errors"
	"strings"
	"time"

	"kith/internal/job"
	"kith/sitesched/executor/shim"
)

// Spec is what an attempt runs, and how. The executor keeps no reference to
// the slices and maps after the attempt has started.
type Spec struct {
	Attempt job.AttemptID
	// Argv is the command. A program without a slash is searched in the PATH of
	// the job's environment.
	Argv []string
	// Env are the job's own variables; see DESIGN.md for what is added.
	Env map[string]string
	// Directory is the working directory: absolute, or relative to the private
	// work folder, which is the default.
	Directory string
	// Processors is the width of the job; at least 1. Tasks is how many processes
	// the user announced (Slurm's --ntasks); zero means 1.
	Processors, Tasks int
	// MemoryBytes limits the whole job; zero means no limit.
	MemoryBytes int64
	// Walltime is how long the job may run; zero means for ever.
	Walltime time.Duration
	// Name and User are what the job sees of itself; they choose nothing.
	Name, User string
	// OriginSite and HostSite are where the job comes from and where it runs.
	OriginSite, HostSite job.SiteID
	// SubmitDirectory is where the user submitted it; it may not exist here.
	SubmitDirectory string
	// SlurmJobID is SLURM_JOB_ID. Default: the job's id as text.
	SlurmJobID string
	// Account is the local user to run as; nil for the daemon's own. Only a
	// daemon that is root can run as another. The folders above Dir must let
	// that user through.
	Account *Account
	// Leased says that the attempt runs under a lease: only until Lease, or what
	// [Executor.Extend] says later. [Executor.Adopt] does not heed Lease: what an
	// earlier daemon wrote down stays in force.
	Leased bool
	Lease  Lease
}

// Account is a local user.
type Account struct {
	UID, GID uint32
	Groups   []uint32
	// Name is what the job finds in USER and LOGNAME.
	Name string
}

// Errors of a Spec that can never run.
var (
	errNoCommand = errors.New("the job has no command")
	errNulByte   = errors.New("the command, the directory or the environment holds a NUL byte")
	errEnvName   = errors.New("the name of an environment variable is empty or holds '='")
	errTooLong   = errors.New("the command and the environment together are too long")
)

// validate returns why the spec cannot be handed to a shim.
func (s *Spec) validate() error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return errNoCommand
	}
	size := 0
	for _, arg := range s.Argv {
		if strings.IndexByte(arg, 0) >= 0 {
			return errNulByte
		}
		size += len(arg) + 4
	}
	for name, value := range s.Env {
		if name == "" || strings.IndexByte(name, '=') >= 0 {
			return errEnvName
		}
		if strings.IndexByte(name, 0) >= 0 || strings.IndexByte(value, 0) >= 0 {
			return errNulByte
		}
		size += len(name) + len(value) + 5
	}
	if strings.IndexByte(s.Directory, 0) >= 0 || strings.IndexByte(s.SubmitDirectory, 0) >= 0 {
		return errNulByte
	}
	if size > shim.MaxMessage/2 {
		return errTooLong
	}
	return nil
}
