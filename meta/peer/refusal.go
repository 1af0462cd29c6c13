package peer

import (
	"errors"

	"kith/internal/job"
	"kith/internal/places"
)

// Refusal is something of another site that was not taken.
type Refusal struct {
	What What
	// Rule is the bound or rule that it broke, in a word.
	Rule string
	// Site is that of the stream, and is empty as long as there is none; Address is then
	// where it came from.
	Site    job.SiteID
	Address string
	// Claimed is the name that a refused hello had, if it is one.
	Claimed job.SiteID
	Err     error
}

// What says what was not taken.
type What string

// What may be refused.
const (
	WhatHello   What = "hello"   // of a site that dialled here, or answered here
	WhatStream  What = "stream"  // one without a hello, or whose site does not keep up
	WhatMessage What = "message" // one that makes no sense or breaks a bound
	WhatLoad    What = "load"    // one that no site can have
	WhatRate    What = "rate"    // more in a second than is taken; Rule is the class
)

// rules are the words for why.
var rules = []struct {
	err  error
	word string
}{
	{ErrNotAdmitted, "not-admitted"}, {ErrOtherSite, "other-site"}, {ErrProtocol, "protocol"}, {job.ErrBadSiteID, "site-name"},
	{ErrClash, "two-daemons"}, {ErrBehind, "old-folder"}, {ErrFolder, "two-folders"}, {ErrNoHello, "hello-in-time"},
	{ErrManyWaiting, "streams-without-hello"}, {ErrSlow, "keep-up"}, {ErrBundle, "bad-bundle"},
	{ErrForeignBundle, "foreign-bundle"}, {ErrUnprovenBundle, "unproven-bundle"}, {ErrMessage, "message"},
}

// tellRefusal tells of a refusal, see [Config.Refused].
func (l *Links) tellRefusal(r Refusal) {
	if l.cfg.Refused == nil {
		return
	}
	for _, rule := range rules {
		if r.Rule == "" && errors.Is(r.Err, rule.err) {
			r.Rule = rule.word
		}
	}
	if r.Site == "" {
		r.Address = places.Sender(r.Address)
	}
	l.cfg.Refused(r)
}
