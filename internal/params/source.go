package params

import (
	"errors"
	"fmt"
	"slices"
)

// Source has a row of values for each task of a bag.
type Source interface {
	// Names returns the parameters, in the order of the values. The caller must not
	// change them.
	Names() []string
	// Count returns how many rows there are: at most [job.MaxTasks]; [NoRows] has as many as
	// its bag has tasks.
	Count() uint32
	// Widths returns the length of the longest value of each parameter, in bytes.
	Widths() []int
	// Each calls visit with the rows from an ordinal on, until it returns false. The values
	// hold only until visit returns. It fails if the rows cannot be read.
	Each(from uint32, visit func(ordinal uint32, values []string) bool) error
}

// NoRows is the source of a bag whose tasks differ by their index only.
type NoRows struct{ Tasks uint32 }

// Names implements [Source].
func (NoRows) Names() []string { return nil }

// Count implements [Source].
func (r NoRows) Count() uint32 { return r.Tasks }

// Widths implements [Source].
func (NoRows) Widths() []int { return nil }

// Each implements [Source].
func (r NoRows) Each(from uint32, visit func(uint32, []string) bool) error {
	for n := from; n < r.Tasks && visit(n, nil); n++ {
	}
	return nil
}

// Bounds on rows that are written out in a request.
const (
	MaxRows     = 10_000
	MaxRowsSize = 1 << 20 // bytes of all values
)

// ErrBadRows is returned for rows that no bag can have.
var ErrBadRows = errors.New("a bag has 1 to 10000 rows in its request, of 1 MiB together, each with a value for every parameter; upload a table for more")

// Rows are rows that are written out.
type Rows struct {
	names  []string
	rows   [][]string
	widths []int
}

// NewRows checks rows and keeps them: the caller must not change them any more. The error
// wraps one of the sentinels of this package and counts rows from 1.
func NewRows(names []string, rows [][]string) (*Rows, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("rows without a parameter: %w", ErrBadRows)
	}
	if err := checkNames(names); err != nil {
		return nil, err
	}
	if len(rows) == 0 || len(rows) > MaxRows {
		return nil, fmt.Errorf("%d rows: %w", len(rows), ErrBadRows)
	}
	r := &Rows{names: names, rows: rows, widths: make([]int, len(names))}
	size := 0
	for n, row := range rows {
		if len(row) != len(names) {
			return nil, fmt.Errorf("row %d has %d values, there are %d parameters: %w", n+1, len(row), len(names), ErrBadRows)
		}
		if err := checkValues(names, row); err != nil {
			return nil, fmt.Errorf("row %d: %w", n+1, err)
		}
		for i, v := range row {
			size += len(v)
			r.widths[i] = max(r.widths[i], len(v))
		}
		if size > MaxRowsSize {
			return nil, fmt.Errorf("%d bytes up to row %d: %w", size, n+1, ErrBadRows)
		}
	}
	return r, nil
}

// Names implements [Source].
func (r *Rows) Names() []string { return r.names }

// Count implements [Source].
func (r *Rows) Count() uint32 { return uint32(len(r.rows)) }

// Widths implements [Source].
func (r *Rows) Widths() []int { return r.widths }

// Each implements [Source].
func (r *Rows) Each(from uint32, visit func(uint32, []string) bool) error {
	for n := int(from); n < len(r.rows) && visit(uint32(n), r.rows[n]); n++ {
	}
	return nil
}

var (
	_ Source = NoRows{}
	_ Source = (*Rows)(nil)
	_ Source = (*Matrix)(nil)
	_ Source = (*Table)(nil)
)

// ErrNoRow is returned for a row that is not there.
var ErrNoRow = errors.New("there is no such row of parameters")

// Row returns the values of one task, which belong to the caller. The error wraps
// [ErrNoRow] if there is no such row; otherwise the source cannot be read.
func Row(s Source, ordinal uint32) (values []string, err error) {
	found := false
	err = s.Each(ordinal, func(_ uint32, row []string) bool {
		values, found = slices.Clone(row), true
		return false
	})
	if err == nil && !found {
		err = fmt.Errorf("row %d of %d: %w", ordinal, s.Count(), ErrNoRow)
	}
	return values, err
}
