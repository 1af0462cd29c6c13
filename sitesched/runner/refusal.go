package runner

import (
	"errors"

	"kith/internal/job"
	"kith/meta/transfer"
)

// Refusal is something of another site that was not taken, or not given, and that an
// honest site does not ask for.
type Refusal struct {
	Site job.SiteID
	What What
	// Rule is what it broke, in a word.
	Rule string
	Err  error
}

// What says what was refused.
type What string

// What may be refused.
const (
	WhatFile   What = "file"   // a piece of a file that the site asked for
	WhatInputs What = "inputs" // what came with a grant of the site, or is to be brought from it
	WhatResult What = "result" // what the site says of the end of an attempt; the rest of it counts
)

// rules are the words for why.
var rules = []struct {
	err  error
	word string
}{
	{transfer.ErrDenied, "no-right"}, {transfer.ErrBadReply, "wrong-bytes"}, {transfer.ErrTooLarge, "too-large"}, {transfer.ErrTooMany, "too-many"},
	{transfer.ErrBadSet, "bad-set"}, {transfer.ErrBadPath, "bad-set"}, {errPayload, "not-the-request"},
	{errUndeclared, "not-declared"}, {errList, "bad-set"}, {errTimes, "impossible-times"}, {errFigures, "impossible-figures"},
}

// Reasons why not all of a result is taken.
var (
	errUndeclared = errors.New("files that the job does not declare")
	errList       = errors.New("the list of its files is not valid")
	errTimes      = errors.New("its times cannot be true")
	errFigures    = errors.New("its figures are out of bounds")
)

// refuse tells of a refusal, and reports whether it was one that is told.
func (f *Files) refuse(site job.SiteID, what What, err error) bool {
	for _, rule := range rules {
		if errors.Is(err, rule.err) {
			if f.cfg.Refused != nil {
				f.cfg.Refused(Refusal{site, what, rule.word, err})
			}
			return true
		}
	}
	return false
}
