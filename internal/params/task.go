package params

import (
	"strconv"
	"strings"
)

// Task is what a task of a bag is told about itself.
type Task struct {
	Bag   string // the bag's id
	Index uint32
	// Count, Min, Max and Step are of the bag's indices, see job.Indices.
	Count, Min, Max, Step uint32
	// Names and Values are the row of the task.
	Names, Values []string
}

// Variable is an entry of an environment.
type Variable struct{ Name, Value string }

// VariablePrefix begins the name of the variable that has the value of a parameter; the
// parameter's name follows in upper case.
const VariablePrefix = "KITH_PARAM_"

// Environment returns what Kith adds to the environment of the task: its index, what
// Slurm tells the tasks of an array, and the values of its row.
func (t *Task) Environment() []Variable {
	number := func(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
	index := number(t.Index)
	env := make([]Variable, 0, 7+len(t.Names))
	env = append(env,
		Variable{"KITH_TASK_INDEX", index},
		Variable{"SLURM_ARRAY_JOB_ID", t.Bag},
		Variable{"SLURM_ARRAY_TASK_ID", index},
		Variable{"SLURM_ARRAY_TASK_COUNT", number(t.Count)},
		Variable{"SLURM_ARRAY_TASK_MIN", number(t.Min)},
		Variable{"SLURM_ARRAY_TASK_MAX", number(t.Max)},
		Variable{"SLURM_ARRAY_TASK_STEP", number(t.Step)},
	)
	for i, name := range t.Names {
		env = append(env, Variable{VariablePrefix + strings.ToUpper(name), t.Values[i]})
	}
	return env
}
