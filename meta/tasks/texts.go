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
	visit(template, func(at field, text *string) {
		x.All = append(x.All, params.Field{Name: prefix + at.String(), Text: *text})
	}, func() { x.Command = len(x.All) }, func() { x.Environment = len(x.All) }, func() { x.Outputs = len(x.All) })
	return x
}

// expanded returns the job of a template whose texts are replaced by others, in the order
// of [FieldsOf]. It shares with the template what it does not change.
func expanded(template *kithv1.Job, texts []string) *kithv1.Job {
	j := proto.CloneOf(template)
	n := 0
	visit(j, func(_ field, text *string) {
		*text = texts[n]
		n++
	}, func() {}, func() {}, func() {})
	return j
}

// field names a text of a job: one of a list by its number, a variable by its name.
type field struct {
	list     string
	number   int
	variable string
	of       string // behind the place in the list
}

// String returns the name of the field, as in errors.
func (f field) String() string {
	switch {
	case f.variable != "":
		return fmt.Sprintf("%s[%q]", f.list, f.variable)
	case f.number >= 0:
		return fmt.Sprintf("%s[%d]%s", f.list, f.number, f.of)
	}
	return f.list
}

// visit calls text with each text of a job that may have parameters in it, which it may
// change, and the others behind the last one of their kinds.
func visit(j *kithv1.Job, text func(at field, text *string), command, environment, outputs func()) {
	for i := range j.Command {
		text(field{list: "command", number: i}, &j.Command[i])
	}
	for i := range j.Arguments {
		text(field{list: "arguments", number: i}, &j.Arguments[i])
	}
	command()
	for _, name := range slices.Sorted(maps.Keys(j.Environment)) {
		before := j.Environment[name]
		value := before
		if text(field{list: "environment", number: -1, variable: name}, &value); value != before {
			j.Environment[name] = value
		}
	}
	environment()
	for i, out := range j.Outputs {
		text(field{list: "outputs", number: i, of: ".path"}, &out.Path)
	}
	outputs()
	text(field{list: "stdout_path", number: -1}, &j.StdoutPath)
	text(field{list: "stderr_path", number: -1}, &j.StderrPath)
}
