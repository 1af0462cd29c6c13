package job

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// SiteID names a site: 1 to 32 of a-z, 0-9 and '-', beginning with a letter
// and not ending with '-'. It is chosen by the site's operator and never changes.
type SiteID string

// MaxSiteIDLength is the longest site name, in bytes.
const MaxSiteIDLength = 32

// ErrBadSiteID is returned when a text is not a site name.
var ErrBadSiteID = errors.New("a site name is 1 to 32 of a-z, 0-9 and '-', begins with a letter and does not end with '-'")

// ParseSiteID returns s as a site name, or an error wrapping [ErrBadSiteID].
func ParseSiteID(s string) (SiteID, error) {
	bad := len(s) == 0 || len(s) > MaxSiteIDLength || s[0] < 'a' || s[0] > 'z' || s[len(s)-1] == '-'
	for i := 0; i < len(s) && !bad; i++ {
		c := s[i]
		bad = (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-'
	}
	if bad {
		return "", fmt.Errorf("site name %q: %w", clip(s), ErrBadSiteID)
	}
	return SiteID(s), nil
}

// ID names a job. It is unique across sites without coordination: the origin
// is part of it, Generation tells two data folders of one origin apart (a site
// that lost its disk starts a new one), and Seq counts within the folder.
//
// As text it reads "origin.generation.seq", for example "uni-a.k3f9.17".
type ID struct {
	Origin SiteID
	Seq    uint64
	// Generation lies behind Seq because ids are hashed all the time, and what
	// has no gap before it is hashed in one piece.
	Generation uint32
}

// HashParts returns what hash tables need to know of id.
func (id ID) HashParts() (text string, x, y uint64) {
	return string(id.Origin), id.Seq, uint64(id.Generation)
}

// ErrBadID is returned when a text is not a job id.
var ErrBadID = errors.New("a job id reads SITE.GENERATION.NUMBER, for example uni-a.k3f9.17")

// String returns the id as text; [ParseID] reads it back.
func (id ID) String() string {
	b := make([]byte, 0, len(id.Origin)+24)
	return string(id.Append(b))
}

// Append appends the text of id to b and returns the longer slice.
func (id ID) Append(b []byte) []byte {
	b = append(b, id.Origin...)
	b = append(b, '.')
	b = strconv.AppendUint(b, uint64(id.Generation), 36)
	b = append(b, '.')
	return strconv.AppendUint(b, id.Seq, 10)
}

// GenerationText writes a generation as it stands in the ids of its jobs, so that
// a log can be searched for both.
func GenerationText(generation uint32) string { return strconv.FormatUint(uint64(generation), 36) }

// IsZero reports whether id names no job.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders ids by origin, generation and number. It is the order in
// which the specs break ties "by job id" (spec 001 section 2.1).
func (id ID) Compare(other ID) int {
	if c := cmp.Compare(id.Origin, other.Origin); c != 0 {
		return c
	}
	if c := cmp.Compare(id.Generation, other.Generation); c != 0 {
		return c
	}
	return cmp.Compare(id.Seq, other.Seq)
}

// ParseID reads the text of a job id. It accepts only what [ID.String]
// writes, so that a job has one name. The error wraps [ErrBadID].
func ParseID(s string) (ID, error) {
	bad := func() (ID, error) { return ID{}, fmt.Errorf("job id %q: %w", clip(s), ErrBadID) }
	rest, seqText, ok := cutLast(s, '.')
	if !ok {
		return bad()
	}
	siteText, generationText, ok := cutLast(rest, '.')
	if !ok {
		return bad()
	}
	site, err := ParseSiteID(siteText)
	if err != nil {
		return bad()
	}
	generation, err := strconv.ParseUint(generationText, 36, 32)
	if err != nil {
		return bad()
	}
	seq, err := strconv.ParseUint(seqText, 10, 64)
	if err != nil {
		return bad()
	}
	id := ID{Origin: site, Generation: uint32(generation), Seq: seq}
	if id.String() != s {
		return bad()
	}
	return id, nil
}

// AttemptID names one attempt of a job, and with it each of its copies: a site
// holds at most one copy of an attempt. Number counts from 1 and is the
// fencing token: it rides on every message about the job, and what carries an
// older number is refused.
type AttemptID struct {
	Job    ID
	Number uint32
}

// String returns the attempt as text: the job's id, '#' and the number.
func (a AttemptID) String() string {
	b := make([]byte, 0, len(a.Job.Origin)+30)
	b = append(a.Job.Append(b), '#')
	return string(strconv.AppendUint(b, uint64(a.Number), 10))
}

// HashParts returns what hash tables need to know of a.
func (a AttemptID) HashParts() (text string, x, y uint64) {
	return string(a.Job.Origin), a.Job.Seq, uint64(a.Job.Generation)<<32 | uint64(a.Number)
}

// Compare orders attempts by job id, then by number.
func (a AttemptID) Compare(b AttemptID) int {
	if c := a.Job.Compare(b.Job); c != 0 {
		return c
	}
	return cmp.Compare(a.Number, b.Number)
}

// ParseAttemptID reads what [AttemptID.String] writes. The error wraps [ErrBadID].
func ParseAttemptID(s string) (AttemptID, error) {
	text, numberText, ok := cutLast(s, '#')
	if !ok {
		return AttemptID{}, fmt.Errorf("attempt %q: %w", clip(s), ErrBadID)
	}
	id, err := ParseID(text)
	if err != nil {
		return AttemptID{}, err
	}
	number, err := strconv.ParseUint(numberText, 10, 32)
	a := AttemptID{Job: id, Number: uint32(number)}
	if err != nil || number == 0 || a.String() != s {
		return AttemptID{}, fmt.Errorf("attempt %q: %w", clip(s), ErrBadID)
	}
	return a, nil
}

// cutLast splits s around the last separator.
func cutLast(s string, sep byte) (before, after string, found bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// clip shortens a text from outside before it goes into an error.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
