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
		errs = append(errs, errors.New(Unknown(key.String(), Keys(sample), manual)))
	}
	return errors.Join(errs...)
}

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

// editDistance is the least number of letters to insert, delete or replace, or
// of neighbours to swap.
func editDistance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := row[j]
			if a[i] != b[j] {
				cost++
			}
			next[j+1] = min(cost, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
