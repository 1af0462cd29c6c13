package sim

import (
	"strings"
	"testing"

	"kith/internal/job"
	"kith/meta"
)

// A story is the same on every machine and each time: it names tasks, not where they lie in
// memory. Wide schedule 180 showed it.
func TestMessagesNameTasks(t *testing.T) {
	var tasks job.TaskSet
	tasks.AddRange(27, 30)
	got := Describe(meta.TaskVerdict{Stamp: 7, Bundles: []meta.GivenBundle{{Tasks: tasks}}})
	if !strings.Contains(got, "Tasks:27-29") {
		t.Error(got)
	}
}
