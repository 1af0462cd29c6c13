package tasks

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	"kith/internal/params"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// ErrPayload is returned for a payload of a bag or bundle that makes no sense.
var ErrPayload = errors.New("what the tasks of the bag run cannot be read")

// ErrNoTask is returned for a task that a payload tells nothing of.
var ErrNoTask = errors.New("the payload has no such task")

// Bag is what the tasks of a bag run, or those of a bundle, read and checked as far as
// texts and rows go. It does not change; several goroutines may use it.
type Bag struct {
	payload *kithv1.BagPayload
	size    int
	texts   *params.Texts
	common  *kithv1.Job // what all tasks run if no text has a parameter in it, else nil
	names   []string
	array   *kithv1.TaskArray

	// At the origin: indices and source; at a host: the rows, by ordinals.
	indices job.Indices
	source  params.Source
	open    OpenTable
	rows    []*kithv1.TaskRow
	checked *params.Rows // the same; nil without parameters
}

// Parse reads a payload, and nothing of the file of a table. The error wraps [ErrPayload].
// It keeps raw. Where no payload has a table in a file, as at hosts, open may be nil.
func Parse(raw []byte, open OpenTable) (*Bag, error) {
	var p kithv1.BagPayload
	if err := proto.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	b := &Bag{payload: &p, size: len(raw), open: open}
	read := b.readOrigins
	if p.GetArray() != nil {
		read = b.readHosts
	}
	err := read()
	if err == nil && p.GetTemplate() == nil {
		err = errors.New("no template")
	}
	if err == nil {
		fields := FieldsOf(p.GetTemplate(), "job.").All
		if b.texts, err = params.Compile(fields, b.names); err == nil {
			err = b.checkLength(len(fields))
		}
		if err == nil && b.texts.Constant() {
			b.common = expanded(p.GetTemplate(), b.texts.Expand(0, nil))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return b, nil
}

func (b *Bag) readOrigins() (err error) {
	if b.indices, _, err = job.ParseIndices(b.payload.GetIndices()); err != nil {
		return err
	}
	if b.source, err = sourceOf(b.payload, &b.indices, b.open); err != nil {
		return err
	}
	if rows := b.source.Count(); rows != b.indices.Count() {
		return fmt.Errorf("%d rows for %d tasks", rows, b.indices.Count())
	}
	b.names = b.source.Names()
	b.array = &kithv1.TaskArray{Count: b.indices.Count(), Min: b.indices.Min(), Max: b.indices.Max(), Step: b.indices.Step()}
	return nil
}

func (b *Bag) readHosts() error {
	b.names, b.array, b.rows = b.payload.GetNames(), b.payload.GetArray(), b.payload.GetRows()
	if len(b.rows) > store.MaxBundleTasks {
		return fmt.Errorf("%d rows, a bundle has at most %d tasks", len(b.rows), store.MaxBundleTasks)
	}
	values := make([][]string, len(b.rows))
	for i, r := range b.rows {
		values[i] = r.GetValues()
		if i > 0 && r.GetOrdinal() <= b.rows[i-1].GetOrdinal() {
			return fmt.Errorf("rows[%d]: task %d does not come behind task %d", i, r.GetOrdinal(), b.rows[i-1].GetOrdinal())
		}
		if len(r.GetValues()) != len(b.names) {
			return fmt.Errorf("rows[%d]: %d values, there are %d parameters", i, len(r.GetValues()), len(b.names))
		}
	}
	if len(b.names) == 0 || len(b.rows) == 0 {
		return nil
	}
	rows, err := params.NewRows(b.names, values)
	if err != nil {
		return err
	}
	b.checked = rows
	return nil
}

// maxTextBytes bounds the texts of a task together, filled in. What a site submits has less;
// a small template and a small row of another site could make gigabytes.
const maxTextBytes = 2 << 20

// checkLength looks whether texts of another site are within bounds with each of its rows.
func (b *Bag) checkLength(fields int) error {
	if b.checked == nil {
		return nil
	}
	var tooLong error
	err := b.texts.CheckLengths([]params.Span{{Last: fields, Most: maxTextBytes}}, func(row uint32) uint32 { return b.rows[row].GetIndex() }, b.checked,
		func(_ params.Span, err error) { tooLong = err })
	return errors.Join(err, tooLong)
}

// Size is how much memory the payload took, in bytes.
func (b *Bag) Size() int { return b.size }

// Inputs are the files that each task has; the script is one of them. Nil for none.
func (b *Bag) Inputs() *kithv1.FileSet { return b.payload.GetInputs() }

// Task is what a task runs.
type Task struct {
	// Job is the template with the values of the task in it. It must not be changed: tasks that
	// differ in nothing have the same.
	Job *kithv1.Job
	// Index is how its user knows it.
	Index uint32
	// Environment is what Kith adds to that of the job: KITH_BAG_ID, and what
	// [params.Task.Environment] has.
	Environment []params.Variable
}

// Task returns what a task of the bag runs. The error wraps
// [ErrNoTask], or says that the rows cannot be read.
func (b *Bag) Task(bag job.ID, ordinal uint32) (*Task, error) {
	row, err := b.row(ordinal)
	if err != nil {
		return nil, err
	}
	told := params.Task{
		Bag: bag.String(), Index: row.GetIndex(), Count: b.array.GetCount(), Min: b.array.GetMin(), Max: b.array.GetMax(), Step: b.array.GetStep(),
		Names: b.names, Values: row.GetValues(),
	}
	j := b.common
	if j == nil {
		j = expanded(b.payload.GetTemplate(), b.texts.Expand(row.GetIndex(), row.GetValues()))
	}
	return &Task{
		Job: j, Index: row.GetIndex(),
		Environment: append(told.Environment(), params.Variable{Name: "KITH_BAG_ID", Value: told.Bag}),
	}, nil
}

// row returns what tells a task from the others.
func (b *Bag) row(ordinal uint32) (*kithv1.TaskRow, error) {
	if b.source == nil {
		i, ok := slices.BinarySearchFunc(b.rows, ordinal, func(r *kithv1.TaskRow, n uint32) int { return int(int64(r.GetOrdinal()) - int64(n)) })
		if !ok {
			return nil, fmt.Errorf("task %d: %w", ordinal, ErrNoTask)
		}
		return b.rows[i], nil
	}
	if ordinal >= b.indices.Count() {
		return nil, fmt.Errorf("task %d of %d: %w", ordinal, b.indices.Count(), ErrNoTask)
	}
	values, err := params.Row(b.source, ordinal)
	if err != nil {
		return nil, fmt.Errorf("task %d: %w", ordinal, err)
	}
	return &kithv1.TaskRow{Ordinal: ordinal, Index: b.indices.Index(ordinal), Values: values}, nil
}

// Bundle returns the payload of a bundle of these tasks, for their host. Two of one bag
// begin with the same bytes and differ in the rows of the tasks behind them. It must not be
// called at a host.
func (b *Bag) Bundle(tasks *job.TaskSet) ([]byte, error) {
	p := &kithv1.BagPayload{Template: b.payload.GetTemplate(), Inputs: b.payload.GetInputs(), Names: b.names, Array: b.array}
	common, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	if err != nil {
		return nil, err
	}
	own := &kithv1.BagPayload{}
	if own.Rows, err = b.rowsOf(tasks); err != nil {
		return nil, err
	}
	// One message behind another reads as one that has the fields of both.
	return proto.MarshalOptions{}.MarshalAppend(common, own)
}

// readThrough is how many rows that are not asked for are read rather than looked past: to
// find a row of a table takes up to 255 others.
const readThrough = 256

// rowsOf returns the rows of some tasks, at the origin.
func (b *Bag) rowsOf(tasks *job.TaskSet) (rows []*kithv1.TaskRow, err error) {
	wanted := slices.Collect(tasks.All)
	for len(wanted) > 0 {
		if last := wanted[len(wanted)-1]; last >= b.indices.Count() {
			return nil, fmt.Errorf("task %d of %d: %w", last, b.indices.Count(), ErrNoTask)
		}
		err := b.source.Each(wanted[0], func(ordinal uint32, values []string) bool {
			if ordinal == wanted[0] {
				rows = append(rows, &kithv1.TaskRow{Ordinal: ordinal, Index: b.indices.Index(ordinal), Values: slices.Clone(values)})
				wanted = wanted[1:]
			}
			return len(wanted) > 0 && wanted[0]-ordinal <= readThrough
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}
