package tasks

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"kith/internal/params"
	kithv1 "kith/proto/gen/kith/v1"
)

// Fields are the texts of a job that may have parameters in them, in the order in which
// they stand: the command, the arguments, the values of the environment by their names, the
// paths of outputs, and the paths for stdout and stderr.
type Fields struct {
	All []params.Field
	// Command, Environment and Outputs are behind which of them they end; the arguments are
	// part of the command.
	Command, Environment, Outputs int
}

// FieldsOf returns the texts of a template. Their names begin with prefix: "job.".
func FieldsOf(template *kithv1.Job, prefix string) *Fields {
	x := &Fields{}
	if template == nil {
		template = &kithv1.Job{}
	}
	visit(template, func(name string, text *string) {
		x.All = append(x.All, params.Field{Name: prefix + name, Text: *text})
	}, func() { x.Command = len(x.All) }, func() { x.Environment = len(x.All) }, func() { x.Outputs = len(x.All) })
	return x
}

// expanded returns the job of a template whose texts are replaced by others, in the order
// of [FieldsOf]. It shares with the template what it does not change.
func expanded(template *kithv1.Job, texts []string) *kithv1.Job {
	j := proto.CloneOf(template)
	n := 0
	visit(j, func(_ string, text *string) {
		*text = texts[n]
		n++
	}, func() {}, func() {}, func() {})
	return j
}

// visit calls text with each text of a job that may have parameters in it, which it may
// change, and the others behind the last one of their kinds.
func visit(j *kithv1.Job, text func(name string, text *string), command, environment, outputs func()) {
	for i := range j.Command {
		text(fmt.Sprintf("command[%d]", i), &j.Command[i])
	}
	for i := range j.Arguments {
		text(fmt.Sprintf("arguments[%d]", i), &j.Arguments[i])
	}
	command()
	for _, name := range slices.Sorted(maps.Keys(j.Environment)) {
		before := j.Environment[name]
		value := before
		if text(fmt.Sprintf("environment[%q]", name), &value); value != before {
			j.Environment[name] = value
		}
	}
	environment()
	for i, out := range j.Outputs {
		text(fmt.Sprintf("outputs[%d].path", i), &out.Path)
	}
	outputs()
	text("stdout_path", &j.StdoutPath)
	text("stderr_path", &j.StderrPath)
}
