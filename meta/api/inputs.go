package api

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kith/internal/scarce"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store/blobstore"
)

// packInputs makes the set of a job's inputs, its script and what else comes along among
// them; nil if there are none.
func (s *Server) packInputs(ctx context.Context, j *kithv1.Job, others ...transfer.Input) (*kithv1.FileSet, error) {
	inputs := append(inputsOf(j), others...)
	if len(inputs) == 0 {
		return nil, nil
	}
	set, err := s.Files.Pack(ctx, inputs)
	if err != nil {
		return nil, inputFault(j, err)
	}
	return set.Proto(), nil
}

// packBag is packInputs for a bag. The file of a table that was uploaded comes apart from the
// others: no task gets it.
func (s *Server) packBag(ctx context.Context, b *kithv1.Bag) (set *kithv1.FileSet, table *kithv1.File, err error) {
	var others []transfer.Input
	if id := b.GetTable().GetUploadId(); id != "" {
		others = append(others, transfer.Input{Path: tablePath, UploadID: id})
	}
	set, err = s.packInputs(ctx, b.GetJob(), others...)
	switch bad := (*FieldError)(nil); {
	case errors.As(err, &bad):
		bad.Field = "bag." + bad.Field
		return nil, nil, err
	case err != nil || len(others) == 0:
		return set, nil, err
	}
	at := slices.IndexFunc(set.Files, func(f *kithv1.File) bool { return f.GetPath() == tablePath })
	table = set.Files[at]
	if set.Files = slices.Delete(set.Files, at, at+1); len(set.Files) == 0 {
		set = nil
	}
	return set, table, nil
}

// inputsOf returns what a job takes along, its script last.
func inputsOf(j *kithv1.Job) (inputs []transfer.Input) {
	for _, in := range j.GetInputs() {
		inputs = append(inputs, transfer.Input{
			Path: in.GetPath(), Executable: in.GetExecutable(), Data: in.GetData(), Source: in.GetSource(), UploadID: in.GetUploadId(),
		})
	}
	if j.GetScript() != "" {
		inputs = append(inputs, transfer.Input{Path: ScriptPath, Executable: true, Data: []byte(j.GetScript())})
	}
	return inputs
}

// inputFault names the input that an error of packing is about, if it is the input's fault.
func inputFault(j *kithv1.Job, err error) error {
	passes := errors.Is(err, blobstore.ErrQuota) || scarce.Passes(err)
	if bad := (*transfer.InputError)(nil); !passes && errors.As(err, &bad) && bad.Index < len(j.GetInputs()) {
		return &FieldError{Field: fmt.Sprintf("job.inputs[%d].%s", bad.Index, bad.Field), Reason: bad.Err.Error(), Err: err}
	}
	return err
}
