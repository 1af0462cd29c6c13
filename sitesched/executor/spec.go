package executor

import (
	"errors"
	"slices"
	"strings"

	"kith/sitesched/executor/shim"
	"kith/sitesched/work"
)

// Errors of a spec that can never run.
var (
	errNoCommand = errors.New("the job has no command")
	errNulByte   = errors.New("the command, the directory or the environment holds a NUL byte")
	errEnvName   = errors.New("the name of an environment variable is empty or holds '='")
	errTooLong   = errors.New("the command and the environment together are too long")
)

// validate returns why the spec cannot be handed to a shim.
func validate(s *work.Spec) error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return errNoCommand
	}
	size := 0
	args := s.Argv
	if e := s.Estimate; e != nil {
		if len(e.Argv) == 0 || e.Argv[0] == "" {
			return errNoCommand
		}
		args = slices.Concat(args, e.Argv)
	}
	for _, arg := range args {
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
