package audit

import (
	"cmp"
	"slices"
	"time"
)

// Bounds of what is known of refusals. Sites that were admitted are as many as the
// operator lets in; addresses of strangers are as many as strangers like, so there are
// few places for them, and the rest is counted together. A place is free again after a
// minute without a refusal, so that all strangers write about two lines a second.
const (
	mostPeers     = 4096
	mostStrangers = 64
	refusalEvery  = time.Minute
	// others stands in a line for addresses that have no place of their own.
	others = "others"
)

// source is whose refusals are counted together.
type source struct{ kind, rule, peer, from string }

func (s source) stranger() bool { return s.peer == "" && s.from != others }

// counted is an entry and for how many it stands.
type counted struct {
	Entry
	count uint64
}

// tally is what is known of the refusals of a source.
type tally struct {
	last  Entry
	count uint64    // since the last line
	due   time.Time // when the next line is
	order uint64
}

// refusals counts. It reads no clock and is used by one goroutine at a time.
type refusals struct {
	of        map[source]*tally
	strangers int
	next      uint64 // order of the next tally
}

// add counts a refusal. It returns true, and what to write, if a line is to be written at
// once: it is the first of its source, or of many others.
func (r *refusals) add(now time.Time, e Entry) (Entry, bool) {
	e = e.named()
	from := source{e.Kind, e.Rule, e.Peer, e.From}
	if t := r.of[from]; t != nil {
		t.last = e
		t.count++
		return Entry{}, false
	}
	stranger := from.stranger()
	if stranger && r.strangers >= mostStrangers || !stranger && len(r.of)-r.strangers >= mostPeers {
		return r.addOther(now, from, e)
	}
	r.begin(now, from, e)
	return e, true
}

func (r *refusals) begin(now time.Time, from source, e Entry) {
	if r.of == nil {
		r.of = make(map[source]*tally)
	}
	r.next++
	r.of[from] = &tally{last: e, due: now.Add(refusalEvery), order: r.next}
	if from.stranger() {
		r.strangers++
	}
}

// addOther counts a refusal of a source that has no place.
func (r *refusals) addOther(now time.Time, from source, e Entry) (Entry, bool) {
	from.peer, from.from = "", others
	e.Peer, e.From, e.User, e.Job = "", others, "", ""
	if t := r.of[from]; t != nil {
		t.last = e
		t.count++
		return Entry{}, false
	}
	if len(r.of) >= mostPeers+mostStrangers+mostKinds {
		return Entry{}, false // kinds and rules are words of the program; there are not so many
	}
	r.begin(now, from, e)
	return e, true
}

// mostKinds bounds the tallies of others.
const mostKinds = 256

// due returns the lines that are to be written by now, all that were counted if last.
// A source of which nothing came for as long as that is forgotten.
func (r *refusals) due(now time.Time, last bool) []counted {
	type dueTally struct {
		source
		*tally
	}
	var ready []dueTally
	for s, t := range r.of {
		if last || !now.Before(t.due) {
			ready = append(ready, dueTally{s, t})
		}
	}
	slices.SortFunc(ready, func(a, b dueTally) int { return cmp.Compare(a.order, b.order) })
	var lines []counted
	for _, d := range ready {
		if d.count > 0 {
			lines = append(lines, counted{d.last, d.count})
			d.count, d.due = 0, now.Add(refusalEvery)
			continue
		}
		delete(r.of, d.source)
		if d.stranger() {
			r.strangers--
		}
	}
	return lines
}

// wake returns when due has something to do, the zero time if nothing is known.
func (r *refusals) wake() time.Time {
	var first time.Time
	for _, t := range r.of {
		if first.IsZero() || t.due.Before(first) {
			first = t.due
		}
	}
	return first
}
