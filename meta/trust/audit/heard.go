package audit

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"time"

	"kith/internal/job"
)

// Errors of [Log.Hear].
var (
	// ErrHeadBack is returned for a head of an earlier line than one that the site has told.
	ErrHeadBack = errors.New("lines that the site told of are gone: it has rewritten its log, or lost it")
	// ErrHeadFork is returned for a head of the same line with another hash.
	ErrHeadFork = errors.New("another line than the site told of: it has rewritten its log, or has two")
)

// heardEvery is how often at most a head of a site that goes on from the last one is
// written down: an honest site tells one an hour.
const heardEvery = 30 * time.Minute

// Told is what a site has told of its audit log.
type Told struct {
	// Head is the newest.
	Head Head
	// Broken is one that the site had told before, and that one it told later cannot have
	// come after; nil if there is none. Of several it is that of the highest line.
	Broken *Head

	written time.Time // when a line had Head or one before it; zero if none had
	kept    bool      // a line has Head
}

// heard is the newest head of each site. It lives in memory, and in the lines of this
// log, from where it is read when the log is opened: these cannot be changed unseen, and
// keep the heads of before, too, which are needed to find a log that was rewritten and has
// grown beyond the old end since. Sites are those that the operator admitted; what is
// beyond mostPeers of them is not kept.
type heard struct {
	mu sync.Mutex
	of map[job.SiteID]*Told
}

// take makes h the newest head of its site, and says how that goes with what was told
// before: [ErrHeadBack], [ErrHeadFork] or nil. before is the head that it takes the place
// of. News is false for what was told already.
func (k *heard) take(h *Head) (before *Head, news bool, err error) {
	site := job.SiteID(h.Site)
	t := k.of[site]
	if t == nil {
		if len(k.of) >= mostPeers {
			return nil, false, nil
		}
		if k.of == nil {
			k.of = make(map[job.SiteID]*Told)
		}
		k.of[site] = &Told{Head: *h}
		return nil, true, nil
	}
	old := t.Head
	switch { // what a site tells goes on from what it told
	case h.Number < old.Number:
		err = ErrHeadBack
	case h.Number > old.Number:
	case h.Hash == old.Hash:
		return nil, false, nil
	default:
		err = ErrHeadFork
	}
	t.Head, t.kept = *h, false
	if err != nil && (t.Broken == nil || t.Broken.Number < old.Number) {
		t.Broken = &old
	}
	return &old, true, err
}

// restore reads what sites have told from the lines of the log.
func (k *heard) restore(dir string) error {
	words := [][]byte{[]byte(`"peerHead":{`), []byte(`"kind":"` + KindAdmit + `"`)}
	_, err := readWith(dir, words, func(l *Line) bool {
		switch {
		case l.Kind == KindAdmit:
			delete(k.of, job.SiteID(l.Peer))
		case l.PeerHead == nil || l.PeerHead.Site != l.Peer:
		default:
			k.take(l.PeerHead) //nolint:errcheck // the log says it already
			if t := k.of[job.SiteID(l.Peer)]; t != nil {
				t.written, t.kept = l.Time, true
			}
		}
		return true
	})
	return err
}

// Hear takes up a head that another site has told, whose signature the caller has checked.
// It does not wait. An error wraps [ErrHeadBack] or [ErrHeadFork]: the site has told a
// head that this one cannot have come after. The log gets a line of that, counted as
// refusals are, and at most every half hour one with a head that is as it should be.
func (l *Log) Hear(h Head) error {
	if h.size() > mostSigned {
		h.Signature, h.Chain = nil, nil // number and hash are what is compared
	}
	now := l.cfg.Now()
	k := &l.heard
	k.mu.Lock()
	defer k.mu.Unlock()
	var was Told
	if t := k.of[job.SiteID(h.Site)]; t != nil {
		was = *t
	}
	before, news, err := k.take(&h)
	if !news {
		return nil
	}
	t := k.of[job.SiteID(h.Site)]
	if err == nil {
		if now.Sub(t.written) >= heardEvery {
			l.Record(headEntry(KindPeerHead, &h, ""))
			t.written, t.kept = now, true
		}
		return nil
	}
	if was.Broken == nil && !was.kept { // the proof; once, as a site may go back and forth
		l.Record(headEntry(KindPeerHead, before, ""))
	}
	kind := KindPeerHeadFork
	if errors.Is(err, ErrHeadBack) {
		kind = KindPeerHeadBack
	}
	l.Refuse(headEntry(kind, &h, fmt.Sprintf(" after %v", before)))
	return fmt.Errorf("site %s told %v after %v: %w", h.Site, &h, before, err)
}

func headEntry(kind string, h *Head, more string) Entry {
	return Entry{Kind: kind, Peer: h.Site, Text: h.String() + more, peerHead: h}
}

// Admitted forgets what a site told that is admitted anew. The caller has written a line
// of [KindAdmit] about it, or will.
func (l *Log) Admitted(site job.SiteID) {
	l.heard.mu.Lock()
	defer l.heard.mu.Unlock()
	delete(l.heard.of, site)
}

// Told returns what a site has told of its audit log, false if nothing.
func (l *Log) Told(site job.SiteID) (Told, bool) {
	l.heard.mu.Lock()
	defer l.heard.mu.Unlock()
	if t := l.heard.of[site]; t != nil {
		return *t, true
	}
	return Told{}, false
}

// hasAny reports whether a line has one of the words, or there are none.
func hasAny(text []byte, words [][]byte) bool {
	for _, w := range words {
		if bytes.Contains(text, w) {
			return true
		}
	}
	return len(words) == 0
}
