package params

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// byteOrderMark stands at the begin of files of some programs.
const byteOrderMark = "\ufeff"

// readLine returns the next line without its end, and the end. They hold until the next
// call. At the end of the table it returns io.EOF.
func (r *rowReader) readLine() (content, end []byte, err error) {
	r.long = r.long[:0]
	line, err := r.in.ReadSlice('\n')
	for errors.Is(err, bufio.ErrBufferFull) && len(r.long)+len(line) <= MaxRowBytes+len("\r\n") {
		r.long = append(r.long, line...)
		line, err = r.in.ReadSlice('\n')
	}
	if len(r.long) > 0 {
		r.long = append(r.long, line...)
		line = r.long
	}
	switch {
	case errors.Is(err, bufio.ErrBufferFull): // longer than any row
	case errors.Is(err, io.EOF) && len(line) == 0:
		return nil, nil, io.EOF
	case err != nil && !errors.Is(err, io.EOF):
		return nil, nil, fmt.Errorf("line %d: %w", r.line+1, err)
	}
	atBegin := r.offset == 0
	r.offset += int64(len(line))
	r.line++
	content = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	end = line[len(content):]
	if atBegin {
		content = bytes.TrimPrefix(content, []byte(byteOrderMark))
	}
	switch {
	case len(content) > MaxRowBytes:
		return nil, nil, r.complain("a row of more than %d bytes; put long values into files and their names into the table", MaxRowBytes)
	case bytes.IndexByte(content, 0) >= 0:
		return nil, nil, r.complain("a zero byte, the byte %d of line %d", bytes.IndexByte(content, 0)+1, r.line)
	case !utf8.Valid(content):
		return nil, nil, r.complain("not UTF-8, from byte %d of line %d on; convert the table, for example with iconv", validBytes(content)+1, r.line)
	}
	return content, end, nil
}

// split reads the row that begins with a line, of which end is the end, into text and ends; a
// JSON object into values.
func (r *rowReader) split(content, end []byte) error {
	r.text, r.ends = r.text[:0], r.ends[:0]
	switch r.format {
	case CSV:
		if err := r.splitCSV(content, end); err != nil {
			return err
		}
	case TSV:
		for more := true; more; {
			var value []byte
			value, content, more = bytes.Cut(content, []byte("\t"))
			r.text = append(r.text, value...)
			r.endValue()
		}
	case JSONLines:
		return r.splitObject(content)
	default:
		r.text = append(r.text, content...)
		r.endValue()
	}
	if len(r.ends) > MaxParameters {
		return r.complain("%d values in a row, at most %d", len(r.ends), MaxParameters)
	}
	return nil
}

// setValues sets the values of a row that was split.
func (r *rowReader) setValues() {
	if r.format == JSONLines {
		return // they are
	}
	all, begin := string(r.text), 0
	r.values = r.values[:0]
	for _, end := range r.ends {
		r.values = append(r.values, all[begin:end])
		begin = end
	}
}

// count returns how many values the row has that was split.
func (r *rowReader) count() int {
	if r.format == JSONLines {
		return len(r.values)
	}
	return len(r.ends)
}

// widen makes widths those of the row where that is wider.
func (r *rowReader) widen(widths []int) {
	if r.format == JSONLines {
		for i, v := range r.values {
			widths[i] = max(widths[i], len(v))
		}
		return
	}
	begin := 0
	for i, end := range r.ends {
		widths[i] = max(widths[i], end-begin)
		begin = end
	}
}

// validBytes returns how many bytes at the begin of a text are UTF-8.
func validBytes(text []byte) int {
	n := 0
	for n < len(text) {
		char, size := utf8.DecodeRune(text[n:])
		if char == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	return n
}

// value names the value that is being read, and its column if that has a name.
func (r *rowReader) value() string {
	n := len(r.ends)
	if r.names == nil || n >= len(r.names) {
		return fmt.Sprintf("value %d", n+1)
	}
	return fmt.Sprintf("value %d (%s)", n+1, r.names[n])
}

func (r *rowReader) endValue() { r.ends = append(r.ends, len(r.text)) }

var comma, quote = []byte(","), []byte(`"`)

// splitCSV reads a row as RFC 4180 has it, and further lines if a value in quotes has any.
func (r *rowReader) splitCSV(content, end []byte) error {
	const (
		bare     = iota // at the begin of a value, or behind one without quotes
		inQuotes        // in one with them
		behind          // a quote in it: its end, or the first of two
	)
	state, size := bare, len(content)
	for {
		for more := true; more; {
			switch {
			case state == inQuotes:
				var text []byte
				if text, content, more = bytes.Cut(content, quote); more {
					state = behind
				}
				r.text = append(r.text, text...)
			case state == behind && len(content) == 0:
				more = false
			case state == behind && content[0] == ',':
				r.endValue()
				state, content = bare, content[1:]
			case state == behind && content[0] == '"':
				r.text = append(r.text, '"')
				state, content = inQuotes, content[1:]
			case state == behind:
				return r.complain("text behind the closing quote of %s", r.value())
			case len(content) > 0 && content[0] == '"':
				state, content = inQuotes, content[1:]
			default:
				var text []byte
				text, content, more = bytes.Cut(content, comma)
				if bytes.IndexByte(text, '"') >= 0 {
					return r.complain(`a quote in %s, which is not in quotes: write "…""…"`, r.value())
				}
				if r.text = append(r.text, text...); more {
					r.endValue()
				}
			}
		}
		if state != inQuotes {
			r.endValue()
			return nil
		}
		r.text = append(r.text, end...)
		size += len(end)
		var err error
		if content, end, err = r.readLine(); errors.Is(err, io.EOF) {
			return r.complain("the quotes of %s never close", r.value())
		} else if err != nil {
			return err
		}
		if size += len(content); size > MaxRowBytes {
			return r.complain("the quotes of %s do not close within %d bytes", r.value(), MaxRowBytes)
		}
	}
}

// splitObject reads a row that is a JSON object without another one in it. That of the
// first row gives the names, in its order; another order does not matter.
func (r *rowReader) splitObject(content []byte) error {
	in := json.NewDecoder(bytes.NewReader(content))
	in.UseNumber()
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return r.complain("%q is no JSON object", clip(string(content)))
	}
	first := r.names == nil
	var names []string
	if first {
		r.values = r.values[:0]
	} else {
		names = r.names
		r.values = append(r.values[:0], make([]string, len(names))...)
	}
	seen := make(map[string]bool, len(names))
	for in.More() {
		name, value, err := r.member(in)
		switch {
		case err != nil:
			return err
		case seen[name]:
			return r.complain("%q is there twice", clip(name))
		case first && len(names) == MaxParameters:
			return r.complain("more than %d values in a row", MaxParameters)
		case first:
			names, r.values = append(names, name), append(r.values, value)
		default:
			at := slices.Index(names, name)
			if at < 0 {
				return r.complain("the first row has no %q, only %s", clip(name), known(names))
			}
			r.values[at] = value
		}
		seen[name] = true
	}
	if _, err := in.Token(); err != nil {
		return r.complain("the JSON object is not closed")
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return r.complain("something stands behind the JSON object")
	}
	if len(seen) != len(names) {
		return r.complain("%d values, there are %d parameters: %s", len(seen), len(names), known(names))
	}
	if first {
		if err := checkNames(names); err != nil || len(names) == 0 {
			return errors.Join(r.complain("the names"), err)
		}
		r.names = names
	}
	if err := checkValues(r.names, r.values); err != nil { // a zero byte may hide in an escape
		return fmt.Errorf("line %d: %w", r.first, err)
	}
	return nil
}

// member reads a name and its value.
func (r *rowReader) member(in *json.Decoder) (name, value string, err error) {
	token, err := in.Token()
	if err == nil {
		name, _ = token.(string)
		token, err = in.Token()
	}
	if err != nil {
		return "", "", r.complain("no JSON: %v", err)
	}
	switch v := token.(type) {
	case string:
		return name, v, nil
	case json.Number:
		return name, v.String(), nil
	case bool:
		return name, strconv.FormatBool(v), nil
	}
	return "", "", r.complain("%q is neither a text nor a number nor a truth value", clip(name))
}
