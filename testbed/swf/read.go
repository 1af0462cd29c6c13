package swf

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Bounds on what [Read] accepts.
const (
	// MaxLineLength is the longest line, in bytes, its end not counted.
	MaxLineLength = 4096
	// MaxRecords is the most jobs of one log. The largest logs of the archive
	// have some millions.
	MaxRecords = 20_000_000
)

// Errors of [Read]; what it returns wraps one of them, or the error of the reader.
var (
	// ErrLine is wrapped when a line is too long or has not 18 fields.
	ErrLine = errors.New("not a line of the format")
	// ErrField is wrapped when a field is not the number it should be.
	ErrField = errors.New("not a number of the format")
	// ErrTooManyRecords is returned when a log is longer than MaxRecords jobs.
	ErrTooManyRecords = errors.New("more than 20000000 jobs")
)

// fieldNames are for error messages.
var fieldNames = [...]string{
	"job", "submit", "wait", "run", "allocated processors", "average cpu", "used memory", "requested processors",
	"requested time", "requested memory", "status", "user", "group", "executable", "queue", "partition",
	"preceding job", "think time",
}

// Read reads a whole log, plain or gzip. It never panics; an error names the
// line, and if it can the field and its value.
func Read(r io.Reader) (*Trace, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	if magic, err := in.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		in = bufio.NewReaderSize(z, 1<<16)
	}
	t := &Trace{}
	for line := 1; ; line++ {
		text, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err == nil {
			err = t.parseLine(text, line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// readLine returns the next line without its end, or io.EOF after the last one.
// The bytes are valid until the next call.
func readLine(in *bufio.Reader) ([]byte, error) {
	text, err := in.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF) && len(text) > 0:
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("longer than %d bytes: %w", MaxLineLength, ErrLine)
	case err != nil:
		return nil, err
	}
	text = bytes.TrimRight(text, "\r\n")
	if len(text) > MaxLineLength {
		return nil, fmt.Errorf("longer than %d bytes: %w", MaxLineLength, ErrLine)
	}
	return text, nil
}

func (t *Trace) parseLine(text []byte, line int) error {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil
	}
	if text[0] == ';' {
		t.parseHeader(string(text[1:]), line)
		return nil
	}
	if len(t.Records) >= MaxRecords {
		return ErrTooManyRecords
	}
	r, err := parseRecord(text)
	if err != nil {
		return err
	}
	t.Records = append(t.Records, r)
	return nil
}

// parseHeader keeps a comment line if it has the form "Name: value".
func (t *Trace) parseHeader(text string, line int) {
	name, value, ok := strings.Cut(text, ":")
	name = strings.TrimSpace(name)
	if ok && name != "" && !strings.ContainsAny(name, " \t") {
		t.Header = append(t.Header, HeaderField{Name: name, Value: strings.TrimSpace(value), Line: line})
	}
}

func parseRecord(text []byte) (Record, error) {
	var r Record
	ints := [len(fieldNames)]*int64{
		0: &r.Job, 1: &r.Submit, 2: &r.Wait, 3: &r.Run, 4: &r.AllocatedProcessors, 7: &r.RequestedProcessors,
		8: &r.RequestedTime, 10: &r.Status, 11: &r.User, 12: &r.Group, 13: &r.Executable, 14: &r.Queue,
		15: &r.Partition, 16: &r.PrecedingJob, 17: &r.ThinkTime,
	}
	floats := [len(fieldNames)]*float64{5: &r.AverageCPU, 6: &r.UsedMemory, 9: &r.RequestedMemory}
	n := 0
	for field := range bytes.FieldsSeq(text) {
		if n == len(fieldNames) {
			return r, fmt.Errorf("more than %d fields: %w", len(fieldNames), ErrLine)
		}
		var err error
		if ints[n] != nil {
			*ints[n], err = parseInt(field)
		} else {
			*floats[n], err = parseFloat(field)
		}
		if err != nil {
			return r, fmt.Errorf("field %d (%s) %.40q: %w", n+1, fieldNames[n], field, err)
		}
		n++
	}
	if n < len(fieldNames) {
		return r, fmt.Errorf("%d fields of %d: %w", n, len(fieldNames), ErrLine)
	}
	return r, nil
}

// parseInt reads a whole number. Anything below zero but -1 has no meaning in
// the format, and a bound keeps sums and products of fields from overflowing.
func parseInt(field []byte) (int64, error) {
	v, err := strconv.ParseInt(string(field), 10, 64)
	if err != nil || v < -1 || v > math.MaxInt32*1024 {
		return 0, ErrField
	}
	return v, nil
}

// parseFloat reads a number that may have decimals.
func parseFloat(field []byte) (float64, error) {
	v, err := strconv.ParseFloat(string(field), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < -1 {
		return 0, ErrField
	}
	return v, nil
}
