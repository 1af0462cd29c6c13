package shim

import (
	"strings"
	"syscall"
)

// defaultPath is searched when the job's environment has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// errNotInPath stands for a program that no folder of PATH has. It is a number
// that execve does not return.
const errNotInPath = syscall.ENODATA

// findProgram finds the job's program as a shell would: a name with a slash is
// a path, seen from the job's directory; any other is searched in the PATH of
// the job's environment. What is there but not executable is remembered, so
// that the answer says so.
func findProgram(m *Run) (string, syscall.Errno) {
	if len(m.Argv) == 0 || m.Argv[0] == "" {
		return "", errNotInPath
	}
	name := m.Argv[0]
	if strings.Contains(name, "/") {
		return name, 0
	}
	found := errNotInPath
	for folder := range strings.SplitSeq(searchPath(m.Env), ":") {
		path := folder + "/" + name
		if folder == "" || folder[0] != '/' {
			path = m.Directory + "/" + path
		}
		var st syscall.Stat_t
		if syscall.Stat(path, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG {
			continue
		}
		if st.Mode&0o111 != 0 {
			return path, 0
		}
		found = syscall.EACCES
	}
	return name, found
}

func searchPath(env []string) string {
	for _, v := range env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			return path
		}
	}
	return defaultPath
}
