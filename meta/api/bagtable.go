package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"kith/internal/params"
	"kith/internal/scarce"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store/blobstore"
)

// maxUploadedTable bounds a table that was uploaded: to look at its rows takes a processor
// some seconds.
const maxUploadedTable = 512 << 20

// Bounds of tables that are looked at.
const (
	mostTables    = 4
	mostTablesOne = 2 // of one address
)

// tablePath is the table among what a bag brings along. No task gets it.
const tablePath = ".kith/table"

// openUpload opens a file that was uploaded.
type openUpload func(id string) (transfer.File, io.ReaderAt, error)

// openUploads returns what opens files until ctx is done.
func (s *Server) openUploads(ctx context.Context) openUpload {
	return func(id string) (transfer.File, io.ReaderAt, error) {
		f, at, err := s.Files.Uploaded(ctx, id, maxUploadedTable)
		return f, untilDone{ctx, at}, err
	}
}

// untilDone reads until a context is done.
type untilDone struct {
	ctx context.Context //nolint:containedctx // that of the call, as long as the reader
	at  io.ReaderAt
}

// ReadAt implements [io.ReaderAt].
func (u untilDone) ReadAt(p []byte, offset int64) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.at.ReadAt(p, offset)
}

var tableFormats = map[kithv1.TaskTable_Format]params.Format{
	kithv1.TaskTable_FORMAT_LINES: params.Lines, kithv1.TaskTable_FORMAT_CSV: params.CSV,
	kithv1.TaskTable_FORMAT_TSV: params.TSV, kithv1.TaskTable_FORMAT_JSON_LINES: params.JSONLines,
}

// tableFile is the text of a table, wherever it is.
type tableFile struct {
	index *params.Index
	at    io.ReaderAt
	size  int64
	field string // of the request
}

// checkTable looks at all rows of a table.
func (c *checkedBag) checkTable(f *fieldErrors, t *kithv1.TaskTable, open openUpload) {
	format, known := tableFormats[t.GetFormat()]
	if !known {
		f.add("bag.table.format", fmt.Sprintf("%d: choose LINES, CSV, TSV or JSON_LINES", t.GetFormat()))
		return
	}
	table := &tableFile{field: "bag.table.data"}
	switch content := t.GetContent().(type) {
	case *kithv1.TaskTable_UploadId:
		table.field = "bag.table.upload_id"
		file, at, err := open(content.UploadId)
		if err != nil {
			c.fault(f, table.field, err, transfer.ErrBadUploadID, transfer.ErrNotFound, transfer.ErrTooLarge)
			return
		}
		table.at, table.size = at, file.Size
	case *kithv1.TaskTable_Data:
		table.at, table.size = bytes.NewReader(content.Data), int64(len(content.Data))
	default:
		f.add("bag.table", "has no content: set data or upload_id")
		return
	}
	index, err := params.Scan(io.NewSectionReader(table.at, 0, table.size), format)
	if err != nil {
		c.fault(f, table.field, err, params.ErrBadTable, params.ErrBadName, params.ErrBadNames, params.ErrBadValue)
		return
	}
	table.index = index
	c.table, c.source = table, params.NewTable(index, table.at)
}

// fault notes an error about a field: as the field's fault if it is one of those, else as
// the site's.
func (c *checkedBag) fault(f *fieldErrors, field string, err error, its ...error) {
	if !scarce.Passes(err) && !errors.Is(err, blobstore.ErrQuota) && slices.ContainsFunc(its, func(e error) bool { return errors.Is(err, e) }) {
		*f = append(*f, &FieldError{Field: field, Reason: err.Error(), Err: err})
		return
	}
	c.failed = errors.Join(c.failed, fmt.Errorf("%s: %w", field, err))
}

// message is what is kept of a table, of which file is the text.
func (t *tableFile) message(file *kithv1.File) *kithv1.ParameterTable {
	x := t.index
	m := &kithv1.ParameterTable{File: file, Format: uint32(x.Format), Names: x.Names, Count: x.Count, Offsets: x.Offsets}
	for _, w := range x.Widths {
		m.Widths = append(m.Widths, uint32(w))
	}
	return m
}
