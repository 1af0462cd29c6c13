package api

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	"kith/meta/tasks"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
)

func goodBag() *kithv1.Bag { return &kithv1.Bag{Job: goodJob(), Indices: "0-9"} }

// leveled returns a bag of unknown time that begins at a level.
func leveled(level int32, lost kithv1.Job_OnSiteLost) *kithv1.Bag {
	b := goodBag()
	b.Job.Walltime, b.Job.WalltimeUnknown, b.Job.Level, b.Job.OnSiteLost = nil, true, level, lost
	return b
}

// withValues returns a bag with rows of one parameter, x.
func withValues(values ...string) *kithv1.Bag {
	b := goodBag()
	b.Indices = ""
	rows := &kithv1.ParameterRows{Names: []string{"x"}}
	for _, v := range values {
		rows.Rows = append(rows.Rows, &kithv1.ParameterRow{Values: []string{v}})
	}
	b.Parameters = &kithv1.Bag_Values{Values: rows}
	return b
}

func withTable(format kithv1.TaskTable_Format, text string) *kithv1.Bag {
	b := goodBag()
	b.Indices = ""
	b.Parameters = &kithv1.Bag_Table{Table: &kithv1.TaskTable{Format: format, Content: &kithv1.TaskTable_Data{Data: []byte(text)}}}
	return b
}

func withMatrix(text string) *kithv1.Bag {
	b := goodBag()
	b.Indices, b.Parameters = "", &kithv1.Bag_Matrix{Matrix: text}
	return b
}

func with(b *kithv1.Bag, change func(*kithv1.Bag)) *kithv1.Bag {
	change(b)
	return b
}

// Everything that is wrong with a bag is told with field, value and remedy, and what is
// just within its bound is fine.
func TestCheckBag(t *testing.T) {
	long := strings.Repeat
	const csv, tsv, lines, objects = kithv1.TaskTable_FORMAT_CSV, kithv1.TaskTable_FORMAT_TSV, kithv1.TaskTable_FORMAT_LINES, kithv1.TaskTable_FORMAT_JSON_LINES
	indices := func(text string) *kithv1.Bag { return with(goodBag(), func(b *kithv1.Bag) { b.Indices = text }) }
	command := func(b *kithv1.Bag, words ...string) *kithv1.Bag {
		return with(b, func(b *kithv1.Bag) { b.Job.Command = words })
	}
	outputs := func(b *kithv1.Bag, paths ...string) *kithv1.Bag {
		for _, p := range paths {
			b.Job.Outputs = append(b.Job.Outputs, &kithv1.OutputFile{Path: p})
		}
		return b
	}
	for name, c := range map[string]struct {
		bag   *kithv1.Bag
		tasks uint32 // if it is fine
		want  string // "field: part of the reason"
	}{
		"nothing":                {nil, 0, "bag: missing"},
		"no job":                 {&kithv1.Bag{Indices: "1"}, 0, "bag.job: missing"},
		"good":                   {goodBag(), 10, ""},
		"id":                     {with(goodBag(), func(b *kithv1.Bag) { b.Id = "a.1.1" }), 0, "bag.id: is set by Kith; leave it empty"},
		"status":                 {with(goodBag(), func(b *kithv1.Bag) { b.Status = &kithv1.BagStatus{} }), 0, "bag.status: is set by Kith"},
		"fault of the job":       {with(goodBag(), func(b *kithv1.Bag) { b.Job.Processors = 0 }), 0, "bag.job.processors: 0: must be at least 1"},
		"walltime of a pilot":    {with(goodBag(), func(b *kithv1.Bag) { b.Job.Walltime = durationpb.New(job.MaxWalltime) }), 0, "bag.job.walltime: 87840h0m0s: that of a task is at most"},
		"max running below 0":    {with(goodBag(), func(b *kithv1.Bag) { b.MaxRunning = -1 }), 0, "bag.max_running: -1: must be at least 1, or 0"},
		"too many retries":       {with(goodBag(), func(b *kithv1.Bag) { b.Retries = 101 }), 0, "bag.retries: 101: must be 0 to 100"},
		"retries":                {with(goodBag(), func(b *kithv1.Bag) { b.Retries = 100 }), 10, ""},
		"a budget below 0":       {with(goodBag(), func(b *kithv1.Bag) { b.BudgetProcessorSeconds = -1 }), 0, "bag.budget_processor_seconds: -1: must be 1 to "},
		"too large a budget":     {with(goodBag(), func(b *kithv1.Bag) { b.BudgetProcessorSeconds = math.MaxInt64 }), 0, "bag.budget_processor_seconds: 9223372036854775807: must be 1 to "},
		"too many replicas":      {with(goodBag(), func(b *kithv1.Bag) { b.MaxReplicas = 6 }), 0, "bag.max_replicas: 6: must be 0 to 5"},
		"replicas below 0":       {with(goodBag(), func(b *kithv1.Bag) { b.MaxReplicas = -1 }), 0, "bag.max_replicas: -1: must be 0 to 5"},
		"tail below 0":           {with(goodBag(), func(b *kithv1.Bag) { b.TailAt = -1 }), 0, "bag.tail_at: -1: must be at least 1"},
		"replicas":               {with(goodBag(), func(b *kithv1.Bag) { b.MaxReplicas, b.TailAt = 5, 9 }), 10, ""},
		"unknown time":           {leveled(0, kithv1.Job_ON_SITE_LOST_RERUN), 10, ""},
		"unknown, as by default": {leveled(0, kithv1.Job_ON_SITE_LOST_UNSPECIFIED), 10, ""},
		"a level":                {leveled(16, kithv1.Job_ON_SITE_LOST_RERUN), 10, ""},
		"below all levels":       {leveled(17, kithv1.Job_ON_SITE_LOST_RERUN), 0, "bag.job.level: 17: must be 1 to 16"},
		"above all levels":       {leveled(-1, kithv1.Job_ON_SITE_LOST_RERUN), 0, "bag.job.level: -1: must be 1 to 16"},
		"level that waits":       {leveled(1, kithv1.Job_ON_SITE_LOST_WAIT), 0, "bag.job.walltime_unknown: tasks that run are stopped when such a bag goes a level down, and run again: leave job.on_site_lost out"},
		"level that races":       {leveled(1, kithv1.Job_ON_SITE_LOST_RACE), 0, "bag.job.on_site_lost: RACE runs a job at two sites"},
		"level with replicas":    {with(leveled(1, kithv1.Job_ON_SITE_LOST_RERUN), func(b *kithv1.Bag) { b.MaxReplicas = 1 }), 0, "bag.max_replicas: 1: tasks of a bag of a hierarchy run at one site at a time"},
		"level with an estimate": {with(leveled(1, kithv1.Job_ON_SITE_LOST_RERUN), func(b *kithv1.Bag) { b.Job.Estimate = "echo bound 1" }), 0, "bag.job.estimate: is of jobs"},
		"unknown and known time": {with(leveled(1, kithv1.Job_ON_SITE_LOST_RERUN), func(b *kithv1.Bag) { b.Job.Walltime = durationpb.New(time.Minute) }), 0, "bag.job.walltime_unknown: is set and so is job.walltime"},
		"priority before others": {with(goodBag(), func(b *kithv1.Bag) { b.Priority = 1 }), 0, "bag.priority: 1: puts the bag before those of other users"},
		"priority behind others": {with(goodBag(), func(b *kithv1.Bag) { b.Priority = -1000 }), 10, ""},
		"priority far behind":    {with(goodBag(), func(b *kithv1.Bag) { b.Priority = -1001 }), 0, "bag.priority: -1001: must be -1000 to 1000"},

		"no task":              {indices(""), 0, "bag.indices: no task; name one index at least, for example 0-99"},
		"most tasks":           {indices("0-16777215"), 1 << 24, ""},
		"one task too many":    {indices("0-16777216"), 0, "16777217 tasks, at most 16777216; submit several bags"},
		"backwards":            {indices("9-0"), 0, `"9-0" runs backwards; write "0-9"`},
		"twice":                {indices("0-9,5"), 0, `index 5 is in "0-9" and in "5"; name each index once`},
		"step 0":               {indices("0-9:0"), 0, `"0-9:0" has step 0; write a step from 1 on, or none`},
		"no index":             {indices("a-z"), 0, `"a-z" is no index and no range; write for example 7, 0-15 or 0-15:4`},
		"negative index":       {indices("-1-5"), 0, "is no index and no range"},
		"index above all":      {indices("2147483648"), 0, "above the highest index"},
		"limit in the indices": {indices("0-9%5"), 0, `bag.indices: "0-9%5": how many may run at once belongs into bag.max_running: 5`},
		"long indices":         {indices(long("1,", 40_000) + "2"), 0, "bag.indices: "},

		"index in the command":       {command(goodBag(), "echo", "{{index}}"), 10, ""},
		"unknown parameter":          {command(goodBag(), "echo", "{{indx}}"), 0, `bag.job.command[1]: no parameter is called "indx"; there are: index. Write "{{{{" for two braces`},
		"unknown beside known":       {command(withValues("1"), "echo", "{{y}}"), 0, `no parameter is called "y"; there are: x, index`},
		"braces that never close":    {command(goodBag(), "echo", "{{index"), 0, `bag.job.command[1]: "{{index" is not closed`},
		"two braces":                 {command(goodBag(), "echo", "{{{{index"), 10, ""},
		"unknown in the environment": {with(goodBag(), func(b *kithv1.Bag) { b.Job.Environment = map[string]string{"A": "{{b}}"} }), 0, `bag.job.environment["A"]: no parameter is called "b"`},
		"unknown in stdout":          {with(goodBag(), func(b *kithv1.Bag) { b.Job.StdoutPath = "{{b}}" }), 0, `bag.job.stdout_path: no parameter is called "b"`},
		"braces in a script": {with(goodBag(), func(b *kithv1.Bag) { b.Job.Command, b.Job.Script = nil, "#!/bin/sh\necho {{x}}\n" }),
			10, ""},
		"unknown in an argument": {with(goodBag(), func(b *kithv1.Bag) {
			b.Job.Command, b.Job.Script, b.Job.Arguments = nil, "#!/bin/sh\n", []string{"{{x}}"}
		}), 0, `bag.job.arguments[0]: no parameter is called "x"`},
		"input of a task": {with(goodBag(), func(b *kithv1.Bag) {
			b.Job.Inputs = []*kithv1.InputFile{{Path: "x", Content: &kithv1.InputFile_Source{Source: "/data/{{index}}"}}}
		}), 0, "bag.job.inputs[0]: inputs that differ from task to task are not built yet"},

		"values":                         {withValues("a", "b", ""), 3, ""},
		"values with indices":            {with(withValues("a", "b"), func(b *kithv1.Bag) { b.Indices = "5,7" }), 2, ""},
		"other rows than indices":        {with(withValues("a", "b"), func(b *kithv1.Bag) { b.Indices = "0-2" }), 0, `bag.indices: "0-2": 3 tasks, and the parameters have 2 rows`},
		"no row":                         {withValues(), 0, "bag.values: 0 rows: a bag has 1 to 10000 rows"},
		"too many rows":                  {withValues(make([]string, 10_001)...), 0, "bag.values: 10001 rows"},
		"value with a zero byte":         {withValues("a", "b\x00"), 0, `bag.values: row 2: the value of x, "b\x00", has a zero byte`},
		"row of 64 KiB":                  {withValues(long("a", 65_536)), 1, ""},
		"row above 64 KiB":               {withValues(long("a", 65_537)), 0, "bag.values: row 1: the values up to that of x have 65537 bytes"},
		"bad name":                       {with(withValues("a"), func(b *kithv1.Bag) { b.GetValues().Names[0] = "2x" }), 0, `bag.values: parameter "2x"`},
		"missing value":                  {with(withValues("a", "b"), func(b *kithv1.Bag) { b.GetValues().Rows[1].Values = nil }), 0, "bag.values: row 2 has 0 values, there are 1 parameters"},
		"command too long at one row":    {command(withValues("a", long("b", 65_536), "c"), "echo", "{{x}}{{x}}"), 0, "bag.job.command: 131078 bytes for the task with index 1, at most 131072: shorten the text, or the values in that row"},
		"command as long as it may be":   {command(withValues("a", long("b", 65_533), "c"), "echo", "{{x}}{{x}}"), 3, ""},
		"environment too long at a row":  {with(withValues("a", long("b", 65_536)), func(b *kithv1.Bag) { b.Job.Environment = map[string]string{"A": "{{x}}{{x}}"} }), 0, "bag.job.environment: 131073 bytes for the task with index 1"},
		"name for stdout that is long":   {with(withValues("a", long("b", 1025)), func(b *kithv1.Bag) { b.Job.StdoutPath = "{{x}}" }), 0, "bag.job.stdout_path: 1026 bytes for the task with index 1, at most 1025"},
		"output of a task":               {outputs(withValues("a", "b/c"), "out/{{x}}"), 2, ""},
		"output of an index":             {with(outputs(goodBag(), "out/{{index}}"), func(b *kithv1.Bag) { b.Indices = "0-16777215" }), 1 << 24, ""},
		"outputs of many":                {outputs(withMatrix("x=1..4096,y=1..4096"), "out/{{x}}/{{y}}"), 1 << 24, ""},
		"output outside at a row":        {outputs(withValues("a", "../c"), "{{x}}"), 0, `bag.job.outputs[0].path: for the task with index 1: "../c" leaves the job's private folder`},
		"output outside by two":          {outputs(withValues("a", "."), "{{x}}{{x}}/b"), 0, `for the task with index 1: "../b" leaves the job's private folder`},
		"output without a name at a row": {outputs(withValues("a", ""), "fixed", "{{x}}"), 0, "bag.job.outputs[1].path: for the task with index 1: must be 1 to 1024 bytes"},
		"output that is no pattern":      {outputs(withValues("["), "{{x}}"), 0, `bag.job.outputs[0].path: for the task with index 0: "[" is not a pattern`},

		"matrix":                {command(withMatrix("a=1..9,b=x,y"), "echo", "{{a}}", "{{b}}"), 18, ""},
		"largest matrix":        {withMatrix("a=1..4096,b=1..4096"), 1 << 24, ""},
		"matrix too large":      {withMatrix("a=1..4096,b=1..4097"), 0, "bag.matrix: matrix \"a=1..4096,b=1..4097\" has more than 16777216 combinations up to list b; submit several bags"},
		"matrix that overflows": {withMatrix("a=1..16777216,b=1..16777216,c=1..16777216,d=1..16777216"), 0, "has more than 16777216 combinations up to list b"},
		"matrix without names":  {withMatrix("1..9"), 0, `bag.matrix: matrix "1..9", at "1..9"`},
		"matrix backwards":      {withMatrix("a=9..1"), 0, "runs backwards; begin with the lower number"},

		"lines":                       {command(withTable(lines, "a\nb\nc"), "echo", "{{line}}"), 3, ""},
		"lines with CRLF":             {command(withTable(lines, "a\r\nb\r\n"), "echo", "{{line}}"), 2, ""},
		"csv":                         {command(withTable(csv, "x,y\n1,\"2,3\"\n"), "echo", "{{x}}{{y}}"), 1, ""},
		"csv with CRLF":               {command(withTable(csv, "x,y\r\n1,2\r\n3,4\r\n"), "echo", "{{y}}"), 2, ""},
		"tsv without a last line end": {command(withTable(tsv, "x\ty\n1\t2"), "echo", "{{y}}"), 1, ""},
		"JSON":                        {command(withTable(objects, `{"x":1,"y":"b"}`+"\n"), "echo", "{{y}}"), 1, ""},
		"missing column":              {withTable(csv, "x,y\n1,2\n3\n"), 0, "bag.table.data: line 3: 1 values, there are 2 parameters: x, y"},
		"zero byte":                   {withTable(lines, "a\nb\x00\n"), 0, "bag.table.data: line 2: a zero byte"},
		"not UTF-8":                   {withTable(lines, "a\n\xff\n"), 0, "bag.table.data: line 2: not UTF-8, from byte 1 of line 2 on; convert the table"},
		"row above 64 KiB in a table": {withTable(lines, "a\n"+long("b", 65_537)), 0, "bag.table.data: line 2: a row of more than 65536 bytes"},
		"quotes that never close":     {withTable(csv, "x\n\"1\n2\n"), 0, "bag.table.data: line 2: the quotes of value 1 (x) never close"},
		"table without a row":         {withTable(csv, "x,y\n"), 0, "bag.table.data: no row"},
		"no format":                   {withTable(0, "a\n"), 0, "bag.table.format: 0: choose LINES, CSV, TSV or JSON_LINES"},
		"no content":                  {with(goodBag(), func(b *kithv1.Bag) { b.Parameters = &kithv1.Bag_Table{Table: &kithv1.TaskTable{Format: csv}} }), 0, "bag.table: has no content: set data or upload_id"},
		"command too long at one row of a table": {command(withTable(lines, "a\n"+long("b", 65_000)+"\nc\n"), "echo", "{{line}}{{line}}{{line}}"),
			0, "bag.job.command: 195006 bytes for the task with index 1"},
	} {
		checkCheckedBag(t, name, c.bag, nil, c.tasks, c.want)
		if data := c.bag.GetTable().GetData(); data != nil {
			uploaded := proto.CloneOf(c.bag)
			uploaded.GetTable().Content = &kithv1.TaskTable_UploadId{UploadId: name}
			checkCheckedBag(t, name+", uploaded", uploaded, func(string) (transfer.File, io.ReaderAt, error) {
				return transfer.File{Size: int64(len(data))}, bytes.NewReader(data), nil
			}, c.tasks, strings.Replace(c.want, "bag.table.data", "bag.table.upload_id", 1))
		}
	}
}

// checkCheckedBag checks that a bag has so many tasks, or the fault that is wanted.
func checkCheckedBag(t *testing.T, name string, b *kithv1.Bag, open openUpload, tasks uint32, want string) {
	t.Helper()
	checked, err := checkBagRequest(&kithv1.SubmitBagRequest{Bag: b}, false, open)
	if want == "" {
		if err != nil || checked.indices.Count() != tasks || checked.source.Count() != tasks {
			t.Errorf("%s: %+v, %v, want %d tasks", name, checked, err, tasks)
		}
		return
	}
	w := onWire(t, err)
	field, _, _ := strings.Cut(want, ": ")
	if !strings.HasPrefix(field, "bag") { // only the reason is given
		field = "bag.indices"
		if b.GetParameters() != nil {
			field = "bag."
		}
	}
	if w.code != codes.InvalidArgument || len(w.fields) != 1 || !strings.HasPrefix(w.fields[0], field) || !strings.Contains(w.fields[0], want) {
		t.Errorf("%s: %.300q, want %q", name, w.fields, want)
	}
	if len(w.fields) > 0 && len(w.fields[0]) > 700 {
		t.Errorf("%s: an answer of %d bytes", name, len(w.fields[0]))
	}
}

// Operators may put a bag before others.
func TestPriorityOfOperators(t *testing.T) {
	b := goodBag()
	b.Priority = 1000
	if _, err := checkBagRequest(&kithv1.SubmitBagRequest{Bag: b}, true, nil); err != nil {
		t.Error(err)
	}
}

// A template sees every field that may have parameters: what one task gets is checked
// like a job.
func TestAllTextsAreTemplates(t *testing.T) {
	j := goodScript()
	j.Environment, j.StdoutPath, j.StderrPath = map[string]string{"B": "{{x}}", "A": "{{x}}"}, "{{x}}", "{{x}}"
	j.Arguments, j.Outputs = []string{"{{x}}"}, []*kithv1.OutputFile{{Path: "{{x}}"}}
	var names []string
	for _, f := range tasks.FieldsOf(j, "bag.job.").All {
		if f.Text != "{{x}}" {
			t.Errorf("%s has %q", f.Name, f.Text)
		}
		names = append(names, f.Name)
	}
	want := `[bag.job.arguments[0] bag.job.environment["A"] bag.job.environment["B"] bag.job.outputs[0].path bag.job.stdout_path bag.job.stderr_path]`
	if fmt.Sprint(names) != want {
		t.Errorf("%v, want %s", names, want)
	}
}
