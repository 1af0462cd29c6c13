package join

import (
	"fmt"
	"strings"
)

// Error is all that is wrong with a question, before anything was run: with
// the configuration, or with a log that it names. Each problem names its key,
// its value and the remedy.
type Error struct{ Problems []error }

// Error implements error.
func (e *Error) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap gives access to the problems.
func (e *Error) Unwrap() []error { return e.Problems }

// problem returns an [Error] of one problem.
func problem(format string, args ...any) error {
	return &Error{Problems: []error{fmt.Errorf(format, args...)}}
}

// collected returns an [Error] of some problems, nil if there are none.
func collected(problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	return &Error{Problems: problems}
}

// split returns the errors that were joined in err.
func split(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{err}
}
