package params

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrBadTemplate is returned for a text whose braces do not fit.
var ErrBadTemplate = errors.New("{{name}} stands for a parameter, {{{{ for two braces")

// Template is a text with parameters in it.
type Template struct {
	// literals has one element more than params: the texts around them.
	literals []string
	params   []int // which parameter; -1 for the task's index
}

// ParseTemplate reads a text in which {{name}} stands for a parameter, blanks within the
// braces allowed, and {{{{ for "{{". Closing braces mean nothing elsewhere. The error
// wraps [ErrBadTemplate]; that about an unknown name lists the known ones.
func ParseTemplate(text string, names []string) (Template, error) {
	var t Template
	var literal strings.Builder
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "{{")
		literal.WriteString(before)
		if !found {
			t.literals = append(t.literals, literal.String())
			return t, nil
		}
		if escaped, ok := strings.CutPrefix(after, "{{"); ok {
			literal.WriteString("{{")
			rest = escaped
			continue
		}
		name, behind, closed := strings.Cut(after, "}}")
		if !closed {
			return Template{}, fmt.Errorf(`%q is not closed; write "{{{{" for two braces: %w`, clip("{{"+after), ErrBadTemplate)
		}
		name = strings.Trim(name, " \t")
		param := slices.Index(names, name)
		if param < 0 && name != IndexName {
			return Template{}, fmt.Errorf(`no parameter is called %q; there are: %s. Write "{{{{" for two braces: %w`, clip(name), known(names), ErrBadTemplate)
		}
		t.literals = append(t.literals, literal.String())
		t.params = append(t.params, param)
		literal.Reset()
		rest = behind
	}
}

// Constant reports whether the text is the same for every task.
func (t *Template) Constant() bool { return len(t.params) == 0 }

// Append appends the text for a row, whose task has an index, to b and returns the longer
// slice. What is in a value is not read as a template.
func (t *Template) Append(b []byte, index uint32, values []string) []byte {
	for i, p := range t.params {
		b = append(b, t.literals[i]...)
		if p < 0 {
			b = strconv.AppendUint(b, uint64(index), 10)
		} else {
			b = append(b, values[p]...)
		}
	}
	return append(b, t.literals[len(t.params)]...)
}

// maxLength is where lengths stop growing: far above every bound, far below an overflow.
const maxLength = 1 << 40

// Length returns how long the text is, in bytes, for parameters with values of these
// lengths and an index of so many digits.
func (t *Template) Length(digits int, widths []int) int {
	n := 0
	for _, l := range t.literals {
		n += len(l)
	}
	for _, p := range t.params {
		if p < 0 {
			n += digits
		} else {
			n = min(n+widths[p], maxLength)
		}
	}
	return n
}

// Field is a text of a job that may have parameters in it.
type Field struct {
	Name string // as errors name it: "command[2]"
	Text string
}

// Texts are all texts of a bag's job that may have parameters in them. They do not change.
type Texts struct {
	fields    []Field
	templates []Template
	names     []string
}

// Compile reads the texts of a job. The error joins one for each field that is wrong,
// which begins with the field's name.
func Compile(fields []Field, names []string) (*Texts, error) {
	if err := checkNames(names); err != nil {
		return nil, err
	}
	x := &Texts{fields: slices.Clone(fields), names: slices.Clone(names)}
	var errs []error
	for _, f := range fields {
		t, err := ParseTemplate(f.Text, names)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.Name, err))
		}
		x.templates = append(x.templates, t)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return x, nil
}

// Expand returns the texts for a row, in the order of the fields.
func (x *Texts) Expand(index uint32, values []string) []string {
	texts := make([]string, len(x.templates))
	var b []byte
	for i := range x.templates {
		if t := &x.templates[i]; t.Constant() {
			texts[i] = t.literals[0]
		} else {
			b = t.Append(b[:0], index, values)
			texts[i] = string(b)
		}
	}
	return texts
}

// Constant reports whether the texts are the same for all tasks.
func (x *Texts) Constant() bool {
	for i := range x.templates {
		if !x.templates[i].Constant() {
			return false
		}
	}
	return true
}

// ErrTooLong is returned for texts that are longer than they may be with some row.
var ErrTooLong = errors.New("shorten the text, or the values in that row")

// Span is the texts of the fields from First to before Last, which may have at most Most bytes
// together with a byte behind each. Only the first Rows rows are looked at, if that is not 0.
type Span struct {
	First, Last, Most int
	Rows              uint32
}

// CheckLengths looks whether the texts of spans are short enough with every row of a source.
// It calls tooLong once for each span that is not, with an error that wraps [ErrTooLong] and
// names the first task with which it has more. It reads rows, once, only if some span would be
// too long with the longest values of all parameters. The error is that of reading.
func (x *Texts) CheckLengths(spans []Span, indexOf func(ordinal uint32) uint32, rows Source, tooLong func(Span, error)) error {
	length := func(s *Span, digits int, widths []int) int {
		n := 0
		for i := s.First; i < s.Last; i++ {
			n = min(n+x.templates[i].Length(digits, widths)+1, maxLength)
		}
		return n
	}
	const mostDigits = 10
	doubtful := slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return length(&s, mostDigits, rows.Widths()) <= s.Most })
	if len(doubtful) == 0 {
		return nil
	}
	widths := make([]int, len(x.names))
	var digits []byte
	return rows.Each(0, func(ordinal uint32, values []string) bool {
		for i, v := range values {
			widths[i] = len(v)
		}
		index := indexOf(ordinal)
		digits = strconv.AppendUint(digits[:0], uint64(index), 10)
		doubtful = slices.DeleteFunc(doubtful, func(s Span) bool {
			if s.Rows > 0 && ordinal >= s.Rows {
				return true
			}
			n := length(&s, len(digits), widths)
			if n > s.Most {
				tooLong(s, fmt.Errorf("%s: %d bytes for the task with index %d, at most %d: %w", x.fields[s.First].Name, n, index, s.Most, ErrTooLong))
			}
			return n > s.Most
		})
		return len(doubtful) > 0
	})
}
