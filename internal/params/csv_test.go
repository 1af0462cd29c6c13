package params

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// slowCSV is splitCSV byte by byte.
func (r *rowReader) slowCSV(content, end []byte) error {
	r.text, r.ends = r.text[:0], r.ends[:0]
	const (
		atBegin = iota
		bare
		inQuotes
		behind
	)
	state := atBegin
	for {
		for _, c := range content {
			switch {
			case state == inQuotes && c == '"':
				state = behind
			case state == inQuotes:
				r.text = append(r.text, c)
			case c == ',':
				r.endValue()
				state = atBegin
			case c == '"' && state == atBegin:
				state = inQuotes
			case c == '"' && state == behind:
				r.text = append(r.text, c)
				state = inQuotes
			case c == '"':
				return r.complain(`a quote in %s, which is not in quotes: write "…""…"`, r.value())
			case state == behind:
				return r.complain("text behind the closing quote of %s", r.value())
			default:
				r.text = append(r.text, c)
				state = bare
			}
		}
		if state != inQuotes {
			r.endValue()
			return nil
		}
		r.text = append(r.text, end...)
		var err error
		if content, end, err = r.readLine(); errors.Is(err, io.EOF) {
			return r.complain("the quotes of %s never close", r.value())
		} else if err != nil {
			return err
		}
	}
}

// rows reads all lines of a text as rows.
func rows(text string, split func(*rowReader, []byte, []byte) error) (all []string, err error) {
	r := newRowReader(strings.NewReader(text), 0, CSV, []string{"x", "y"})
	for {
		r.first = r.line + 1
		content, end, err := r.readLine()
		if err != nil {
			return all, err
		}
		if err := split(r, content, end); err != nil {
			return all, err
		}
		r.setValues()
		all = append(all, fmt.Sprintf("%q to %d", r.values, r.offset))
	}
}

// Rows are as a reader finds them that looks at one byte after the other, for every text of
// few bytes.
func TestCSVAgainstASlowReader(t *testing.T) {
	letters, texts, good := []byte("a,\"\n\r"), 0, 0
	var try func(text []byte, left int)
	try = func(text []byte, left int) {
		texts++
		want, wantErr := rows(string(text), (*rowReader).slowCSV)
		got, err := rows(string(text), (*rowReader).split)
		if !slices.Equal(got, want) || err.Error() != wantErr.Error() {
			t.Fatalf("%q: %v, %v; want %v, %v", text, got, err, want, wantErr)
		}
		if errors.Is(err, io.EOF) {
			good++
		}
		for _, c := range letters {
			if left > 0 {
				try(append(text, c), left-1)
			}
		}
	}
	try(nil, 6)
	if good < texts/20 || good > texts/2 {
		t.Errorf("%d of %d texts are tables", good, texts)
	}
}
