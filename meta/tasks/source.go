package tasks

import (
	"bytes"
	"fmt"
	"io"

	"kith/internal/job"
	"kith/internal/params"
	kithv1 "kith/proto/gen/kith/v1"
)

// OpenTable returns the content of the file of a table, which this site keeps. It reads
// nothing, and what it returns needs not be closed.
type OpenTable func(file *kithv1.File) (io.ReaderAt, error)

// NamesOf returns the parameters of a bag, of a payload that this site made.
func NamesOf(p *kithv1.BagPayload) ([]string, error) {
	if t := p.GetTable(); t != nil {
		return t.GetNames(), nil
	}
	source, err := sourceOf(p, &job.Indices{}, nil)
	if err != nil {
		return nil, err
	}
	return source.Names(), nil
}

func sourceOf(p *kithv1.BagPayload, indices *job.Indices, open OpenTable) (params.Source, error) {
	switch given := p.GetParameters().(type) {
	case *kithv1.BagPayload_Matrix:
		m, err := params.ParseMatrix(given.Matrix)
		if err != nil { // a nil matrix must not become a source
			return nil, err
		}
		return m, nil
	case *kithv1.BagPayload_Values:
		rows := make([][]string, len(given.Values.GetRows()))
		for i, r := range given.Values.GetRows() {
			rows[i] = r.GetValues()
		}
		r, err := params.NewRows(given.Values.GetNames(), rows)
		if err != nil {
			return nil, err
		}
		return r, nil
	case *kithv1.BagPayload_Table:
		return tableOf(given.Table, open)
	}
	return params.NoRows{Tasks: indices.Count()}, nil
}

func tableOf(t *kithv1.ParameterTable, open OpenTable) (_ params.Source, err error) {
	var content io.ReaderAt = bytes.NewReader(t.GetFile().GetInline())
	if len(t.GetFile().GetChunks()) > 0 {
		if open == nil {
			return nil, fmt.Errorf("%w: a table in chunks", ErrPayload)
		}
		if content, err = open(t.GetFile()); err != nil {
			return nil, err
		}
	}
	widths := make([]int, len(t.GetWidths()))
	for i, w := range t.GetWidths() {
		widths[i] = int(w)
	}
	index := &params.Index{Format: params.Format(t.GetFormat()), Names: t.GetNames(), Count: t.GetCount(), Widths: widths, Offsets: t.GetOffsets()}
	return params.NewTable(index, content), nil
}
