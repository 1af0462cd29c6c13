// Package strict reads TOML in which every key must be known: a key that is
// misspelt must not be ignored in silence.
package strict

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Decode reads text into a value that holds the defaults already. sample is
// a value of the same type whose lists have an element each, so that all known
// keys can be seen in it; manual says where they are described. The error names
// the line, or every key that is not known and what it was probably meant to be.
func Decode(text string, into, sample any, manual string) error {
	m, err := toml.Decode(text, into)
	if parse := (toml.ParseError{}); errors.As(err, &parse) {
		return fmt.Errorf("line %d: %s", parse.Position.Line, parse.Message)
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, key := range m.Undecoded() {
		errs = append(errs, fmt.Errorf("key %s is not known%s", key, suggestion(key.String(), sample, manual)))
	}
	return errors.Join(errs...)
}

// suggestion finds the known key that an unknown one was probably meant to be.
func suggestion(key string, sample any, manual string) string {
	best, distance := "", 3
	for _, known := range Keys(sample) {
		if d := editDistance(last(key), last(known)); d < distance {
			best, distance = known, d
		}
	}
	if best == "" {
		return "; " + manual + " lists the keys"
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

func last(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// Keys returns the keys that a sample shows, sorted; nil if it cannot be written.
func Keys(sample any) []string {
	var text strings.Builder
	if err := toml.NewEncoder(&text).Encode(sample); err != nil {
		return nil
	}
	var keys map[string]any
	m, err := toml.Decode(text.String(), &keys)
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(m.Keys()))
	for _, k := range m.Keys() {
		names = append(names, k.String())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// editDistance is the least number of letters to insert, delete or replace.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
