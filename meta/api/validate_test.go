package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

func goodJob() *kithv1.Job {
	return &kithv1.Job{Name: "good", Command: []string{"/bin/true"}, Processors: 4, Tasks: 2, Walltime: durationpb.New(time.Hour), Copies: 3}
}

func goodScript() *kithv1.Job {
	j := goodJob()
	j.Command, j.Script, j.Arguments = nil, "#!/bin/sh\n", []string{"a"}
	return j
}

// Everything that is wrong with a job is told with field, value and remedy,
// and what is just within its bound is fine.
func TestCheckJob(t *testing.T) {
	long := strings.Repeat
	variables := func(n, size int) map[string]string {
		env := map[string]string{}
		for i := range n {
			env[fmt.Sprint("V", i)] = long("x", size)
		}
		return env
	}
	inputs := func(n int) []*kithv1.InputFile {
		list := make([]*kithv1.InputFile, n)
		for i := range list {
			list[i] = &kithv1.InputFile{Path: fmt.Sprint(i), Content: &kithv1.InputFile_Data{}}
		}
		return list
	}
	outputs := func(paths ...string) []*kithv1.OutputFile {
		var list []*kithv1.OutputFile
		for _, p := range paths {
			list = append(list, &kithv1.OutputFile{Path: p})
		}
		return list
	}
	for name, c := range map[string]struct {
		base  *kithv1.Job
		spoil func(*kithv1.Job)
		field string // empty: nothing is wrong
		says  []string
	}{
		"good":                {goodJob(), func(*kithv1.Job) {}, "", nil},
		"good script":         {goodScript(), func(*kithv1.Job) {}, "", nil},
		"arguments alone":     {goodJob(), func(j *kithv1.Job) { j.Arguments = []string{"x"} }, "job.arguments", []string{"script", "job.command"}},
		"zero byte":           {goodJob(), func(j *kithv1.Job) { j.Command = []string{"a", "b\x00"} }, "job.command[1]", []string{"zero byte"}},
		"left out":            {goodJob(), func(j *kithv1.Job) { j.LeftOut = []string{"script"} }, "job.left_out", []string{"set by Kith"}},
		"long command":        {goodJob(), func(j *kithv1.Job) { j.Command = append(j.Command, long("x", maxCommandBytes)) }, "job.command", []string{"131083", "131072"}},
		"longest command":     {goodJob(), func(j *kithv1.Job) { j.Command = []string{long("x", maxCommandBytes-1)} }, "", nil},
		"longest script":      {goodScript(), func(j *kithv1.Job) { j.Script += long("#", MaxScriptBytes-len(j.Script)) }, "", nil},
		"too long script":     {goodScript(), func(j *kithv1.Job) { j.Script += long("#", MaxScriptBytes) }, "job.script", []string{"1048586", "1048576", "inputs"}},
		"many processors":     {goodJob(), func(j *kithv1.Job) { j.Processors, j.Tasks = job.MaxProcessors+1, 0 }, "job.processors", []string{fmt.Sprint(job.MaxProcessors), fmt.Sprint(job.MaxProcessors + 1)}},
		"negative tasks":      {goodJob(), func(j *kithv1.Job) { j.Tasks = -1 }, "job.tasks", []string{"-1"}},
		"tasks do not divide": {goodJob(), func(j *kithv1.Job) { j.Tasks = 3 }, "job.tasks", []string{"3", "4", "multiple"}},
		"negative memory":     {goodJob(), func(j *kithv1.Job) { j.MemoryBytes = -1 }, "job.memory_bytes", []string{"-1", "no limit"}},
		"much memory":         {goodJob(), func(j *kithv1.Job) { j.MemoryBytes = job.MaxMemoryBytes + 1 }, "job.memory_bytes", []string{"2^50"}},
		"broken walltime":     {goodJob(), func(j *kithv1.Job) { j.Walltime = &durationpb.Duration{Seconds: 1, Nanos: -5} }, "job.walltime", []string{"positive"}},
		"long walltime":       {goodJob(), func(j *kithv1.Job) { j.Walltime = durationpb.New(job.MaxWalltime + 1) }, "job.walltime", []string{"10 years"}},
		"longest walltime":    {goodJob(), func(j *kithv1.Job) { j.Walltime = durationpb.New(job.MaxWalltime) }, "", nil},
		"negative copies":     {goodJob(), func(j *kithv1.Job) { j.Copies = -1 }, "job.copies", []string{"-1", "default"}},
		"long name":           {goodJob(), func(j *kithv1.Job) { j.Name = long("n", job.MaxNameLength+1) }, "job.name", []string{fmt.Sprint(job.MaxNameLength)}},
		"lines in the name":   {goodJob(), func(j *kithv1.Job) { j.Name = "a\nb" }, "job.name", []string{"line breaks"}},
		"odd loss policy":     {goodJob(), func(j *kithv1.Job) { j.OnSiteLost = 99 }, "job.on_site_lost", []string{"99"}},
		"status":              {goodJob(), func(j *kithv1.Job) { j.Status = &kithv1.JobStatus{} }, "job.status", []string{"empty"}},
		"nameless variable":   {goodJob(), func(j *kithv1.Job) { j.Environment = map[string]string{"": "x"} }, "job.environment", []string{`""`}},
		"zero in a variable":  {goodJob(), func(j *kithv1.Job) { j.Environment = map[string]string{"A": "x\x00"} }, "job.environment", []string{`"A"`, "zero"}},
		"long variable name":  {goodJob(), func(j *kithv1.Job) { j.Environment = map[string]string{long("N", 257): ""} }, "job.environment", []string{"256"}},
		"large environment":   {goodJob(), func(j *kithv1.Job) { j.Environment = variables(20, 10000) }, "job.environment", []string{"200", "131072"}},
		"many labels":         {goodJob(), func(j *kithv1.Job) { j.Labels = variables(maxLabels+1, 1) }, "job.labels", []string{"65", "64"}},
		"long label":          {goodJob(), func(j *kithv1.Job) { j.Labels = variables(1, 257) }, "job.labels", []string{`"V0"`, "256"}},
		"label of two lines":  {goodJob(), func(j *kithv1.Job) { j.Labels = map[string]string{"x": "a\nb"} }, "job.labels", []string{`"x"`, "line breaks"}},
		"nameless label":      {goodJob(), func(j *kithv1.Job) { j.Labels = map[string]string{"": "x"} }, "job.labels", []string{`""`}},
		"folder leaves":       {goodJob(), func(j *kithv1.Job) { j.WorkingDirectory = "a/../../b" }, "job.working_directory", []string{`"a/../../b"`, "leaves"}},
		"folder not clean":    {goodJob(), func(j *kithv1.Job) { j.WorkingDirectory = "/a//b/" }, "job.working_directory", []string{`"/a//b/"`, `"/a/b"`}},
		"long folder":         {goodJob(), func(j *kithv1.Job) { j.WorkingDirectory = long("d", maxPath+1) }, "job.working_directory", []string{"1024"}},
		"good folder":         {goodJob(), func(j *kithv1.Job) { j.WorkingDirectory = "sub/folder" }, "", nil},
		"many inputs":         {goodJob(), func(j *kithv1.Job) { j.Inputs = inputs(maxFiles + 1) }, "job.inputs", []string{"1001", "1000"}},
		"most inputs":         {goodJob(), func(j *kithv1.Job) { j.Inputs = inputs(maxFiles) }, "", nil},
		"large input": {goodJob(), func(j *kithv1.Job) {
			j.Inputs = inputs(1)
			j.Inputs[0].Content = &kithv1.InputFile_Data{Data: make([]byte, MaxInlineInput+1)}
		}, "job.inputs[0].data", []string{"1048577", "upload"}},
		"absolute input":      {goodJob(), func(j *kithv1.Job) { j.Inputs = inputs(2); j.Inputs[1].Path = "/etc/x" }, "job.inputs[1].path", []string{`"/etc/x"`, "leaves"}},
		"input without name":  {goodJob(), func(j *kithv1.Job) { j.Inputs = inputs(1); j.Inputs[0].Path = "" }, "job.inputs[0].path", []string{"1024"}},
		"input is the folder": {goodJob(), func(j *kithv1.Job) { j.Inputs = inputs(1); j.Inputs[0].Path = "a/.." }, "job.inputs[0].path", []string{"leaves"}},
		"many outputs":        {goodJob(), func(j *kithv1.Job) { j.Outputs = outputs(strings.Split(long("x,", maxFiles+1), ",")[:maxFiles+1]...) }, "job.outputs", []string{"1001"}},
		"output pattern":      {goodJob(), func(j *kithv1.Job) { j.Outputs = outputs("ok/*.txt", "bad[") }, "job.outputs[1].path", []string{`"bad["`, "pattern"}},
		"output leaves":       {goodJob(), func(j *kithv1.Job) { j.Outputs = outputs("../*") }, "job.outputs[0].path", []string{"leaves"}},
		"long stdout":         {goodJob(), func(j *kithv1.Job) { j.StdoutPath = long("o", maxPath+1) }, "job.stdout_path", []string{"1024"}},
		"zero in stderr":      {goodJob(), func(j *kithv1.Job) { j.StderrPath = "a\x00" }, "job.stderr_path", []string{"zero"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.spoil(c.base)
			f := checkJob(c.base)
			if c.field == "" {
				if len(f) > 0 {
					t.Errorf("refused: %v", f)
				}
				return
			}
			if len(f) != 1 || f[0].Field != c.field {
				t.Fatalf("%v, want something about %s alone", f, c.field)
			}
			for _, want := range c.says {
				if !strings.Contains(f[0].Error(), want) {
					t.Errorf("%q does not say %q", f[0], want)
				}
			}
		})
	}
}

// All faults of a job are told together.
func TestCheckJobTellsAll(t *testing.T) {
	f := checkJob(&kithv1.Job{Processors: -1, Copies: -1, Name: "\n"})
	var fields []string
	for _, e := range f {
		fields = append(fields, e.Field)
	}
	for _, want := range []string{"job.command", "job.processors", "job.walltime", "job.copies", "job.name"} {
		if !strings.Contains(strings.Join(fields, " "), want) {
			t.Errorf("%v does not name %s", fields, want)
		}
	}
	if f := checkJob(nil); len(f) != 1 || f[0].Field != "job" {
		t.Errorf("no job: %v", f)
	}
}

// A field that this version does not know is named, wherever in a request it is.
func TestUnknownFieldsAreRefused(t *testing.T) {
	request := func() *kithv1.SubmitJobRequest {
		j := goodJob()
		j.Environment, j.Labels = map[string]string{"A": "1"}, map[string]string{"b": "2"}
		j.Inputs = []*kithv1.InputFile{{Path: "x"}, {Path: "y"}}
		j.Outputs = []*kithv1.OutputFile{{Path: "z"}}
		return &kithv1.SubmitJobRequest{RequestId: "r", Job: j}
	}
	if err := knownRequest(request()); err != nil {
		t.Errorf("a request that has none: %v", err)
	}
	for field, in := range map[string]func(*kithv1.SubmitJobRequest) proto.Message{
		"request":               func(r *kithv1.SubmitJobRequest) proto.Message { return r },
		"request.job":           func(r *kithv1.SubmitJobRequest) proto.Message { return r.Job },
		"request.job.walltime":  func(r *kithv1.SubmitJobRequest) proto.Message { return r.Job.Walltime },
		"request.job.inputs[1]": func(r *kithv1.SubmitJobRequest) proto.Message { return r.Job.Inputs[1] },
		"request.job.outputs[0]": func(r *kithv1.SubmitJobRequest) proto.Message {
			return r.Job.Outputs[0]
		},
	} {
		r := request()
		in(r).ProtoReflect().SetUnknown([]byte{0xfa, 0x3f, 0x01, 'x'})
		err := checkSubmission(r)
		if want := field + ": field number 1023 is not known to this version"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func BenchmarkCheckSubmission(b *testing.B) {
	r := &kithv1.SubmitJobRequest{Job: goodJob()}
	b.ReportAllocs()
	for b.Loop() {
		if err := checkSubmission(r); err != nil {
			b.Fatal(err)
		}
	}
}

func TestCheckRequestID(t *testing.T) {
	for n, bad := range map[int]bool{0: false, maxRequestID: false, maxRequestID + 1: true} {
		var f fieldErrors
		checkRequestID(&f, strings.Repeat("r", n))
		if (len(f) > 0) != bad {
			t.Errorf("%d bytes: %v", n, f)
		}
	}
}

// Whatever a client sends is refused or within the bounds of package job.
func FuzzCheckJob(f *testing.F) {
	for _, j := range []*kithv1.Job{goodJob(), goodScript(), {}} {
		b, err := proto.Marshal(j)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var j kithv1.Job
		if proto.Unmarshal(b, &j) != nil || len(checkJob(&j)) > 0 {
			return
		}
		r := requestOf(&j, "user")
		if err := r.Validate(); err != nil {
			t.Errorf("%v passed, but %v", &j, err)
		}
	})
}
