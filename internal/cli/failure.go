package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// A Failure is an error in words for people: a sentence for each problem, and
// the exit code. A failure without problems prints nothing.
type Failure struct {
	Code     int
	Problems []string
	// Keep says that the failure is worth more than "interrupted".
	Keep bool
}

// Error implements error.
func (f *Failure) Error() string { return strings.Join(f.Problems, "; ") }

// Usagef is a failure of the user's command line or script.
func Usagef(format string, args ...any) *Failure {
	return &Failure{Code: ExitUsage, Problems: []string{fmt.Sprintf(format, args...)}}
}

// Refusedf is any other failure on this side.
func Refusedf(format string, args ...any) *Failure {
	return &Failure{Code: ExitRefused, Problems: []string{fmt.Sprintf(format, args...)}}
}

// ExitWith is a failure that is only an exit code; nil for 0.
func ExitWith(code int) error {
	if code == ExitOK {
		return nil
	}
	return &Failure{Code: code, Keep: true}
}

// Note prints a line for people beside the answer.
func (p *Program) Note(format string, args ...any) {
	_, _ = fmt.Fprintf(p.Stderr, "%s: %s\n", p.Name, Clean(fmt.Sprintf(format, args...))) // there is no other way to tell
}

// tell prints a problem: one line, but for what shows a place in a text of the user's, the line
// and a mark below it. Those two begin with four blanks, so that no site can make them look
// like problems.
func (p *Program) tell(problem string) {
	what, place, _ := strings.Cut(problem, "\n"+placeIndent)
	p.Note("%s", what)
	for line := range strings.SplitSeq(place, "\n"+placeIndent) {
		if line != "" {
			_, _ = fmt.Fprintln(p.Stderr, placeIndent+Clean(line))
		}
	}
}

const placeIndent = "    "

// Bare returns what is wrong with a file without the call and the name.
func Bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		err = l.Err
	}
	if err.Error() == "path escapes from parent" { // package os has no name for it
		return errors.New("a link on the way leads out of the folder")
	}
	return err
}

// ReadFailure puts into words why the file that a flag names cannot be read:
// err comes from opening it, or from what reads it and names the file itself.
func ReadFailure(flag, path string, err error) *Failure {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Usagef("%s %s: there is no such file", flag, path)
	case errors.As(err, new(*fs.PathError)):
		return Usagef("%s %s: %v", flag, path, Bare(err))
	}
	return Refusedf("%s %v", flag, err)
}
