package runner

import (
	"strings"
	"testing"

	"kith/internal/job"
	"kith/meta"
)

// A job that removes the file of its own stdout or stderr ended as if it had written
// nothing. Its outcome says that output is lost, and which.
func TestAJobThatRemovesItsStreams(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"echo x; rm ../stdout":              `output "stdout": lost, the job removed the file`,
		"echo x >&2; rm ../stderr; echo y":  `output "stderr": lost, the job removed the file`,
		"rm ../stdout ../stderr":            `output "stdout": lost, the job removed the file; "stderr": lost, the job removed the file`,
		"true":                              "",
		"echo x; : >../stdout":              "",
		"mv ../stdout x; mv x ../stdout":    "",
		"rm ../stdout; exit 3":              `exit code 3; output "stdout": lost, the job removed the file`,
		"rm -f ../stderr; kill -9 $$; true": `ended by signal 9 (SIGKILL); output "stderr": lost, the job removed the file`,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, script)
			h.runner.Launch(meta.Launch{Attempt: own(1), Request: request})
			for {
				end, ended := h.next().(meta.AttemptEnded)
				if !ended {
					continue
				}
				o := end.Outcome
				if o.Reason != want || o.FilesLost != strings.Contains(want, "lost") || (o.Kind == job.Success) != (o.ExitCode == 0 && o.Signal == 0) {
					t.Errorf("%v, lost %v: %q", o.Kind, o.FilesLost, o.Reason)
				}
				return
			}
		})
	}
}
