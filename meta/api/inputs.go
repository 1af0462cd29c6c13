package api

import (
	"context"
	"errors"
	"fmt"

	"kith/internal/scarce"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store/blobstore"
)

// packInputs makes the set of a job's inputs, its script among them; nil if it has none.
func (s *Server) packInputs(ctx context.Context, j *kithv1.Job) (*kithv1.FileSet, error) {
	inputs := inputsOf(j)
	if len(inputs) == 0 {
		return nil, nil
	}
	set, err := s.Files.Pack(ctx, inputs)
	if err != nil {
		return nil, inputFault(j, err)
	}
	return set.Proto(), nil
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
