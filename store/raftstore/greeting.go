package raftstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"kith/internal/job"
	"kith/store"
	"kith/store/raftstore/raftlog"
)

// A connection begins with a greeting of who dialled, and an answer. Both have a version of their
// own; one side refuses another version by name.
const (
	greetingMagic   = "kithraft"
	greetingVersion = 1
	// greetingTime is how long a greeting and its answer may take.
	greetingTime = 5 * time.Second
)

// What a connection is for.
const (
	forRaft = 1 // the library's protocol follows
	forAsk  = 2 // how far is this member? The answer ends the connection.
)

// Answers to a greeting.
const (
	welcome      = 0
	otherVersion = 1
	otherSite    = 2
	otherCluster = 3
	otherMember  = 4
)

// ErrRefused is returned when another member refuses a connection or says that it is another one.
var ErrRefused = errors.New("refused by the member that was dialled")

// greeting is what the side says that dials.
type greeting struct {
	purpose  byte
	from, to string // members
	whose    snapshotHead
}

func (g *greeting) marshal() []byte {
	b := append([]byte(greetingMagic), greetingVersion, g.purpose)
	b = append(b, g.whose.cluster[:]...)
	for _, s := range []string{string(g.whose.site), g.from, g.to} {
		b = append(append(b, byte(len(s))), s...)
	}
	return b
}

// readGreeting reads a greeting of the version that is known. Of another one it reads the version.
func readGreeting(from io.Reader) (g greeting, version byte, err error) {
	head := make([]byte, len(greetingMagic)+1)
	if _, err := io.ReadFull(from, head); err != nil {
		return g, 0, err
	}
	if string(head[:len(greetingMagic)]) != greetingMagic {
		return g, 0, fmt.Errorf("it begins with %q: %w", head, store.ErrCorrupt)
	}
	if version = head[len(greetingMagic)]; version != greetingVersion {
		return g, version, nil
	}
	rest := make([]byte, 1+len(g.whose.cluster))
	if _, err := io.ReadFull(from, rest); err != nil {
		return g, version, err
	}
	g.purpose = rest[0]
	copy(g.whose.cluster[:], rest[1:])
	var texts [3]string
	for i := range texts {
		if texts[i], err = readText(from); err != nil {
			return g, version, err
		}
	}
	g.whose.site, g.from, g.to = job.SiteID(texts[0]), texts[1], texts[2]
	return g, version, nil
}

// readText reads a text of at most 255 bytes.
func readText(from io.Reader) (string, error) {
	var length [1]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return "", err
	}
	b := make([]byte, length[0])
	_, err := io.ReadFull(from, b)
	return string(b), err
}

// nothing is the text of a welcome by a member that has nothing of its site.
const nothing = "this member has nothing of its site yet"

// answer is what the other side says: its version, a code, a text for people, and how far it is.
type answer struct {
	version, code byte
	text          string
	applied       uint64
}

func (a *answer) marshal() []byte {
	text := a.text[:min(len(a.text), 255)]
	b := []byte{greetingVersion, a.code, byte(len(text))}
	return binary.BigEndian.AppendUint64(append(b, text...), a.applied)
}

func readAnswer(from io.Reader) (a answer, err error) {
	var head [2]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return a, err
	}
	a.version, a.code = head[0], head[1]
	if a.text, err = readText(from); err != nil {
		return a, err
	}
	var applied [8]byte
	_, err = io.ReadFull(from, applied[:])
	a.applied = binary.BigEndian.Uint64(applied[:])
	return a, err
}

// judge says what is answered to a greeting at the member of that name.
func (g *greeting) judge(version byte, whose snapshotHead, name string) answer {
	switch {
	case version != greetingVersion:
		return answer{code: otherVersion, text: fmt.Sprintf("member %s speaks version %d, not %d", name, greetingVersion, version)}
	case g.whose.site != whose.site:
		return answer{code: otherSite, text: fmt.Sprintf("member %s is of site %s, not of %s", name, whose.site, g.whose.site)}
	case g.whose.cluster != whose.cluster:
		return answer{code: otherCluster, text: fmt.Sprintf("member %s is of cluster %x, not of %x", name, whose.cluster, g.whose.cluster)}
	case g.to != name:
		return answer{code: otherMember, text: fmt.Sprintf("this is member %s, not %s", name, g.to)}
	}
	return answer{code: welcome}
}

// err returns why a connection was refused, nil if it was not.
func (a *answer) err() error {
	reason := map[byte]error{otherVersion: store.ErrNewerFormat, otherSite: store.ErrOtherSite, otherCluster: raftlog.ErrOtherCluster, otherMember: raftlog.ErrOtherMember}[a.code]
	switch {
	case a.code == welcome:
		return nil
	case reason == nil:
		return fmt.Errorf("%w: %q", ErrRefused, a.text)
	}
	return fmt.Errorf("%w: %s: %w", ErrRefused, a.text, reason)
}

// greet says g on a connection that was dialled, and hears the answer. It closes the connection
// if that is a refusal.
func greet(conn net.Conn, g greeting) (answer, error) {
	err := conn.SetDeadline(time.Now().Add(greetingTime))
	var a answer
	if err == nil {
		_, err = conn.Write(g.marshal())
	}
	if err == nil {
		a, err = readAnswer(conn)
	}
	if err == nil {
		err = a.err()
	}
	if err == nil && g.purpose == forRaft { // after any other the connection is over
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		conn.Close() //nolint:errcheck // there is an error already
		return a, fmt.Errorf("member %s: %w", g.to, err)
	}
	return a, nil
}
