package strict

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Document is a TOML text taken apart.
type Document struct {
	// Values are the values by key, as the library gives them: int64, float64,
	// string, bool, time.Time, []any and maps.
	Values map[string]any
	// Faults are the lines that are no TOML. They are not in Values.
	Faults []Fault

	lines map[string]int
}

// Fault is a line that is no TOML.
type Fault struct {
	Line int
	Says string
}

// mostFaults bounds how often a text is read again without a faulty line.
const mostFaults = 20

// Read takes a text apart. A line that is no TOML is a fault and left out, so
// that what is wrong behind it is found, too.
func Read(text string) Document {
	var d Document
	lines := strings.SplitAfter(text, "\n")
	for {
		d.Values = make(map[string]any)
		_, err := toml.Decode(strings.Join(lines, ""), &d.Values)
		if err == nil {
			break
		}
		parse := toml.ParseError{}
		if !errors.As(err, &parse) {
			d.Faults, d.Values = append(d.Faults, Fault{Says: err.Error()}), nil
			return d
		}
		line := parse.Position.Line
		d.Faults = append(d.Faults, Fault{line, parse.Message})
		if line < 1 || line > len(lines) || strings.TrimSpace(lines[line-1]) == "" || len(d.Faults) == mostFaults {
			d.Values = nil // leaving that line out does not help
			break
		}
		lines[line-1] = "\n"
	}
	slices.SortStableFunc(d.Faults, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	d.lines = Lines(strings.Join(lines, ""))
	return d
}

// Line returns the line of a key, or of the table that it is in; 0 for none.
func (d *Document) Line(key string) int {
	for key != "" {
		if n := d.lines[key]; n > 0 {
			return n
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
	return 0
}

// Suggest returns the known key that an unknown one was probably meant to be,
// or "" if none is near. A key of the same table comes first.
func Suggest(key string, known []string) string {
	best, distance := "", 1<<10
	for _, k := range known {
		d := editDistance(strings.ToLower(last(key)), strings.ToLower(last(k)))
		if d > 2 || d >= len(last(key)) {
			continue
		}
		if table(key) != table(k) {
			d += 3 // any key of the same table is nearer
		}
		if d < distance {
			best, distance = k, d
		}
	}
	return best
}

// Unknown says that a key is not known, and which one was probably meant.
func Unknown(key string, known []string, manual string) string {
	if meant := Suggest(key, known); meant != "" {
		return fmt.Sprintf("key %s is not known; did you mean %q?", key, meant)
	}
	return fmt.Sprintf("key %s is not known; %s lists the keys", key, manual)
}

func last(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

func table(key string) string { return key[:max(0, strings.LastIndexByte(key, '.'))] }
