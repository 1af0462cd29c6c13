package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Entry is something to be written down. Texts are clipped to their bounds.
type Entry struct {
	// Kind says in a word what was done or refused, like "drain" or "refused-hello".
	Kind string
	// Rule names the rule that decided, if one did.
	Rule string
	// Peer is the site that the entry is about, proved or admitted; From the address
	// of somebody of whom no more is known.
	Peer, From string
	// User is who did it or asked for it, Job the job that it is about.
	User, Job string
	// Text is for people.
	Text string

	peerHead *Head // what Peer told, of lines that Hear writes
}

// Bounds of the texts of an entry, in bytes of JSON.
const (
	mostKind = 32
	mostRule = 64
	mostName = 64
	mostUser = 128
	mostText = 256
)

// Bounds of lines, in bytes without the line break.
const (
	mostLine     = 1 << 10
	mostHeadLine = 8 << 10
)

// Kinds of lines that the log writes about itself.
const (
	KindOpened  = "log-opened"
	KindClosed  = "log-closed"
	KindCut     = "log-cut"
	KindDamaged = "log-damaged"
	KindLost    = "log-lost"
	KindRemoved = "log-removed"
	KindHead    = "head"
	// What other sites tell of their logs, see Log.Hear.
	KindPeerHead     = "peer-head"
	KindPeerHeadBack = "peer-head-back"
	KindPeerHeadFork = "peer-head-fork"
	// KindAdmit is what callers write when a site is admitted, with its name as the peer.
	KindAdmit = "admit"
)

// Hash is a SHA-256. In JSON it is hexadecimal.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != 2*len(h) {
		return fmt.Errorf("a hash has %d hexadecimal digits, not %d", 2*len(h), len(text))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// Line is a line of the log.
type Line struct {
	Number uint64    `json:"n"`
	Time   time.Time `json:"time"`
	Kind   string    `json:"kind"`
	Rule   string    `json:"rule,omitempty"`
	Peer   string    `json:"peer,omitempty"`
	From   string    `json:"from,omitempty"`
	User   string    `json:"user,omitempty"`
	Job    string    `json:"job,omitempty"`
	Text   string    `json:"text,omitempty"`
	// Count is how many refusals or lost entries the line stands for; 0 means itself.
	Count   uint64   `json:"count,omitempty"`
	Removed *Removal `json:"removed,omitempty"`
	Head    *Head    `json:"head,omitempty"`
	// PeerHead is what Peer told of its own log.
	PeerHead *Head `json:"peerHead,omitempty"`
	// Prev is the hash of the line before, without its line break; zero for line 1.
	Prev Hash `json:"prev"`
}

// Removal says that the lines up to Last are no longer there. Hash is that of line Last.
type Removal struct {
	Last uint64 `json:"last"`
	Hash Hash   `json:"sha256"`
}

// ErrLine is returned for a line that is none of an audit log.
var ErrLine = errors.New("is no line of an audit log")

// encode returns the line without a line break.
func (l *Line) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(l); err != nil {
		return nil, fmt.Errorf("audit line %d: %w", l.Number, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// parse reads a line without its line break. Fields of later versions are let pass.
func parse(text []byte) (*Line, error) {
	var l Line
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrLine, clip(err.Error(), mostText))
	}
	if l.Number == 0 || l.Kind == "" {
		return nil, fmt.Errorf("%w: it has no number or no kind", ErrLine)
	}
	return &l, nil
}

// line makes a line of an entry; number and hash are not set yet.
func (e Entry) line(at time.Time, count uint64) *Line {
	e = e.clipped()
	return &Line{
		Time: at.UTC(), Kind: e.Kind, Rule: e.Rule, Peer: e.Peer, From: e.From, User: e.User, Job: e.Job, Text: e.Text, Count: count, PeerHead: e.peerHead,
	}
}

func (e Entry) clipped() Entry {
	return Entry{
		Kind: clip(e.Kind, mostKind), Rule: clip(e.Rule, mostRule), Peer: clip(e.Peer, mostName), From: clip(e.From, mostName),
		User: clip(e.User, mostUser), Job: clip(e.Job, mostName), Text: clip(e.Text, mostText), peerHead: e.peerHead,
	}
}

// named is clipped but for the texts by which refusals are not told apart: of most of those
// nothing is written, and line clips the others. It keeps a bounded part of them.
func (e Entry) named() Entry {
	part := func(text string, most int) string {
		if len(text) <= 2*most {
			return text
		}
		return strings.Clone(text[:2*most])
	}
	e.Kind, e.Rule, e.Peer, e.From = clip(e.Kind, mostKind), clip(e.Rule, mostRule), clip(e.Peer, mostName), clip(e.From, mostName)
	e.User, e.Job, e.Text = part(e.User, mostUser), part(e.Job, mostName), part(e.Text, mostText)
	return e
}

// clip returns a text that prints on one line and takes at most so many bytes in JSON.
// What does not print becomes an escape sequence.
func clip(text string, most int) string {
	if len(text) <= most && plain(text) { // floods of refusals come here
		return text
	}
	const mark = "…"
	var b strings.Builder
	size, whole := 0, 0 // whole is how much is kept if the mark must follow
	for i, r := range text {
		piece := string(r)
		switch {
		case r == utf8.RuneError:
			piece = `\x` + hex.EncodeToString([]byte{text[i]})
			if strings.HasPrefix(text[i:], "\uFFFD") {
				piece = "\uFFFD"
			}
		case !unicode.IsPrint(r) && r < 0x100:
			piece = fmt.Sprintf(`\x%02x`, r)
		case !unicode.IsPrint(r):
			piece = fmt.Sprintf(`\u%04x`, r)
		}
		n := len(piece) + strings.Count(piece, `\`) + strings.Count(piece, `"`)
		if size+n > most {
			return b.String()[:whole] + mark
		}
		size += n
		b.WriteString(piece)
		if size+len(mark) <= most {
			whole = b.Len()
		}
	}
	return b.String()
}

// plain reports whether a text is of printable ASCII that JSON has as it is.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
