package params

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"

	"kith/internal/job"
)

// Format says how a table is written. The numbers are stored; they are frozen.
type Format uint8

// The formats of a table. In all of them a row ends with a line feed, before which there
// may be a carriage return; the last one need not end. Empty lines are no rows, and a
// byte-order mark at the begin is skipped.
const (
	Lines     Format = 1 // each line is the value of the one parameter, [LineName]
	CSV       Format = 2 // names in the first row; a value in quotes may have commas, lines and doubled quotes in it
	TSV       Format = 3 // names in the first row, tabs between values, nothing is quoted
	JSONLines Format = 4 // each line an object of texts, numbers and truth values; the first one gives the names
)

// LineName is the parameter of a table of lines.
const LineName = "line"

// rowsAnOffset is how many rows lie from one offset of an [Index] to the next.
const rowsAnOffset = 256

// ErrBadTable is returned for a table that no bag can have.
var ErrBadTable = errors.New("a table is UTF-8 without zero bytes, has 1 to 16777216 rows of at most 65536 bytes, and in each a value for every parameter")

// Index is what must be known of a table to find a row in it: 8 bytes for 256 rows.
type Index struct {
	Format Format
	Names  []string
	Count  uint32
	// Widths has the length of the longest value of each parameter, in bytes.
	Widths []int
	// Offsets has where the rows 0, 256, 512, … begin, in bytes.
	Offsets []int64
}

// Scan reads a table from its begin to its end, once, in memory for a row, and checks all
// of it. The error wraps [ErrBadTable], [ErrBadName] or [ErrBadNames], and names the line,
// counted from 1; or it is that of r.
func Scan(r io.Reader, f Format) (*Index, error) {
	if f < Lines || f > JSONLines {
		return nil, fmt.Errorf("table of format %d: %w", f, ErrBadTable)
	}
	in := newRowReader(r, 0, f, nil)
	x := &Index{Format: f}
	for {
		begin, err := in.next()
		if err == io.EOF { //nolint:errorlint // as next returns it, once for each row
			break
		}
		if err != nil {
			return nil, err
		}
		switch {
		case x.Names == nil:
			x.Names, x.Widths = in.names, make([]int, len(in.names))
		case x.Count == job.MaxTasks:
			return nil, fmt.Errorf("line %d: more than %d rows; submit several bags: %w", in.first, job.MaxTasks, ErrBadTable)
		}
		if x.Count%rowsAnOffset == 0 {
			x.Offsets = append(x.Offsets, begin)
		}
		x.Count++
		in.widen(x.Widths)
	}
	if x.Count == 0 {
		return nil, fmt.Errorf("no row: %w", ErrBadTable)
	}
	x.Offsets = slices.Clip(x.Offsets)
	return x, nil
}

// Table is the source of the rows of a file.
type Table struct {
	index *Index
	at    io.ReaderAt
}

// NewTable returns the rows of a file that [Scan] has made an index of. Neither may
// change any more. A row is found by reading what lies between it and the offset before.
func NewTable(index *Index, at io.ReaderAt) *Table { return &Table{index: index, at: at} }

// Names implements [Source].
func (t *Table) Names() []string { return t.index.Names }

// Count implements [Source].
func (t *Table) Count() uint32 { return t.index.Count }

// Widths implements [Source].
func (t *Table) Widths() []int { return t.index.Widths }

// Each implements [Source]. The error wraps [ErrNoRow] if the file is shorter than it was,
// [ErrBadTable] if it is another one.
func (t *Table) Each(from uint32, visit func(uint32, []string) bool) error {
	if from >= t.index.Count {
		return nil
	}
	group := from / rowsAnOffset
	offset := t.index.Offsets[group]
	const restOfFile = 1<<63 - 1
	in := newRowReader(io.NewSectionReader(t.at, offset, restOfFile-offset), offset, t.index.Format, t.index.Names)
	for n := group * rowsAnOffset; n < t.index.Count; n++ {
		_, err := in.next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("row %d of %d: the table ends before it: %w", n, t.index.Count, ErrNoRow)
		}
		if err != nil {
			return fmt.Errorf("behind row %d, %w", group*rowsAnOffset, err)
		}
		if n < from {
			continue
		}
		if in.setValues(); !visit(n, in.values) {
			return nil
		}
	}
	return nil
}

// rowReader reads a table row by row.
type rowReader struct {
	in     *bufio.Reader
	format Format
	names  []string // nil until the first row is read

	offset int64 // of the next byte
	line   int   // lines that were read
	first  int   // the line in which the latest row begins, from 1

	long   []byte   // a line that does not fit into the buffer of in
	text   []byte   // the values of the row, one behind the other
	ends   []int    // where each of them ends in text
	values []string // the row
}

// newRowReader reads a table from its begin, or, with names, from the row at an offset on.
func newRowReader(r io.Reader, offset int64, f Format, names []string) *rowReader {
	if f == Lines {
		names = []string{LineName}
	}
	return &rowReader{in: bufio.NewReaderSize(r, 16<<10), offset: offset, format: f, names: names}
}

// complain returns an error about the row that is being read.
func (r *rowReader) complain(format string, args ...any) error {
	return fmt.Errorf("line %d: %s: %w", r.first, fmt.Sprintf(format, args...), ErrBadTable)
}

// next reads the next row and returns where it begins. [rowReader.setValues] makes its values,
// which hold until the next call. At the end it returns io.EOF.
func (r *rowReader) next() (begin int64, err error) {
	for {
		begin, r.first = r.offset, r.line+1
		content, end, err := r.readLine()
		if err != nil {
			return 0, err
		}
		if len(content) == 0 {
			continue
		}
		if err := r.split(content, end); err != nil {
			return 0, err
		}
		if r.names == nil && r.format != JSONLines {
			r.setValues()
			r.names = slices.Clone(r.values)
			if err := checkNames(r.names); err != nil {
				return 0, fmt.Errorf("line %d, the names: %w", r.first, err)
			}
			continue
		}
		if n := r.count(); n != len(r.names) {
			return 0, r.complain("%d values, there are %d parameters: %s", n, len(r.names), known(r.names))
		}
		return begin, nil
	}
}
