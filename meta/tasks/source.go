package tasks

import (
	"bytes"
	"fmt"
	"io"

	"kith/internal/job"
	"kith/internal/params"
	kithv1 "kith/proto/gen/kith/v1"
)

// SourceOf returns what the tasks of a bag differ by, of a payload that this site made. The
// content of a table is in its file.
func SourceOf(p *kithv1.BagPayload) (params.Source, error) {
	indices, _, err := job.ParseIndices(p.GetIndices())
	if err != nil {
		return nil, err
	}
	return sourceOf(p, &indices)
}

func sourceOf(p *kithv1.BagPayload, indices *job.Indices) (params.Source, error) {
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
		return tableOf(given.Table)
	}
	return params.NoRows{Tasks: indices.Count()}, nil
}

func tableOf(t *kithv1.ParameterTable) (params.Source, error) {
	if len(t.GetFile().GetChunks()) > 0 {
		return nil, fmt.Errorf("%w: a table in chunks", ErrPayload)
	}
	widths := make([]int, len(t.GetWidths()))
	for i, w := range t.GetWidths() {
		widths[i] = int(w)
	}
	index := &params.Index{Format: params.Format(t.GetFormat()), Names: t.GetNames(), Count: t.GetCount(), Widths: widths, Offsets: t.GetOffsets()}
	var content io.ReaderAt = bytes.NewReader(t.GetFile().GetInline())
	return params.NewTable(index, content), nil
}
