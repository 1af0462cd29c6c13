package tasks

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	"kith/internal/params"
	kithv1 "kith/proto/gen/kith/v1"
)

var bagID = job.ID{Origin: "alpha", Generation: 7, Seq: 9}

func template() *kithv1.Job {
	return &kithv1.Job{
		Command: []string{"/bin/run", "{{x}}", "i={{index}}", "{{{{x}}"}, Environment: map[string]string{"A": "{{y}}", "B": "b"},
		Outputs: []*kithv1.OutputFile{{Path: "out-{{x}}"}, {Path: "log"}}, StdoutPath: "o-{{index}}", Processors: 1,
	}
}

// sources are the same rows, written in each way.
func sources(t *testing.T) map[string]*kithv1.BagPayload {
	t.Helper()
	var rows []*kithv1.ParameterRow
	csv := "x,y\n"
	for x := range 3 {
		for _, y := range []string{"p", "q"} {
			rows = append(rows, &kithv1.ParameterRow{Values: []string{fmt.Sprint(x + 1), y}})
			csv += fmt.Sprintf("%d,%s\n", x+1, y)
		}
	}
	index, err := params.Scan(strings.NewReader(csv), params.CSV)
	if err != nil {
		t.Fatal(err)
	}
	widths := []uint32{1, 1}
	table := &kithv1.ParameterTable{
		File: &kithv1.File{Inline: []byte(csv)}, Format: uint32(params.CSV), Names: index.Names, Count: index.Count, Widths: widths, Offsets: index.Offsets,
	}
	return map[string]*kithv1.BagPayload{
		"matrix": {Indices: "10-20:2", Template: template(), Parameters: &kithv1.BagPayload_Matrix{Matrix: "x=1..3,y=p,q"}},
		"values": {Indices: "10-20:2", Template: template(), Parameters: &kithv1.BagPayload_Values{Values: &kithv1.ParameterRows{Names: []string{"x", "y"}, Rows: rows}}},
		"table":  {Indices: "10-20:2", Template: template(), Parameters: &kithv1.BagPayload_Table{Table: table}},
	}
}

func parse(t *testing.T, p *kithv1.BagPayload) *Bag {
	t.Helper()
	raw, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Parse(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A task is the same at the origin and at a host, from whatever its values came.
func TestTaskIsTheSameEverywhere(t *testing.T) {
	for name, p := range sources(t) {
		origin := parse(t, p)
		some := job.TaskRange(1, 3)
		some.Add(5)
		raw, err := origin.Bundle(&some)
		if err != nil {
			t.Fatal(err)
		}
		host, err := Parse(raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []*Bag{origin, host} {
			task, err := b.Task(bagID, 5)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			j := task.Job
			if !slices.Equal(j.GetCommand(), []string{"/bin/run", "3", "i=20", "{{x}}"}) || j.GetEnvironment()["A"] != "q" || j.GetEnvironment()["B"] != "b" ||
				j.GetOutputs()[0].GetPath() != "out-3" || j.GetStdoutPath() != "o-20" || task.Index != 20 {
				t.Errorf("%s: the task is %v", name, j)
			}
			env := map[string]string{}
			for _, v := range task.Environment {
				env[v.Name] = v.Value
			}
			for name, want := range map[string]string{
				"KITH_BAG_ID": bagID.String(), "KITH_TASK_INDEX": "20", "SLURM_ARRAY_JOB_ID": bagID.String(), "SLURM_ARRAY_TASK_ID": "20", "SLURM_ARRAY_TASK_COUNT": "6",
				"SLURM_ARRAY_TASK_MIN": "10", "SLURM_ARRAY_TASK_MAX": "20", "SLURM_ARRAY_TASK_STEP": "2", "KITH_PARAM_X": "3", "KITH_PARAM_Y": "q",
			} {
				if env[name] != want {
					t.Errorf("%s is %q, want %q", name, env[name], want)
				}
			}
		}
		if _, err := host.Task(bagID, 0); !errors.Is(err, ErrNoTask) {
			t.Errorf("%s: a task of another bundle: %v", name, err)
		}
		if _, err := origin.Task(bagID, 6); !errors.Is(err, ErrNoTask) {
			t.Errorf("%s: a task that the bag has not: %v", name, err)
		}
		beyond := job.TaskRange(5, 7)
		if _, err := origin.Bundle(&beyond); !errors.Is(err, ErrNoTask) {
			t.Errorf("%s: a bundle of such: %v", name, err)
		}
		if !proto.Equal(origin.payload.GetTemplate(), template()) {
			t.Errorf("%s: the template has changed: %v", name, origin.payload.GetTemplate())
		}
	}
}

// Bundles of one bag begin alike, so that a message has what they share once.
func TestBundlesShareTheirBegin(t *testing.T) {
	b := parse(t, sources(t)["matrix"])
	first, second := job.TaskRange(0, 2), job.TaskRange(2, 6)
	x, err := b.Bundle(&first)
	if err != nil {
		t.Fatal(err)
	}
	y, err := b.Bundle(&second)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	if rest := len(x) - n; rest > 2*20 || bytes.Equal(x, y) {
		t.Errorf("two of the two tasks take %d bytes of their own", rest)
	}
}

// A bag without parameters differs by its index.
func TestTasksByIndexOnly(t *testing.T) {
	b := parse(t, &kithv1.BagPayload{Indices: "5,7-9", Template: &kithv1.Job{Command: []string{"x", "{{index}}"}}})
	task, err := b.Task(bagID, 3)
	if err != nil || task.Job.GetCommand()[1] != "9" {
		t.Errorf("%v, %v", task, err)
	}
}

// What another site says that a bundle runs is refused as a whole if it makes no sense, and
// before it fills the memory.
func TestParseRefuses(t *testing.T) {
	array := &kithv1.TaskArray{Count: 9, Max: 8, Step: 1}
	row := func(n uint32, values ...string) *kithv1.TaskRow {
		return &kithv1.TaskRow{Ordinal: n, Index: n, Values: values}
	}
	for name, p := range map[string]*kithv1.BagPayload{
		"no template":         {Array: array},
		"no indices":          {Template: template()},
		"rows in disorder":    {Template: &kithv1.Job{}, Array: array, Rows: []*kithv1.TaskRow{row(3), row(2)}},
		"too many rows":       {Template: &kithv1.Job{}, Array: array, Rows: make([]*kithv1.TaskRow, 257)},
		"a row with too much": {Template: &kithv1.Job{}, Array: array, Names: []string{"x"}, Rows: []*kithv1.TaskRow{row(1, "a", "b")}},
		"a zero byte":         {Template: &kithv1.Job{}, Array: array, Names: []string{"x"}, Rows: []*kithv1.TaskRow{row(1, "a\x00")}},
		"an unknown name":     {Template: template(), Array: array},
		"a bad name":          {Template: &kithv1.Job{}, Array: array, Names: []string{"x y"}},
		"more rows":           {Template: &kithv1.Job{}, Indices: "1-3", Parameters: &kithv1.BagPayload_Matrix{Matrix: "x=1,2"}},
		"a bad matrix":        {Template: &kithv1.Job{}, Indices: "1-3", Parameters: &kithv1.BagPayload_Matrix{Matrix: "=="}},
		"a bomb": {
			Template: &kithv1.Job{Command: []string{strings.Repeat("{{x}}", 10_000)}}, Array: array, Names: []string{"x"},
			Rows: []*kithv1.TaskRow{row(1, strings.Repeat("x", 60_000))},
		},
	} {
		raw, err := proto.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(raw, nil); !errors.Is(err, ErrPayload) {
			t.Errorf("%s: %v, want ErrPayload", name, err)
		}
	}
	if _, err := Parse([]byte{0xff}, nil); !errors.Is(err, ErrPayload) {
		t.Errorf("no message: %v", err)
	}
}

// The cache reads what it has no more, and has a bound.
func TestCache(t *testing.T) {
	raw, err := proto.Marshal(&kithv1.BagPayload{Indices: "0-9", Template: &kithv1.Job{Command: []string{"x"}}})
	if err != nil {
		t.Fatal(err)
	}
	var c Cache
	reads := 0
	get := func(n uint32) {
		t.Helper()
		if _, err := c.Get(job.AttemptID{Job: bagID, Number: n}, func() ([]byte, error) { reads++; return raw, nil }, nil); err != nil {
			t.Fatal(err)
		}
	}
	for n := range uint32(3 * maxCached) {
		get(0) // stays, as it is used
		get(n)
	}
	if reads != 3*maxCached || len(c.known) != maxCached || c.bytes != maxCached*len(raw) || c.order.Len() != maxCached {
		t.Errorf("%d reads, %d kept, %d bytes", reads, len(c.known), c.bytes)
	}
	failed := errors.New("the disk")
	if _, err := c.Get(job.AttemptID{Number: 9}, func() ([]byte, error) { return nil, failed }, nil); !errors.Is(err, failed) {
		t.Errorf("a read that fails: %v", err)
	}
}

// Whatever another site sends is a bag or an error; its tasks are within bounds.
func FuzzParse(f *testing.F) {
	for _, p := range []*kithv1.BagPayload{
		{Indices: "1-9", Template: template(), Parameters: &kithv1.BagPayload_Matrix{Matrix: "x=1..3,y=1..3"}},
		{Template: template(), Names: []string{"x", "y"}, Array: &kithv1.TaskArray{Count: 3}, Rows: []*kithv1.TaskRow{{Ordinal: 1, Index: 4, Values: []string{"a", "b"}}}},
	} {
		raw, err := proto.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := Parse(raw, nil)
		if err != nil {
			return
		}
		for _, r := range b.rows {
			task, err := b.Task(bagID, r.GetOrdinal())
			if err != nil {
				t.Errorf("task %d: %v", r.GetOrdinal(), err)
			} else if n := proto.Size(task.Job); n > 2*maxTextBytes+2*len(raw) {
				t.Errorf("task %d has %d bytes", r.GetOrdinal(), n)
			}
		}
	})
}

// A bag of which a bundle would not fit into a message is found before it is submitted; one
// that passes makes bundles that hosts read.
func TestCheckBundles(t *testing.T) {
	long := strings.Repeat("x", 30_000)
	lines := func(rows int, row string) *kithv1.BagPayload {
		content := strings.Repeat(row+"\n", rows) + strings.Repeat("short\n", 500)
		index, err := params.Scan(strings.NewReader(content), params.Lines)
		if err != nil {
			t.Fatal(err)
		}
		return &kithv1.BagPayload{
			Indices: fmt.Sprintf("0-%d", rows+499), Template: &kithv1.Job{Command: []string{"{{line}}"}},
			Parameters: &kithv1.BagPayload_Table{Table: &kithv1.ParameterTable{
				File: &kithv1.File{Inline: []byte(content)}, Format: uint32(params.Lines), Names: index.Names, Count: index.Count, Widths: []uint32{uint32(index.Widths[0])}, Offsets: index.Offsets,
			}},
		}
	}
	var outputs []*kithv1.OutputFile
	for range 1000 {
		outputs = append(outputs, &kithv1.OutputFile{Path: strings.Repeat("p", 1024)})
	}
	large := &kithv1.BagPayload{
		Indices: "0-999", Template: &kithv1.Job{Command: []string{strings.Repeat("c", 130_000), "{{x}}"}, Outputs: outputs},
		Inputs: &kithv1.FileSet{Files: []*kithv1.File{{Inline: make([]byte, 1<<20)}}}, Parameters: &kithv1.BagPayload_Matrix{Matrix: "x=0..998," + strings.Repeat("y", 4000)},
	}
	for name, c := range map[string]struct {
		p    *kithv1.BagPayload
		fits bool
	}{
		"a range":             {&kithv1.BagPayload{Indices: "0-999", Template: template(), Parameters: &kithv1.BagPayload_Matrix{Matrix: "x=1..1000,y=p"}}, true},
		"a few long rows":     {lines(30, long), true},
		"many long rows":      {lines(40, long), false},
		"a matrix of them":    {&kithv1.BagPayload{Indices: "0-199", Template: &kithv1.Job{}, Parameters: &kithv1.BagPayload_Matrix{Matrix: "a=" + long + ",b,c=1..100"}}, false},
		"few combinations":    {&kithv1.BagPayload{Indices: "0-19", Template: &kithv1.Job{}, Parameters: &kithv1.BagPayload_Matrix{Matrix: "a=" + long + ",b,c=1..10"}}, true},
		"all that is allowed": {large, false},
	} {
		b := parse(t, c.p)
		if err := b.CheckBundles(3 << 20); (err == nil) != c.fits || err != nil && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if !c.fits {
			continue
		}
		set := job.TaskRange(0, min(256, b.indices.Count()))
		raw, err := b.Bundle(&set)
		if err == nil {
			_, err = Parse(raw, nil)
		}
		if err != nil || len(raw) > 3<<20 {
			t.Errorf("%s: %d bytes, %v", name, len(raw), err)
		}
	}
}

// Tasks whose texts are all the same have one job, filled in as those of others are, and an
// index and an environment of their own.
func TestTasksThatDifferInNothing(t *testing.T) {
	same := &kithv1.Job{Command: []string{"/bin/run", "{{{{x}}"}, Environment: map[string]string{"B": "{{{{"}, StdoutPath: "o"}
	b := parse(t, &kithv1.BagPayload{Indices: "10-20:2", Template: same})
	first, err := b.Task(bagID, 0)
	if err != nil {
		t.Fatal(err)
	}
	last, err := b.Task(bagID, 5)
	if err != nil {
		t.Fatal(err)
	}
	if j := first.Job; !slices.Equal(j.GetCommand(), []string{"/bin/run", "{{x}}"}) || j.GetEnvironment()["B"] != "{{" || j.GetStdoutPath() != "o" {
		t.Errorf("job %v", j)
	}
	if first.Job != last.Job || first.Index != 10 || last.Index != 20 || slices.Equal(first.Environment, last.Environment) {
		t.Errorf("%+v and %+v", first, last)
	}
	if allocs := testing.AllocsPerRun(100, func() { _, _ = b.Task(bagID, 3) }); allocs > 20 {
		t.Errorf("%v allocations a task", allocs)
	}
	differ := parse(t, &kithv1.BagPayload{Indices: "1-2", Template: &kithv1.Job{Command: []string{"{{index}}"}}})
	one, err1 := differ.Task(bagID, 0)
	two, err2 := differ.Task(bagID, 1)
	if err1 != nil || err2 != nil || one.Job.GetCommand()[0] != "1" || two.Job.GetCommand()[0] != "2" {
		t.Errorf("%v %v, %v %v", one, err1, two, err2)
	}
}
