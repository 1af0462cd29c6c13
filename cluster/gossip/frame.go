package gossip

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Bounds of a lane.
const (
	// maxPacket is the longest packet, in bytes.
	maxPacket = 1464
	// maxPiece is the longest piece of a message, in bytes.
	maxPiece = 16 << 10
	// maxMessage is the longest request or reply, in bytes.
	maxMessage = 1 << 20
	// maxExchanges are the requests of one side that are under way at a time.
	maxExchanges = 2
	// framesPerSecond is how many frames of a site are taken in a second, and how many may come
	// together; its lanes are read more slowly beyond that. Honest sites send a few dozen.
	framesPerSecond = 1000
)

// kind is what a frame carries. The numbers are sent; they are frozen.
type kind uint8

const (
	idle        kind = 0 // nothing: a sign of life
	packet      kind = 1 // a whole packet
	request     kind = 2 // a piece of a request
	lastRequest kind = 3 // and its end
	reply       kind = 4 // a piece of the reply
	lastReply   kind = 5 // and its end
	refuse      kind = 6 // to a request: there will be no reply
)

// frame is the unit of a lane: a byte for the kind, four for the number of the
// exchange, two for the length, and so many bytes.
type frame struct {
	kind kind
	// exchange numbers the requests of the side that asks; 0 in idle and packet.
	exchange uint32
	data     []byte
}

const headerBytes = 7

// errFrame is returned for bytes that are not a frame. The lane ends.
var errFrame = errors.New("not a frame of a gossip lane")

// mostData returns how much a frame of a kind may carry, -1 if there is no such kind.
func mostData(k kind) int {
	switch k {
	case idle, refuse:
		return 0
	case packet:
		return maxPacket
	case request, lastRequest, reply, lastReply:
		return maxPiece
	}
	return -1
}

// appendFrame appends the encoding of a frame within its bounds.
func appendFrame(b []byte, f frame) []byte {
	b = append(b, byte(f.kind))
	b = binary.BigEndian.AppendUint32(b, f.exchange)
	b = binary.BigEndian.AppendUint16(b, uint16(len(f.data)))
	return append(b, f.data...)
}

// readFrame reads one frame. What it says is checked before any of its bytes are
// read. The data is the caller's.
func readFrame(r *bufio.Reader) (frame, error) {
	var h [headerBytes]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: kind(h[0]), exchange: binary.BigEndian.Uint32(h[1:5])}
	n, most := int(binary.BigEndian.Uint16(h[5:])), mostData(f.kind)
	switch {
	case most < 0:
		return frame{}, fmt.Errorf("%w: kind %d, must be 0 to %d", errFrame, f.kind, refuse)
	case n > most:
		return frame{}, fmt.Errorf("%w: %d bytes in a frame of kind %d, at most %d", errFrame, n, f.kind, most)
	case (f.kind == idle || f.kind == packet) && f.exchange != 0:
		return frame{}, fmt.Errorf("%w: exchange %d in a frame of kind %d, must be 0", errFrame, f.exchange, f.kind)
	}
	if n == 0 {
		return f, nil
	}
	f.data = make([]byte, n)
	_, err := io.ReadFull(r, f.data)
	return f, err
}
