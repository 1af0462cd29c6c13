package params

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kith/internal/job"
)

// Bounds on a matrix.
const (
	MaxLists      = 8
	MaxMatrixSize = 64 << 10 // bytes of its text
)

// ErrBadMatrix is returned for a matrix that no bag can have.
var ErrBadMatrix = errors.New("a matrix reads a=1..9,b=x,y: 1 to 8 lists of values and ranges, of which every combination is a task")

// Matrix is the source of every combination of the values of some lists. It is kept as it
// was written: a range of a million numbers costs as much as one of two. The last list
// changes fastest from task to task.
type Matrix struct {
	names  []string
	lists  []list
	widths []int
	count  uint32
}

// list is the values of one parameter.
type list struct {
	items []item
	count uint32
}

// item is a value, or the numbers lo, lo+step, … so many of them.
type item struct {
	text     string
	before   uint32 // how many values of the list stand before it
	count    uint32
	lo, step int64
	digits   int // numbers are filled up with zeros to so many
}

// ParseMatrix reads a matrix: lists with a comma between them, each a name, '=', and
// values with a comma between them. lo..hi stands for the numbers from lo to hi, lo..hi..step
// for every step-th of them; if lo or hi begins with a zero, all have as many digits. What
// has a '=' begins a list. The error wraps [ErrBadMatrix], [ErrBadName] or [ErrBadNames].
func ParseMatrix(text string) (*Matrix, error) {
	if len(text) > MaxMatrixSize {
		return nil, fmt.Errorf("matrix of %d bytes, at most %d; upload a table: %w", len(text), MaxMatrixSize, ErrBadMatrix)
	}
	m := &Matrix{}
	for part := range strings.SplitSeq(text, ",") {
		if name, first, begins := strings.Cut(part, "="); begins {
			m.names = append(m.names, name)
			m.lists = append(m.lists, list{})
			part = first
		}
		if len(m.lists) == 0 || len(m.lists) > MaxLists {
			return nil, fmt.Errorf("matrix %q, at %q, in list %d: %w", clip(text), clip(part), len(m.lists), ErrBadMatrix)
		}
		at := len(m.lists) - 1
		if err := m.lists[at].add(part); err != nil {
			return nil, fmt.Errorf("matrix %q, list %s: %w", clip(text), clip(m.names[at]), err)
		}
	}
	if err := checkNames(m.names); err != nil {
		return nil, fmt.Errorf("matrix %q: %w", clip(text), err)
	}
	return m, m.finish(text)
}

// add adds a value or a range.
func (l *list) add(text string) error {
	it, isRange, err := parseRange(text)
	if err != nil {
		return err
	}
	if !isRange {
		it = item{text: text, count: 1}
		if err := checkValues([]string{"a list"}, []string{text}); err != nil {
			return err
		}
	}
	if it.before = l.count; uint64(l.count)+uint64(it.count) > job.MaxTasks {
		return fmt.Errorf("more than %d values up to %q: %w", job.MaxTasks, clip(text), ErrBadMatrix)
	}
	l.count += it.count
	l.items = append(l.items, it)
	return nil
}

// parseRange reads lo..hi or lo..hi..step; what does not look like numbers with dots
// between them is a value.
func parseRange(text string) (it item, isRange bool, err error) {
	parts := strings.Split(text, "..")
	if len(parts) != 2 && len(parts) != 3 {
		return it, false, nil
	}
	var numbers [3]int64
	numbers[2] = 1
	for i, p := range parts {
		if !looksLikeNumber(p) {
			if _, err := strconv.ParseFloat(p, 64); err == nil {
				return it, true, fmt.Errorf("range %q is not of whole numbers; write its values: %w", clip(text), ErrBadMatrix)
			}
			return it, false, nil
		}
		if numbers[i], err = strconv.ParseInt(p, 10, 64); err != nil || numbers[i] == math.MinInt64 {
			return it, true, fmt.Errorf("range %q has a number of more than 63 bits: %w", clip(text), ErrBadMatrix)
		}
	}
	lo, hi, step := numbers[0], numbers[1], numbers[2]
	switch {
	case step < 1:
		return it, true, fmt.Errorf("range %q has step %d, it must be at least 1: %w", clip(text), step, ErrBadMatrix)
	case lo > hi:
		return it, true, fmt.Errorf("range %q runs backwards; begin with the lower number: %w", clip(text), ErrBadMatrix)
	}
	count := (uint64(hi)-uint64(lo))/uint64(step) + 1 // the difference fits, whatever the signs
	if count == 0 || count > job.MaxTasks {
		return it, true, fmt.Errorf("range %q has more than %d numbers: %w", clip(text), job.MaxTasks, ErrBadMatrix)
	}
	it = item{count: uint32(count), lo: lo, step: step}
	if padded(parts[0]) || padded(parts[1]) {
		it.digits = max(digitsOf(parts[0]), digitsOf(parts[1]))
	}
	return it, true, nil
}

func looksLikeNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// padded reports whether a number begins with a zero that it does not need.
func padded(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return len(s) > 1 && s[0] == '0'
}

func digitsOf(s string) int { return len(strings.TrimPrefix(s, "-")) }

// finish counts tasks and measures values.
func (m *Matrix) finish(text string) error {
	count := uint64(1)
	for i := range m.lists {
		if count *= uint64(m.lists[i].count); count > job.MaxTasks { // each factor is at most that, so nothing overflows
			return fmt.Errorf("matrix %q has more than %d combinations up to list %s; submit several bags: %w", clip(text), job.MaxTasks, m.names[i], ErrBadMatrix)
		}
		width := 0
		for k := range m.lists[i].items {
			it := &m.lists[i].items[k] // one of the ends of a range is the longest
			width = max(width, len(it.value(0)), len(it.value(it.count-1)))
		}
		m.widths = append(m.widths, width)
	}
	m.count = uint32(count)
	total := 0
	for _, w := range m.widths {
		if total += w; total > MaxRowBytes {
			return fmt.Errorf("matrix %q: %w", clip(text), ErrBadValue)
		}
	}
	return nil
}

// value returns the k-th value of an item.
func (it *item) value(k uint32) string {
	if it.step == 0 {
		return it.text
	}
	n := it.lo + int64(k)*it.step
	if it.digits == 0 {
		return strconv.FormatInt(n, 10)
	}
	sign, text := "", strconv.FormatInt(n, 10)
	if n < 0 {
		sign, text = "-", text[1:]
	}
	return sign + strings.Repeat("0", max(0, it.digits-len(text))) + text
}

// value returns the k-th value of a list.
func (l *list) value(k uint32) string {
	at, found := slices.BinarySearchFunc(l.items, k, func(it item, k uint32) int { return int(int64(it.before) - int64(k)) })
	if !found {
		at--
	}
	return l.items[at].value(k - l.items[at].before)
}

// Names implements [Source].
func (m *Matrix) Names() []string { return m.names }

// Count implements [Source].
func (m *Matrix) Count() uint32 { return m.count }

// Widths implements [Source].
func (m *Matrix) Widths() []int { return m.widths }

// Each implements [Source].
func (m *Matrix) Each(from uint32, visit func(uint32, []string) bool) error {
	values := make([]string, len(m.lists))
	for n := from; n < m.count; n++ {
		rest := n
		for i := len(m.lists) - 1; i >= 0; i-- {
			l := &m.lists[i]
			values[i] = l.value(rest % l.count)
			rest /= l.count
		}
		if !visit(n, values) {
			return nil
		}
	}
	return nil
}
