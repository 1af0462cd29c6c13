package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

const (
	// maxTable is how large a table is that travels within the submission; a larger one is
	// uploaded.
	maxTable = 3 << 20
	// maxUploadedTable is how large a table may be.
	maxUploadedTable = 512 << 20
)

var tableFormats = map[string]kithv1.TaskTable_Format{
	"lines": kithv1.TaskTable_FORMAT_LINES, "csv": kithv1.TaskTable_FORMAT_CSV, "tsv": kithv1.TaskTable_FORMAT_TSV, "jsonl": kithv1.TaskTable_FORMAT_JSON_LINES,
}

func parseTableFormat(text string) (kithv1.TaskTable_Format, error) {
	f := tableFormats[text]
	if f == 0 {
		return 0, errors.New("choose lines, csv, tsv or jsonl")
	}
	return f, nil
}

// tableFile is the table of a bag, opened. The caller closes it.
type tableFile struct {
	name   string // on the command line
	format kithv1.TaskTable_Format
	small  []byte   // all of it; nil if it is uploaded
	file   *os.File // else
	size   int64
	time   time.Time // when it was written last
}

// openTable opens the table that --params names: a file, or "-" for stdin, which is kept in a
// temporary file if it is large, as an upload may have to be repeated.
func (c *client) openTable(name string, format kithv1.TaskTable_Format) (*tableFile, error) {
	t := &tableFile{name: name, format: format}
	if t.format == 0 {
		t.format = tableFormats[strings.TrimPrefix(strings.ToLower(filepath.Ext(name)), ".")]
	}
	if t.format == 0 {
		t.format = kithv1.TaskTable_FORMAT_LINES
	}
	in := c.Stdin
	if name != "-" {
		var err error
		if t.file, err = os.Open(name); err != nil {
			return nil, t.refused(err)
		}
		in = t.file
	}
	if err := t.read(in); err != nil {
		t.Close()
		return nil, t.refused(err)
	}
	return t, nil
}

// read reads a small table, or finds out how large it is.
func (t *tableFile) read(in io.Reader) error {
	head, err := io.ReadAll(io.LimitReader(in, maxTable+1))
	if err != nil {
		return err
	}
	if len(head) <= maxTable {
		t.small = head
		return nil
	}
	info, regular := os.FileInfo(nil), false
	if t.file != nil {
		if info, err = t.file.Stat(); err != nil {
			return err
		}
		regular = info.Mode().IsRegular()
	}
	if !regular {
		whole, err := spooled(io.LimitReader(io.MultiReader(bytes.NewReader(head), in), maxUploadedTable+1))
		if err != nil {
			return err
		}
		t.Close()
		t.file = whole
		if info, err = t.file.Stat(); err != nil {
			return err
		}
	}
	t.size, t.time = info.Size(), info.ModTime()
	if t.size > maxUploadedTable {
		return fmt.Errorf("has more than %d bytes; split it and submit a bag for each part", maxUploadedTable)
	}
	return nil
}

// spooled copies what comes into a temporary file, which has no name any more when the first
// byte is read: nothing is left if that is interrupted.
func spooled(in io.Reader) (*os.File, error) {
	f, err := os.CreateTemp("", "kith-params-*")
	if err != nil {
		return nil, err
	}
	if err = os.Remove(f.Name()); err == nil {
		_, err = io.Copy(f, in)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (t *tableFile) refused(err error) error {
	return cli.Usagef("--params %s: %v", t.name, cli.Bare(err))
}

// Close lets go of the file. It may be called again, and for no table.
func (t *tableFile) Close() {
	if t != nil && t.file != nil {
		_ = t.file.Close() // only read from
		t.file = nil
	}
}

// send brings a table to the site as far as it does not travel within the submission, and
// returns what the bag says of it.
func (t *tableFile) send(ctx context.Context, c *client, s *site) (*kithv1.Bag_Table, error) {
	m := &kithv1.TaskTable{Format: t.format, Content: &kithv1.TaskTable_Data{Data: t.small}}
	if t.small == nil {
		id, err := c.upload(ctx, s, "--params "+t.name, func() (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(t.file, 0, t.size)), nil
		})
		if err != nil {
			return nil, err
		}
		if info, err := t.file.Stat(); err != nil || info.Size() != t.size || !info.ModTime().Equal(t.time) {
			return nil, cli.Refusedf("--params %s: changed while it was being read; nothing was submitted", t.name)
		}
		m.Content = &kithv1.TaskTable_UploadId{UploadId: id}
	}
	return &kithv1.Bag_Table{Table: m}, nil
}

// explain puts the name of the table into what a site says about it.
func (t *tableFile) explain(c *client, err error) error {
	f, ok := errors.AsType[*cli.Failure](c.explain(err))
	if !ok || t == nil {
		return err
	}
	for i, p := range f.Problems {
		if rest, ok := strings.CutPrefix(p, "--params ("); ok {
			f.Problems[i] = "--params " + t.name + " (" + rest
		}
	}
	return f
}
