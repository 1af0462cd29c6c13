package chaos

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"kith/internal/job"
)

// taskName names a task as users do.
type taskName struct {
	bag   job.ID
	index int32
}

// taskRun is a run of a task as the ledger has it.
type taskRun struct {
	attempt      job.AttemptID // no other run at its site has the name
	site         string
	starts, ends int
}

// taskStory is what the ledger has of one task: its runs in the order in which they
// began, and what is wrong with them.
type taskStory struct {
	runs     []*taskRun
	doubles  []string
	overlaps []string
}

// readTaskLedger reads what tasks wrote down. A line that is no entry is an error: lines
// are written whole or not at all.
func readTaskLedger(r io.Reader) (map[taskName]*taskStory, error) {
	tasks := make(map[taskName]*taskStory)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) != 4 || !slices.Contains([]string{"start", "end", "overlap"}, f[0]) {
			return nil, fmt.Errorf("ledger of tasks: %q is no entry", lines.Text())
		}
		bag, index, err := job.ParseTaskName(f[1])
		if err != nil {
			return nil, fmt.Errorf("ledger of tasks: %w", err)
		}
		attempt, err := job.ParseAttemptID(f[2])
		if err != nil {
			return nil, fmt.Errorf("ledger of tasks: %w", err)
		}
		name := taskName{bag, int32(index)}
		if tasks[name] == nil {
			tasks[name] = &taskStory{}
		}
		tasks[name].add(f[0], f[1], attempt, f[3])
	}
	return tasks, lines.Err()
}

// add takes in the next entry of a task.
func (s *taskStory) add(what, task string, attempt job.AttemptID, site string) {
	at := slices.IndexFunc(s.runs, func(r *taskRun) bool { return r.attempt == attempt && r.site == site })
	if at < 0 {
		s.runs = append(s.runs, &taskRun{attempt: attempt, site: site})
		at = len(s.runs) - 1
	}
	run := s.runs[at]
	switch what {
	case "start":
		if run.starts++; run.starts > 1 {
			s.doubles = append(s.doubles, fmt.Sprintf("run %v of task %s started %d times at %s", attempt, task, run.starts, site))
		}
	case "overlap":
		s.overlaps = append(s.overlaps, fmt.Sprintf("run %v of task %s at %s began while another held the task's lock", attempt, task, site))
	case "end":
		if run.ends++; at < len(s.runs)-1 {
			later := s.runs[len(s.runs)-1]
			s.overlaps = append(s.overlaps, fmt.Sprintf("run %v of task %s at %s ended after run %v had begun at %s", attempt, task, site, later.attempt, later.site))
		}
	}
}

// ranAt returns a run that began and ended at a site, nil if there is none.
func (s *taskStory) ranAt(site string) *taskRun {
	if s == nil {
		return nil
	}
	for _, r := range s.runs {
		if r.site == site && r.starts > 0 && r.ends > 0 {
			return r
		}
	}
	return nil
}
