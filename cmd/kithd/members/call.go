package members

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// version is that of this protocol.
const version = 1

// callTime is how long a call and its answer may take.
const callTime = 5 * time.Second

// Purpose is what a connection between members is for.
type Purpose byte

// Purposes.
const (
	// ForPort is a connection that came in at the port of a member: its bytes follow.
	ForPort Purpose = 1
	// ForSocket is one that came in at the unix socket of a member's machine.
	ForSocket Purpose = 2
	// ForChunks is for requests about chunks.
	ForChunks Purpose = 3
	// ForWork is for driving the machine that has the processors of the site: gRPC, WorkService.
	ForWork Purpose = 4
)

// Errors of calls.
var (
	// ErrNotLeading is returned when what is for the leader came to another member.
	ErrNotLeading = errors.New("the member that was called does not lead")
	// ErrRefused is returned when a member refuses a call otherwise.
	ErrRefused = errors.New("refused by the member that was called")
)

// maxText bounds a text of a call, in bytes.
const maxText = 255

// Call is what the side says that has dialled.
type Call struct {
	Purpose Purpose
	// Cluster is the id of the members of the site.
	Cluster [16]byte
	// From is where the client is that it is for: host:port, or the name of its account.
	From string
	// UID is that of a client at a unix socket.
	UID uint32
}

func (c *Call) marshal() []byte {
	b := append([]byte{version, byte(c.Purpose)}, c.Cluster[:]...)
	b = binary.BigEndian.AppendUint32(b, c.UID)
	from := c.From[:min(len(c.From), maxText)]
	return append(append(b, byte(len(from))), from...)
}

// ReadCall reads what the other side says first. The connection has callTime for it.
func ReadCall(conn net.Conn) (c Call, err error) {
	if err := conn.SetDeadline(time.Now().Add(callTime)); err != nil {
		return c, err
	}
	head := make([]byte, 2+len(c.Cluster)+5)
	if _, err := io.ReadFull(conn, head); err != nil {
		return c, err
	}
	if head[0] != version {
		return c, fmt.Errorf("it speaks version %d, this member %d: %w", head[0], version, ErrRefused)
	}
	c.Purpose = Purpose(head[1])
	copy(c.Cluster[:], head[2:])
	c.UID = binary.BigEndian.Uint32(head[len(head)-5:])
	from := make([]byte, head[len(head)-1])
	if _, err := io.ReadFull(conn, from); err != nil {
		return c, err
	}
	c.From = string(from)
	return c, nil
}

// Answer answers a call: refusal is nil if it is taken, which ends the time that it had.
func Answer(conn net.Conn, refusal error) error {
	b := []byte{0, 0}
	if refusal != nil {
		b[0] = 1
		if errors.Is(refusal, ErrNotLeading) {
			b[0] = 2
		}
		text := refusal.Error()
		text = text[:min(len(text), maxText)]
		b = append([]byte{b[0], byte(len(text))}, text...)
	}
	if _, err := conn.Write(b); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// Begin says a call on a connection that was dialled, and hears the answer. The connection
// stays open after an error.
func Begin(conn net.Conn, c Call) error {
	if err := conn.SetDeadline(time.Now().Add(callTime)); err != nil {
		return err
	}
	if _, err := conn.Write(c.marshal()); err != nil {
		return err
	}
	var head [2]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	text := make([]byte, head[1])
	if _, err := io.ReadFull(conn, text); err != nil {
		return err
	}
	switch head[0] {
	case 0:
		return conn.SetDeadline(time.Time{})
	case 2:
		return fmt.Errorf("%w: %s", ErrNotLeading, text)
	}
	return fmt.Errorf("%w: %s", ErrRefused, text)
}

// Join carries the bytes of two connections to each other until one ends, and closes both.
func Join(a, b net.Conn) {
	done := make(chan struct{}, 2)
	carry := func(to, from net.Conn) {
		io.Copy(to, from) //nolint:errcheck // either way it is over
		done <- struct{}{}
	}
	go carry(a, b)
	go carry(b, a)
	<-done
	a.Close() //nolint:errcheck // it is over
	b.Close() //nolint:errcheck // it is over
	<-done
}
