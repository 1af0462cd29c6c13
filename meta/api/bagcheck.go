package api

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	"kith/internal/params"
	"kith/meta/bags"
	"kith/meta/tasks"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// maxPriority bounds the priority of a bag, downwards and for operators upwards.
const maxPriority = 1000

// checkedBag is a bag that nothing is wrong with.
type checkedBag struct {
	indices job.Indices
	// indexText is the indices as submitted, or those of the rows.
	indexText string
	source    params.Source
	table     *tableFile // nil without one
	// failed is why it could not be looked at, which is not the bag's fault.
	failed error
}

// checkBag returns all that is wrong with a submitted bag by itself. It touches no file but
// a table.
func checkBag(b *kithv1.Bag, operator bool, open openUpload) (*checkedBag, fieldErrors) {
	var f fieldErrors
	if b == nil {
		f.add("bag", "missing")
		return &checkedBag{}, f
	}
	if b.GetId() != "" {
		f.add("bag.id", "is set by Kith; leave it empty")
	}
	if b.GetStatus() != nil {
		f.add("bag.status", "is set by Kith; leave it empty")
	}
	if b.GetPolicies().GetEtag() != "" {
		f.add("bag.policies.etag", "is set by Kith; leave it empty")
	}
	if len(b.GetLeftOut()) > 0 {
		f.add("bag.left_out", "is set by Kith; leave it empty")
	}
	for _, e := range checkJob(b.GetJob()) {
		if e.Reason == movesOrReruns {
			if b.GetJob().GetOnSiteLost() == kithv1.Job_ON_SITE_LOST_UNSPECIFIED {
				continue // that is RERUN for bags
			}
			e.Reason = stoppedTasks
		}
		f.add("bag."+e.Field, e.Reason)
	}
	if len(b.GetJob().GetAfter()) > 0 || b.GetJob().GetSingleton() {
		f.add("bag.job.after", "is what jobs wait for; what a bag waits for belongs into bag.after and bag.singleton")
	}
	if b.GetJob().GetCheckpoint() != nil {
		f.add("bag.job.checkpoint", "is of jobs: what tasks of a bag have finished stays finished, and one that is lost runs again")
	}
	if b.GetJob().GetEstimate() != "" {
		f.add("bag.job.estimate", "is of jobs: a bag of a hierarchy goes down by the time that it takes; leave it out")
	}
	if ofHierarchy(b.GetJob()) && b.GetMaxReplicas() > 0 {
		f.add("bag.max_replicas", fmt.Sprintf("%d: tasks of a bag of a hierarchy run at one site at a time; leave it out, or job.level and job.walltime_unknown", b.GetMaxReplicas()))
	}
	checkAfter(&f, "bag", b.GetAfter(), b.GetSingleton())
	checkBagSize(&f, b, operator)
	c := &checkedBag{}
	before := len(f)
	c.checkSource(&f, b, open)
	c.checkIndices(&f, b)
	if len(f) == before && c.failed == nil {
		c.checkTexts(&f, b.GetJob())
	}
	return c, f
}

func checkBagSize(f *fieldErrors, b *kithv1.Bag, operator bool) {
	if w := b.GetJob().GetWalltime(); w != nil && w.AsDuration() > bags.MaxTaskWalltime && w.AsDuration() <= job.MaxWalltime {
		f.add("bag.job.walltime", fmt.Sprintf("%v: that of a task is at most %v", w.AsDuration(), bags.MaxTaskWalltime))
	}
	if n := b.GetMaxRunning(); n < 0 {
		f.add("bag.max_running", fmt.Sprintf("%d: must be at least 1, or 0 for no limit", n))
	}
	checkBudget(f, "bag.budget_processor_seconds", b.GetBudgetProcessorSeconds())
	if n := b.GetRetries(); n < 0 || n > store.MaxRetries {
		f.add("bag.retries", fmt.Sprintf("%d: must be 0 to %d", n, store.MaxRetries))
	}
	if n := b.GetMaxReplicas(); n < 0 || n > store.MaxReplicas {
		f.add("bag.max_replicas", fmt.Sprintf("%d: must be 0 to %d", n, store.MaxReplicas))
	}
	if n := b.GetTailAt(); n < 0 {
		f.add("bag.tail_at", fmt.Sprintf("%d: must be at least 1, or 0 for as many tasks as places serve the bag", n))
	}
	switch n := b.GetPriority(); {
	case n < -maxPriority || n > maxPriority:
		f.add("bag.priority", fmt.Sprintf("%d: must be %d to %d", n, -maxPriority, maxPriority))
	case n > 0 && !operator:
		f.add("bag.priority", fmt.Sprintf("%d: puts the bag before those of other users, which only an operator may do; write 0 or less", n))
	}
}

func checkBudget(f *fieldErrors, field string, n int64) {
	if n < 0 || n > store.MaxBudget {
		f.add(field, fmt.Sprintf("%d: must be 1 to %d processor-seconds, or 0 for no bound", n, int64(store.MaxBudget)))
	}
}

// checkSource makes the source of the rows; nil if there are no parameters, or something is
// wrong with them.
func (c *checkedBag) checkSource(f *fieldErrors, b *kithv1.Bag, open openUpload) {
	switch p := b.GetParameters().(type) {
	case *kithv1.Bag_Values:
		rows := make([][]string, len(p.Values.GetRows()))
		for i, r := range p.Values.GetRows() {
			rows[i] = r.GetValues()
		}
		source, err := params.NewRows(p.Values.GetNames(), rows)
		if err != nil {
			f.add("bag.values", err.Error())
			return
		}
		c.source = source
	case *kithv1.Bag_Matrix:
		source, err := params.ParseMatrix(p.Matrix)
		if err != nil {
			f.add("bag.matrix", err.Error())
			return
		}
		c.source = source
	case *kithv1.Bag_Table:
		c.checkTable(f, p.Table, open)
	}
}

// checkIndices reads the indices, or makes those of the rows.
func (c *checkedBag) checkIndices(f *fieldErrors, b *kithv1.Bag) {
	text := b.GetIndices()
	if text == "" && b.GetParameters() != nil {
		if c.source != nil {
			c.indices = job.FirstIndices(c.source.Count())
			c.indexText = c.indices.String()
		}
		return
	}
	indices, atMost, err := job.ParseIndices(text)
	switch {
	case err != nil:
		f.add("bag.indices", err.Error())
		return
	case atMost > 0:
		f.add("bag.indices", fmt.Sprintf("%.64q: how many may run at once belongs into bag.max_running: %d", text, atMost))
		return
	case c.source != nil && c.source.Count() != indices.Count():
		f.add("bag.indices", fmt.Sprintf("%.64q: %d tasks, and the parameters have %d rows; name an index for each row, or none to count from 0",
			text, indices.Count(), c.source.Count()))
		return
	}
	c.indices, c.indexText = indices, text
	if c.source == nil && b.GetParameters() == nil {
		c.source = params.NoRows{Tasks: indices.Count()}
	}
}

// checkTexts looks at the texts of the job that may have parameters in them, and at what
// becomes of them.
func (c *checkedBag) checkTexts(f *fieldErrors, j *kithv1.Job) {
	x := tasks.FieldsOf(j, "bag.job.")
	names := c.source.Names()
	before := len(*f)
	for _, field := range x.All {
		if _, err := params.ParseTemplate(field.Text, names); err != nil {
			f.add(field.Name, err.Error())
		}
	}
	for i, in := range j.GetInputs() {
		if strings.Contains(in.GetPath(), "{{") || strings.Contains(in.GetSource(), "{{") {
			f.add(fmt.Sprintf("bag.job.inputs[%d]", i), "inputs that differ from task to task are not built yet; let all tasks have all files, and name the one in the command")
		}
	}
	if len(*f) > before {
		return
	}
	texts, err := params.Compile(x.All, names)
	if err != nil {
		f.add("bag.job", err.Error())
		return
	}
	var spans []params.Span
	fields := make(map[params.Span]string)
	short := func(field string, s params.Span) {
		spans = append(spans, s)
		fields[s] = field
	}
	if x.Command > 0 {
		short("bag.job.command", params.Span{Last: x.Command, Most: maxCommandBytes})
	}
	if x.Environment > x.Command {
		rest := maxEnvironmentBytes
		for name := range j.GetEnvironment() {
			rest -= len(name) + 1
		}
		short("bag.job.environment", params.Span{First: x.Command, Last: x.Environment, Most: rest})
	}
	for i := x.Environment; i < len(x.All); i++ {
		short(x.All[i].Name, params.Span{First: i, Last: i + 1, Most: maxPath + 1, Rows: outputsChecked / uint32(len(x.All)-x.Environment)}) //nolint:gosec // few
	}
	err = texts.CheckLengths(spans, c.indices.Index, c.source, func(s params.Span, err error) {
		f.add(fields[s], strings.TrimPrefix(err.Error(), x.All[s.First].Name+": "))
	})
	c.failed = errors.Join(c.failed, err)
	c.checkOutputs(f, x)
}

// outputsChecked is how many paths of outputs are looked at before a bag is taken: some tenths
// of a second. A host looks at those of each task before it runs it.
const outputsChecked = 1 << 20

// checkOutputs looks at the paths of outputs that each task declares.
func (c *checkedBag) checkOutputs(f *fieldErrors, x *tasks.Fields) {
	var fields []params.Field
	for _, field := range x.All[x.Environment:x.Outputs] {
		if strings.Contains(field.Text, "{{") {
			fields = append(fields, field)
		}
	}
	if len(fields) == 0 {
		return
	}
	texts, err := params.Compile(fields, c.source.Names())
	if err != nil {
		f.add("bag.job.outputs", err.Error())
		return
	}
	most := outputsChecked / uint32(len(fields)) //nolint:gosec // few
	if len(c.source.Names()) == 0 {
		most = 1 // an index is digits
	}
	var bad fieldErrors
	err = c.source.Each(0, func(ordinal uint32, values []string) bool {
		if ordinal == most {
			return false
		}
		index := c.indices.Index(ordinal)
		for i, p := range texts.Expand(index, values) {
			checkPath(&bad, fields[i].Name, p)
			if _, err := path.Match(path.Base(p), "x"); len(bad) == 0 && err != nil {
				bad.add(fields[i].Name, fmt.Sprintf("%.64q is not a pattern", p))
			}
			if len(bad) > 0 {
				f.add(bad[0].Field, fmt.Sprintf("for the task with index %d: %s", index, bad[0].Reason))
				return false
			}
		}
		return true
	})
	c.failed = errors.Join(c.failed, err)
}

// parseTasks reads indices that name tasks of a bag, nil for an empty text.
func parseTasks(field, text string) (*job.Indices, error) {
	if text == "" {
		return nil, nil
	}
	indices, atMost, err := job.ParseIndices(text)
	if err == nil && atMost > 0 {
		err = errors.New("'%' and a number behind it have no meaning here; leave them out")
	}
	if err != nil {
		return nil, &FieldError{Field: field, Reason: err.Error(), Err: err}
	}
	return &indices, nil
}

// checkBagRequest returns all that is wrong with a submission by itself.
func checkBagRequest(r *kithv1.SubmitBagRequest, operator bool, open openUpload) (*checkedBag, error) {
	if err := knownRequest(r); err != nil {
		return nil, err
	}
	c, f := checkBag(r.GetBag(), operator, open)
	checkRequestID(&f, r.GetRequestId())
	f.addNew(breaches(r))
	if c.failed != nil {
		return nil, c.failed
	}
	if len(f) > 0 {
		return nil, f
	}
	return c, nil
}

// payloadOf is what the origin keeps of a bag, without its files. A table that was uploaded
// is the given file.
func (c *checkedBag) payloadOf(b *kithv1.Bag, table *kithv1.File) *kithv1.BagPayload {
	template := proto.CloneOf(b.GetJob())
	template.Script, template.Inputs = "", nil
	p := &kithv1.BagPayload{Template: template, Indices: c.indexText}
	switch given := b.GetParameters().(type) {
	case *kithv1.Bag_Values:
		p.Parameters = &kithv1.BagPayload_Values{Values: given.Values}
	case *kithv1.Bag_Matrix:
		p.Parameters = &kithv1.BagPayload_Matrix{Matrix: given.Matrix}
	case *kithv1.Bag_Table:
		if len(given.Table.GetData()) > 0 {
			table = &kithv1.File{Path: tablePath, SizeBytes: c.table.size, Inline: given.Table.GetData()}
		}
		p.Parameters = &kithv1.BagPayload_Table{Table: c.table.message(table)}
	}
	return p
}
