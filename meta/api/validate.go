package api

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"kith/cluster/wire"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// Bounds of what a job may bring along, beside those of package job: those of the
// table in cluster/wire.
const (
	MaxScriptBytes      = wire.Script
	MaxInlineInput      = wire.InlineInput
	maxCommandBytes     = wire.Command
	maxEnvironmentBytes = wire.Environment
	maxFiles            = wire.Files
	maxLabels           = wire.Labels
	maxShortText        = wire.ShortText
	maxRequestID        = wire.RequestID
	maxPath             = wire.Path
	maxTable            = wire.Table
)

// checkJob returns all that is wrong with a submitted job by itself, but for fields that
// this version does not know, see [knownRequest]. It touches no file.
func checkJob(j *kithv1.Job) fieldErrors {
	var f fieldErrors
	if j == nil {
		f.add("job", "missing")
		return f
	}
	if j.GetId() != "" {
		f.add("job.id", "is set by Kith; leave it empty")
	}
	if j.GetStatus() != nil {
		f.add("job.status", "is set by Kith; leave it empty")
	}
	if len(j.GetLeftOut()) > 0 {
		f.add("job.left_out", "is set by Kith; leave it empty")
	}
	return append(f, checkContents(j)...)
}

// checkContents returns what is wrong with what a job is and needs.
func checkContents(j *kithv1.Job) fieldErrors {
	var f fieldErrors
	checkCommand(&f, j)
	checkSize(&f, j)
	checkEnvironment(&f, j.GetEnvironment())
	checkLabels(&f, j.GetLabels())
	checkDirectory(&f, j.GetWorkingDirectory())
	checkFiles(&f, j)
	checkCheckpoint(&f, j)
	checkLevel(&f, j)
	checkAfter(&f, "job", j.GetAfter(), j.GetSingleton())
	if j.GetOnSiteLost() < 0 || j.GetOnSiteLost() > kithv1.Job_ON_SITE_LOST_RACE {
		f.add("job.on_site_lost", fmt.Sprintf("%d is not one of its values", j.GetOnSiteLost()))
	}
	return f
}

// hasUnknown reports whether a message, or one in it, has fields that this version does not
// know. Nearly none has: their names are looked for only then, by checkKnown.
func hasUnknown(m protoreflect.Message) (has bool) {
	if len(m.GetUnknown()) > 0 {
		return true
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Message() == nil || fd.IsMap():
		case fd.IsList():
			for i := 0; i < v.List().Len() && !has; i++ {
				has = hasUnknown(v.List().Get(i).Message())
			}
		default:
			has = hasUnknown(v.Message())
		}
		return !has
	})
	return has
}

// checkKnown refuses fields that this version does not know: a job that asks
// for something must not run without it.
func checkKnown(f *fieldErrors, name string, m protoreflect.Message) {
	if u := m.GetUnknown(); len(u) > 0 {
		number, _, _ := protoUnknown(u)
		f.add(name, fmt.Sprintf("field number %d is not known to this version; leave it out, or ask a site with a newer one", number))
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		field := name + "." + string(fd.Name())
		switch {
		case fd.IsList() && fd.Message() != nil:
			for i := range v.List().Len() {
				checkKnown(f, fmt.Sprintf("%s[%d]", field, i), v.List().Get(i).Message())
			}
		case !fd.IsList() && !fd.IsMap() && fd.Message() != nil:
			checkKnown(f, field, v.Message())
		}
		return true
	})
}

func checkCommand(f *fieldErrors, j *kithv1.Job) {
	command, script := j.GetCommand(), j.GetScript()
	switch {
	case len(command) == 0 && script == "":
		f.add("job.command", "is empty and so is job.script: set one of them")
	case len(command) > 0 && script != "":
		f.add("job.command", "is set and so is job.script: set one of them")
	case len(command) > 0 && command[0] == "":
		f.add("job.command[0]", "is empty: it names the program")
	case script != "" && !strings.HasPrefix(script, "#!"):
		f.add("job.script", `does not begin with "#!" and the path of an interpreter`)
	}
	if len(script) > MaxScriptBytes {
		f.add("job.script", fmt.Sprintf("has %d bytes, at most %d; send larger programs as inputs", len(script), MaxScriptBytes))
	}
	if len(j.GetArguments()) > 0 && script == "" {
		f.add("job.arguments", "belong to a script; put those of a command into job.command")
	}
	total := 0
	for i, a := range append(append([]string(nil), command...), j.GetArguments()...) {
		total += len(a) + 1
		if strings.IndexByte(a, 0) >= 0 {
			f.add(fmt.Sprintf("job.command[%d]", i), "contains a zero byte")
		}
	}
	if total > maxCommandBytes {
		f.add("job.command", fmt.Sprintf("has %d bytes with its arguments, at most %d", total, maxCommandBytes))
	}
}

func checkSize(f *fieldErrors, j *kithv1.Job) {
	if j.GetProcessors() < 1 || j.GetProcessors() > job.MaxProcessors {
		f.add("job.processors", fmt.Sprintf("%d: must be at least 1 and at most %d", j.GetProcessors(), job.MaxProcessors))
	}
	if t := j.GetTasks(); t < 0 || (t > 0 && j.GetProcessors() > 0 && j.GetProcessors()%t != 0) {
		f.add("job.tasks", fmt.Sprintf("%d: job.processors (%d) must be a multiple of it", t, j.GetProcessors()))
	}
	if m := j.GetMemoryBytes(); m < 0 || m > job.MaxMemoryBytes {
		f.add("job.memory_bytes", fmt.Sprintf("%d: must be between 0 (no limit of its own) and 2^50", m))
	}
	w := j.GetWalltime()
	switch {
	case j.GetWalltimeUnknown() && w == nil:
	case j.GetWalltimeUnknown():
		f.add("job.walltime_unknown", fmt.Sprintf("is set and so is job.walltime, %v: set one of them", w.AsDuration()))
	case w == nil:
		f.add("job.walltime", `missing: give the longest run time, for example "3600s"`)
	case w.CheckValid() != nil || w.AsDuration() <= 0 || w.AsDuration() > job.MaxWalltime:
		f.add("job.walltime", fmt.Sprintf("%v: must be positive and at most 10 years", w.AsDuration()))
	}
	if c := j.GetCopies(); c < 0 || c > job.MaxCopies {
		f.add("job.copies", fmt.Sprintf("%d: must be between 0 (the site's default) and %d", c, job.MaxCopies))
	}
	if len(j.GetName()) > job.MaxNameLength || strings.ContainsAny(j.GetName(), "\x00\n") {
		f.add("job.name", fmt.Sprintf("must be at most %d bytes without line breaks", job.MaxNameLength))
	}
}

func checkEnvironment(f *fieldErrors, env map[string]string) {
	total := 0
	for k, v := range env {
		total += len(k) + len(v) + 2
		if k == "" || len(k) > maxShortText || strings.ContainsAny(k, "=\x00") || strings.IndexByte(v, 0) >= 0 {
			f.add("job.environment", fmt.Sprintf("variable %.64q: names are 1 to %d bytes without '=', values without zero bytes", k, maxShortText))
		}
	}
	if total > maxEnvironmentBytes {
		f.add("job.environment", fmt.Sprintf("has %d bytes, at most %d", total, maxEnvironmentBytes))
	}
}

func checkLabels(f *fieldErrors, labels map[string]string) {
	if len(labels) > maxLabels {
		f.add("job.labels", fmt.Sprintf("%d of them, at most %d", len(labels), maxLabels))
	}
	for k, v := range labels {
		if k == "" || len(k) > maxShortText || len(v) > maxShortText || strings.ContainsAny(k+v, "\x00\n") {
			f.add("job.labels", fmt.Sprintf("label %.64q: names are 1 to %d bytes, values at most %d, without line breaks", k, maxShortText, maxShortText))
		}
	}
}

func checkDirectory(f *fieldErrors, dir string) {
	switch {
	case dir == "":
	case len(dir) > maxPath || strings.IndexByte(dir, 0) >= 0:
		f.add("job.working_directory", fmt.Sprintf("must be at most %d bytes without zero bytes", maxPath))
	case path.IsAbs(dir):
		if path.Clean(dir) != dir {
			f.add("job.working_directory", fmt.Sprintf("%q: write it as %q", dir, path.Clean(dir)))
		}
	case !filepath.IsLocal(dir):
		f.add("job.working_directory", fmt.Sprintf("%q leaves the job's private folder", dir))
	}
}

func checkFiles(f *fieldErrors, j *kithv1.Job) {
	if n := len(j.GetInputs()); n > maxFiles {
		f.add("job.inputs", fmt.Sprintf("%d of them, at most %d", n, maxFiles))
		return
	}
	if n := len(j.GetOutputs()); n > maxFiles {
		f.add("job.outputs", fmt.Sprintf("%d of them, at most %d", n, maxFiles))
		return
	}
	for i, in := range j.GetInputs() {
		field := fmt.Sprintf("job.inputs[%d]", i)
		checkPath(f, field+".path", in.GetPath())
		switch c := in.GetContent().(type) {
		case nil:
			f.add(field, "has no content: set data, source or upload_id")
		case *kithv1.InputFile_Data:
			if len(c.Data) > MaxInlineInput {
				f.add(field+".data", fmt.Sprintf("has %d bytes, at most %d; upload larger files", len(c.Data), MaxInlineInput))
			}
		}
	}
	for i, out := range j.GetOutputs() {
		field := fmt.Sprintf("job.outputs[%d].path", i)
		checkPath(f, field, out.GetPath())
		if _, err := path.Match(path.Base(out.GetPath()), "x"); err != nil {
			f.add(field, fmt.Sprintf("%q is not a pattern", out.GetPath()))
		}
	}
	for field, name := range map[string]string{"job.stdout_path": j.GetStdoutPath(), "job.stderr_path": j.GetStderrPath()} {
		if len(name) > maxPath || strings.IndexByte(name, 0) >= 0 {
			f.add(field, fmt.Sprintf("must be at most %d bytes without zero bytes", maxPath))
		}
	}
}

func checkPath(f *fieldErrors, field, p string) {
	switch {
	case p == "" || len(p) > maxPath || strings.IndexByte(p, 0) >= 0:
		f.add(field, fmt.Sprintf("must be 1 to %d bytes without zero bytes", maxPath))
	case !filepath.IsLocal(p) || path.Clean(p) == ".":
		f.add(field, fmt.Sprintf("%q leaves the job's private folder", p))
	}
}

func checkRequestID(f *fieldErrors, id string) {
	if len(id) > maxRequestID {
		f.add("request_id", fmt.Sprintf("has %d bytes, at most %d", len(id), maxRequestID))
	}
}

// checkReason bounds a text that says why a person asks for something.
func checkReason(reason string) error {
	if len(reason) > maxShortText {
		return &FieldError{Field: "reason", Reason: fmt.Sprintf("has %d bytes, at most %d", len(reason), maxShortText)}
	}
	return nil
}

// knownRequest refuses a request with fields that this version does not know.
func knownRequest(m proto.Message) error {
	if !hasUnknown(m.ProtoReflect()) {
		return nil
	}
	var f fieldErrors
	checkKnown(&f, "request", m.ProtoReflect())
	return f
}
