package gossip

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"kith/cluster"
	"kith/internal/job"
)

// Kinds of memberlist's messages, from its net.go. The numbers are its protocol.
const (
	mlPing         = 0
	mlIndirectPing = 1
	mlAck          = 2
	mlSuspect      = 3
	mlAlive        = 4
	mlDead         = 5
	mlPushPull     = 6
	mlCompound     = 7
	mlUser         = 8
	mlNack         = 11
	mlCRC          = 12
	mlError        = 13
)

// The messages of memberlist, as in its net.go, field by field. Each is decoded and
// encoded anew, so that memberlist reads what was looked at here.
type (
	mlPingBody struct {
		SeqNo      uint32
		Node       string
		SourceAddr []byte `codec:",omitempty"`
		SourcePort uint16 `codec:",omitempty"`
		SourceNode string `codec:",omitempty"`
	}
	mlIndirectBody struct {
		SeqNo      uint32
		Target     []byte
		Port       uint16
		Node       string
		Nack       bool
		SourceAddr []byte `codec:",omitempty"`
		SourcePort uint16 `codec:",omitempty"`
		SourceNode string `codec:",omitempty"`
	}
	mlAckBody struct {
		SeqNo   uint32
		Payload []byte
	}
	mlNackBody    struct{ SeqNo uint32 }
	mlErrorBody   struct{ Error string }
	mlSuspectBody struct { // and dead
		Incarnation uint32
		Node        string
		From        string
	}
	mlAliveBody struct {
		Incarnation uint32
		Node        string
		Addr        []byte
		Port        uint16
		Meta        []byte
		Vsn         []uint8
	}
)

// mlHeader heads a push/pull.
type mlHeader struct {
	Nodes        int
	UserStateLen int
	Join         bool
}

// mlState is a node in a push/pull.
type mlState struct {
	Name        string
	Addr        []byte
	Port        uint16
	Meta        []byte
	Incarnation uint32
	State       int
	Vsn         []uint8
}

// mostIncarnation bounds the incarnations of memberlist, which wrap at 2^32: a
// member that accused this one of the highest could not be answered.
const mostIncarnation = 1 << 24

// everywhere is the address that every member has: a documentation address, which no
// network routes. Members are reached by name.
var everywhere = net.IPv4(192, 0, 2, 1).To4()

const everywherePort = 1

// errGuard is wrapped by the error about a message that no member sends.
var errGuard = errors.New("gossip message refused")

// guard decides what of memberlist's messages goes from one site to another: what the
// sender says about itself, and what the receiver is to answer for. What a member
// says about a third is left out at both ends: an honest one does not send it, and a
// hostile one is not heard.
type guard struct {
	from, to job.SiteID
	// alive is set when a message says that the sender is alive.
	alive []byte
	// accused says that a message puts the receiver's life in doubt.
	accused bool
	// refused counts what was left out; why is the error about the whole, if it was.
	refused int
	why     error
	// takes says that the notes in the message go to notes and state instead of to
	// memberlist, which would not say whom they came from.
	takes bool
	notes [][]byte
	state []byte
}

// keeps reports whether something about a member may pass.
func (g *guard) keeps(about string) bool {
	return about == string(g.from) || about == string(g.to)
}

// packet returns what of a packet may pass, nil if nothing.
func (g *guard) packet(b []byte) []byte {
	if len(b) >= 5 && b[0] == mlCRC {
		if crc32.ChecksumIEEE(b[5:]) != binary.BigEndian.Uint32(b[1:5]) {
			g.refused++
			return nil
		}
		b = b[5:]
	}
	if len(b) == 0 {
		return nil
	}
	parts, ok := [][]byte{b}, true
	if b[0] == mlCompound {
		parts, ok = compoundParts(b[1:])
	}
	if !ok {
		g.refused++
		return nil
	}
	kept := parts[:0]
	for _, p := range parts {
		if g.takes && len(p) > 0 && p[0] == mlUser {
			g.notes = append(g.notes, p[1:])
		} else if p = g.passes(p); p != nil {
			kept = append(kept, p)
		}
	}
	switch len(kept) {
	case 0:
		return nil
	case 1:
		return kept[0]
	}
	return compound(kept)
}

// compoundParts takes apart a compound message: a byte for how many, two for the length
// of each, then all of them.
func compoundParts(b []byte) (parts [][]byte, ok bool) {
	if len(b) < 1 || len(b) < 1+2*int(b[0]) {
		return nil, false
	}
	n := int(b[0])
	lengths, rest := b[1:1+2*n], b[1+2*n:]
	for i := range n {
		length := int(binary.BigEndian.Uint16(lengths[2*i:]))
		if length > len(rest) {
			return nil, false
		}
		parts, rest = append(parts, rest[:length:length]), rest[length:]
	}
	return parts, len(rest) == 0
}

func compound(parts [][]byte) []byte {
	b := []byte{mlCompound, byte(len(parts))}
	for _, p := range parts {
		b = binary.BigEndian.AppendUint16(b, uint16(len(p)))
	}
	return append(b, bytes.Join(parts, nil)...)
}

// passes decides about one message, and returns it as it may pass, nil if it may not.
func (g *guard) passes(b []byte) []byte {
	if len(b) > 0 {
		if b = g.allowed(b); b != nil {
			return b
		}
	}
	g.refused++
	return nil
}

func (g *guard) allowed(b []byte) []byte {
	switch b[0] {
	case mlUser:
		return b
	case mlPing:
		var m mlPingBody
		return remade(b, &m, func() bool { return m.SourceNode == string(g.from) && m.Node == string(g.to) })
	case mlIndirectPing:
		// Whom it is about is not asked here: a site pings those that it trusts.
		var m mlIndirectBody
		return remade(b, &m, func() bool { return m.SourceNode == string(g.from) })
	case mlAck:
		var m mlAckBody
		return remade(b, &m, func() bool { return len(m.Payload) == 0 })
	case mlNack:
		var m mlNackBody
		return remade(b, &m, func() bool { return true })
	case mlAlive:
		var m mlAliveBody
		b = remade(b, &m, func() bool { return g.keeps(m.Node) && m.Incarnation < mostIncarnation })
		if b != nil && m.Node == string(g.from) {
			g.alive = b
		}
		return b
	case mlSuspect, mlDead:
		// A member does not suspect itself; it says that it is dead when it leaves.
		var m mlSuspectBody
		return remade(b, &m, func() bool {
			own := m.Node == string(g.from) && b[0] == mlDead && m.From == m.Node
			if m.Incarnation >= mostIncarnation || !own && (m.Node != string(g.to) || m.From != string(g.from)) {
				return false
			}
			g.accused = g.accused || !own
			return true
		})
	}
	// Compressed, encrypted and labelled ones, compounds inside compounds, and what
	// belongs into an exchange.
	return nil
}

// remade decodes the message b into m, and returns it encoded anew if it is well made
// and ok agrees.
func remade(b []byte, m any, ok func() bool) []byte {
	if codec.NewDecoderBytes(b[1:], &codec.MsgpackHandle{}).Decode(m) != nil || !ok() {
		return nil
	}
	out := append(make([]byte, 0, len(b)+16), b[0])
	var body []byte
	if codec.NewEncoderBytes(&body, &codec.MsgpackHandle{}).Encode(m) != nil {
		return nil
	}
	return append(out, body...)
}

// message returns what of a message of an exchange may pass.
func (g *guard) message(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: empty", errGuard)
	}
	switch b[0] {
	case mlPushPull:
		return g.pushPull(b[1:])
	case mlPing, mlAck:
		if b = g.passes(b); b == nil {
			return nil, fmt.Errorf("%w: for or from another", errGuard)
		}
		return b, nil
	case mlError:
		var m mlErrorBody
		if b = remade(b, &m, func() bool { return len(m.Error) <= maxPacket }); b == nil {
			return nil, fmt.Errorf("%w: error that cannot be read", errGuard)
		}
		return b, nil
	}
	return nil, fmt.Errorf("%w: kind %d", errGuard, b[0])
}

// pushPull leaves in a push/pull the nodes that may pass.
func (g *guard) pushPull(b []byte) ([]byte, error) {
	handle := &codec.MsgpackHandle{}
	dec := codec.NewDecoderBytes(b, handle)
	var h mlHeader
	if err := dec.Decode(&h); err != nil {
		return nil, fmt.Errorf("%w: push/pull: %w", errGuard, err)
	}
	if h.Nodes < 0 || h.Nodes > cluster.MaxSites {
		return nil, fmt.Errorf("%w: push/pull of %d nodes, at most %d", errGuard, h.Nodes, cluster.MaxSites)
	}
	var kept []mlState
	for range h.Nodes {
		var s mlState
		if err := dec.Decode(&s); err != nil {
			return nil, fmt.Errorf("%w: push/pull: %w", errGuard, err)
		}
		if !g.keeps(s.Name) || s.Incarnation >= mostIncarnation || len(kept) >= 2 {
			g.refused++
			continue
		}
		if s.Name == string(g.to) && s.State != 0 {
			g.accused = true
		}
		kept = append(kept, s)
	}
	user := b[dec.NumBytesRead():]
	if h.UserStateLen != len(user) {
		return nil, fmt.Errorf("%w: push/pull with %d bytes behind its nodes, it says %d", errGuard, len(user), h.UserStateLen)
	}
	if g.takes {
		g.state, user, h.UserStateLen = user, nil, 0
	}
	var out bytes.Buffer
	out.WriteByte(mlPushPull)
	enc := codec.NewEncoder(&out, handle)
	h.Nodes = len(kept)
	if err := enc.Encode(&h); err != nil {
		return nil, err
	}
	for i := range kept {
		if err := enc.Encode(&kept[i]); err != nil {
			return nil, err
		}
	}
	out.Write(user)
	return out.Bytes(), nil
}
