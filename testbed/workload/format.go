package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// parser reads a whole log into a workload.
type parser func(*lines, *Workload) error

// recognise finds the format of a log by the first of its lines that could only
// be of one. It takes nothing away from l.
func recognise(l *lines) (parser, error) {
	const enough = 64 << 10
	head, err := l.in.Peek(enough)
	first := ""
	for line := range bytes.Lines(head) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
			continue
		case line[0] == ';' || looksSWF(line):
			return parseSWF, nil
		case looksPBS(line):
			return parsePBS, nil
		case looksSacct(line):
			return parseSacct, nil
		case first == "":
			first = fmt.Sprintf("%.60q", line)
		}
		if bytes.Count(line, []byte{'|'}) >= 3 {
			return nil, fmt.Errorf("it begins with %s: %w; sacct -P needs its header line: leave out -n", first, ErrUnknownFormat)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, l.explain(err)
	}
	if len(head) == 0 {
		return nil, fmt.Errorf("it is empty: %w", ErrUnknownFormat)
	}
	return nil, fmt.Errorf("it begins with %s: %w", first, ErrUnknownFormat)
}

// looksSWF reports whether a line begins with three numbers, as jobs of the
// Standard Workload Format do even if they are cut off.
func looksSWF(line []byte) bool {
	var fields [3][]byte
	if split(line, fields[:]) < len(fields) {
		return false
	}
	for _, f := range fields {
		if _, ok := parseWhole(f); !ok {
			return false
		}
	}
	return true
}
