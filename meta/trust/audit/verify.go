package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// VerifyOptions are what is known beside the folder.
type VerifyOptions struct {
	// Head is one that was kept elsewhere: the log must contain the line that it names.
	Head *Head
	// Check says whether the signature of a head is the site's; nil for not checked.
	Check func(*Head) error
}

// Fault is something that is wrong with a log.
type Fault struct {
	// File is the name of the file, Line the line of it, from 1; 0 for the whole file.
	File string `json:"file"`
	Line int    `json:"line"`
	// Number is that of the line of the log.
	Number  uint64 `json:"n"`
	Problem string `json:"problem"`
}

// String returns the fault in a line.
func (f Fault) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Problem
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Problem)
}

// mostFaults bounds how many faults are told apart.
const mostFaults = 100

// Report is what [Verify] found.
type Report struct {
	Files int    `json:"files"`
	Lines uint64 `json:"lines"`
	// First and Last are the numbers of the oldest and the newest line, 0 without lines.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// Hash is that of the newest line.
	Hash Hash `json:"sha256"`
	// Heads is how many heads the log has; Signed how many had their signatures checked.
	Heads  int `json:"heads"`
	Signed int `json:"signed"`
	// Unfinished is how many bytes of a line follow the newest one: kithd writes it just
	// now, or a crash has torn it.
	Unfinished int64 `json:"unfinishedBytes"`
	// HeadTooOld says that the line of the head from outside is no longer kept.
	HeadTooOld bool `json:"headTooOld"`
	// Faults are the first that were found, More how many others there are.
	Faults []Fault `json:"faults"`
	More   int     `json:"more"`
}

// verifier walks along a chain.
type verifier struct {
	VerifyOptions
	Report
	file   string
	oldest string // the first file with a line
	newest bool   // it is the last file
	at     int    // line of the file
	before struct {
		file string
		at   int
	}
	missing *Removal // what must have been removed before the first line
	said    bool     // a line says so
	met     bool     // the line of Head was there
}

// Verify looks whether the log in a folder is whole: that no line was changed, removed,
// inserted or moved since it was written. Faults are in the report; an error means that
// the folder cannot be read. A log that is written meanwhile is no trouble.
func Verify(dir string, o VerifyOptions) (Report, error) {
	files, err := filesOf(dir)
	if err != nil {
		return Report{}, fmt.Errorf("audit log: %w", err)
	}
	v := &verifier{VerifyOptions: o}
	for i, f := range files {
		v.file, v.at, v.newest = filepath.Base(f.path), 0, i == len(files)-1
		err := v.follow(f)
		if errors.Is(err, fs.ErrNotExist) && v.Lines == 0 {
			continue // removed as the oldest one meanwhile
		}
		if err != nil {
			return Report{}, fmt.Errorf("audit log: %w", err)
		}
		v.Files++
	}
	v.end()
	return v.Report, nil
}

func (v *verifier) fault(file string, at int, number uint64, format string, args ...any) {
	if len(v.Faults) == mostFaults {
		v.More++
		return
	}
	v.Faults = append(v.Faults, Fault{file, at, number, fmt.Sprintf(format, args...)})
}

// follow checks the lines of a file.
func (v *verifier) follow(f file) error {
	in, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it is only read
	_, rest, err := eachLine(in, func(text []byte, at int, long bool) bool {
		v.at = at
		v.line(text, long, f.first)
		v.before.file, v.before.at = v.file, at
		return true
	})
	switch {
	case err != nil:
		return err
	case rest > 0 && v.newest:
		v.Unfinished = rest
	case rest > 0:
		v.fault(v.file, v.at+1, v.Last+1, "the file ends in the middle of a line, and another file follows: its end is missing")
	case v.at == 0 && !v.newest:
		v.fault(v.file, 0, f.first, "the file is empty, and another file follows: its lines are missing")
	}
	return nil
}

// line checks that a line follows the one before.
func (v *verifier) line(text []byte, long bool, first uint64) {
	hash := Hash(sha256.Sum256(text))
	l, err := parse(text)
	if long {
		err = fmt.Errorf("%w: it is longer than %d bytes", ErrLine, mostHeadLine)
	}
	if err != nil {
		number := max(v.Last+1, first)
		v.fault(v.file, v.at, number, "line %d %v", number, err)
		v.step(number, hash)
		return
	}
	if v.at == 1 && l.Number != first {
		v.fault(v.file, 1, l.Number, "the file is named after line %d and begins with line %d", first, l.Number)
	}
	if v.Lines == 0 {
		v.begin(l)
	} else {
		v.link(l)
	}
	v.step(l.Number, hash)
	switch {
	case l.Head != nil:
		v.checkHead(l)
	case l.Removed != nil && v.missing != nil && *l.Removed == *v.missing:
		v.said = true
	}
	if v.Head != nil && v.Head.Number == l.Number {
		v.met = true
		if v.Head.Hash != hash {
			v.fault(v.file, v.at, l.Number, "line %d is not the one that the head of %s names: the log was changed here or before",
				l.Number, v.Head.Time.UTC().Format("2006-01-02T15:04:05Z"))
		}
	}
}

func (v *verifier) step(number uint64, hash Hash) {
	if v.Lines == 0 {
		v.First, v.oldest = number, v.file
	}
	v.Lines++
	v.Last, v.Hash = number, hash
}

// begin checks the oldest line.
func (v *verifier) begin(l *Line) {
	switch {
	case l.Number > 1:
		v.missing = &Removal{Last: l.Number - 1, Hash: l.Prev}
	case l.Prev != Hash{}:
		v.fault(v.file, v.at, 1, "line 1 names a line before it")
	}
}

// link checks that a line names the one before it.
func (v *verifier) link(l *Line) {
	follows := l.Prev == v.Hash
	switch {
	case l.Number > v.Last+1:
		v.fault(v.file, v.at, l.Number, "lines %d to %d are missing before line %d", v.Last+1, l.Number-1, l.Number)
	case l.Number <= v.Last:
		v.fault(v.file, v.at, l.Number, "line %d stands behind line %d: lines were moved or inserted here", l.Number, v.Last)
	case !follows:
		v.fault(v.before.file, v.before.at, v.Last, "line %d is not the one that line %d was written behind: it was changed, or one was inserted or removed here",
			v.Last, l.Number)
	}
}

// checkHead checks a head that stands in the log.
func (v *verifier) checkHead(l *Line) {
	v.Heads++
	if l.Head.Number != l.Number-1 || l.Head.Hash != l.Prev {
		v.fault(v.file, v.at, l.Number, "the head in line %d is not one of the line before it", l.Number)
		return
	}
	if v.Check == nil {
		return
	}
	v.Signed++
	if err := v.Check(l.Head); err != nil {
		v.fault(v.file, v.at, l.Number, "the signature of the head in line %d: %v", l.Number, err)
	}
}

// end checks what only the whole log shows.
func (v *verifier) end() {
	if v.missing != nil && !v.said {
		v.fault(v.oldest, 0, v.First, "the log begins with line %d, and no line says that those before it were removed", v.First)
	}
	if v.Head == nil || v.met {
		return
	}
	switch {
	case v.missing != nil && v.Head.Number == v.missing.Last:
		if v.Head.Hash != v.missing.Hash {
			v.fault(v.oldest, 0, v.First, "line %d, which was removed, is not the one that the head names", v.Head.Number)
		}
	case v.Head.Number < v.First:
		v.HeadTooOld = true
	case v.Head.Number > v.Last:
		v.fault(v.file, v.at+1, v.Last+1, "the log ends with line %d, and the head names line %d: lines are missing at its end", v.Last, v.Head.Number)
	default:
		v.fault(v.file, 0, v.Head.Number, "line %d, which the head names, is missing", v.Head.Number)
	}
}
