package main

import (
	"errors"
	"fmt"
	"strings"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// dependencies is what --dependency asks for.
type dependencies struct {
	after     []*kithv1.Dependency
	singleton bool
}

// parseCondition returns the condition of a word, which is what [job.Condition] calls it; the
// numbers are those of the API.
func parseCondition(word string) (c kithv1.Dependency_Condition, known bool) {
	for _, one := range []job.Condition{job.AfterOK, job.AfterAny, job.AfterNotOK} {
		if one.String() == word {
			return kithv1.Dependency_Condition(one), true
		}
	}
	return 0, false
}

// What to do without the dependencies of Slurm that Kith does not have.
var noConditions = map[string]string{
	"after":            "Kith waits for ends only, not for starts or times: use afterany, or submit with --hold and release it",
	"aftercorr":        "tasks do not wait for single tasks: use afterok with the bag's id, or run both steps in one task",
	"afterburstbuffer": "Kith has no burst buffers: use afterany",
	"expand":           "a job keeps the processors that it asked for",
}

// parseDependency reads afterok:ID[:ID...][,afterany:ID...][,singleton].
func parseDependency(text string) (dependencies, error) {
	var d dependencies
	if strings.Contains(text, "?") {
		return d, errors.New("\"?\", one of several, is not available: with commas all must be met; submit a job for each case, or let the script decide")
	}
	for part := range strings.SplitSeq(text, ",") {
		word, ids, named := strings.Cut(part, ":")
		condition, known := parseCondition(word)
		switch {
		case word == "singleton" && !named:
			d.singleton = true
			continue
		case noConditions[word] != "":
			return d, fmt.Errorf("%s is not available; %s", word, noConditions[word])
		case !known:
			return d, fmt.Errorf("%q: write afterok:ID, afterany:ID or afternotok:ID, with more ids behind further colons, or singleton; commas between them", part)
		case ids == "":
			return d, fmt.Errorf("%s: which job or bag? Write %s:ID", word, word)
		}
		for id := range strings.SplitSeq(ids, ":") {
			if _, err := job.ParseID(id); err != nil {
				if bag, _, err := job.ParseTaskName(id); err == nil {
					return d, fmt.Errorf("%s: is a task; wait for its bag: %s:%v", id, word, bag)
				}
				return d, fmt.Errorf("%s:%s: %w", word, id, err)
			}
			d.after = append(d.after, &kithv1.Dependency{Id: id, Condition: condition})
		}
	}
	if n := len(d.after); n > job.MaxDependencies {
		return d, fmt.Errorf("%d ids, at most %d; let a job wait for some, and this one for that job", n, job.MaxDependencies)
	}
	return d, nil
}

// afterLines says what a job or a bag waits for, and what has become of it.
func afterLines(after []*kithv1.Dependency, singleton bool) []string {
	states := map[kithv1.Dependency_State]string{
		kithv1.Dependency_STATE_WAITS: ", not yet", kithv1.Dependency_STATE_MET: ", met",
		kithv1.Dependency_STATE_BROKEN: ", can never be met", kithv1.Dependency_STATE_DROPPED: ", not waited for any more",
	}
	var lines []string
	for _, d := range after {
		word := "after" // of a later version
		if c := job.Condition(d.GetCondition()); c.Known() {
			word = c.String()
		}
		lines = append(lines, word+":"+d.GetId()+states[d.GetState()])
	}
	if singleton {
		lines = append(lines, "singleton")
	}
	return lines
}
