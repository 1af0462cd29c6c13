package gossip

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

func ml(kind byte, body any) []byte {
	b := []byte{kind}
	var out []byte
	if err := codec.NewEncoderBytes(&out, &codec.MsgpackHandle{}).Encode(body); err != nil {
		panic(err)
	}
	return append(b, out...)
}

var versions = []uint8{1, 5, 2, 0, 0, 0}

func aliveOf(name string) mlAliveBody {
	return mlAliveBody{Incarnation: 3, Node: name, Addr: everywhere, Port: everywherePort, Vsn: versions}
}

// What a member may say, and what it may not.
func TestGuardOnPackets(t *testing.T) {
	for name, c := range map[string]struct {
		message []byte
		passes  bool
	}{
		"ping":                      {ml(mlPing, mlPingBody{SeqNo: 1, Node: "me", SourceNode: "eve"}), true},
		"ping that answers another": {ml(mlPing, mlPingBody{SeqNo: 1, Node: "me", SourceNode: "bob"}), false},
		"ping for another":          {ml(mlPing, mlPingBody{SeqNo: 1, Node: "bob", SourceNode: "eve"}), false},
		"ping for any":              {ml(mlPing, mlPingBody{SeqNo: 1, SourceNode: "eve"}), false},
		"indirect ping":             {ml(mlIndirectPing, mlIndirectBody{SeqNo: 1, Node: "bob", SourceNode: "eve"}), true},
		"indirect ping for another": {ml(mlIndirectPing, mlIndirectBody{SeqNo: 1, Node: "bob", SourceNode: "carl"}), false},
		"ack":                       {ml(mlAck, mlAckBody{SeqNo: 7}), true},
		"ack with a load":           {ml(mlAck, mlAckBody{SeqNo: 7, Payload: []byte("x")}), false},
		"nack":                      {ml(mlNack, mlNackBody{SeqNo: 7}), true},
		"itself alive":              {ml(mlAlive, aliveOf("eve")), true},
		"another alive":             {ml(mlAlive, aliveOf("bob")), false},
		"this one alive":            {ml(mlAlive, aliveOf("me")), true}, // memberlist refutes it
		"a stranger alive":          {ml(mlAlive, aliveOf("nobody")), false},
		"another dead":              {ml(mlDead, mlSuspectBody{3, "bob", "eve"}), false},
		"another has left":          {ml(mlDead, mlSuspectBody{3, "bob", "bob"}), false},
		"another suspect":           {ml(mlSuspect, mlSuspectBody{3, "bob", "eve"}), false},
		"this one suspect":          {ml(mlSuspect, mlSuspectBody{3, "me", "eve"}), true},
		"this one dead":             {ml(mlDead, mlSuspectBody{3, "me", "eve"}), true},
		"this one, by another":      {ml(mlSuspect, mlSuspectBody{3, "me", "bob"}), false},
		"this one has left":         {ml(mlDead, mlSuspectBody{3, "me", "me"}), false},
		"it leaves":                 {ml(mlDead, mlSuspectBody{3, "eve", "eve"}), true},
		"itself suspect":            {ml(mlSuspect, mlSuspectBody{3, "eve", "eve"}), false},
		"the last incarnation":      {ml(mlSuspect, mlSuspectBody{1<<32 - 1, "me", "eve"}), false},
		"push/pull in a packet":     {ml(mlPushPull, mlHeader{}), false},
		"compressed":                {append([]byte{9}, bytes.Repeat([]byte{0}, 100)...), false},
		"encrypted":                 {[]byte{10, 0, 0, 0, 0}, false},
		"labelled":                  {[]byte{244, 1, 'x', mlAck}, false},
		"compound in a compound":    {compound([][]byte{compound([][]byte{ml(mlAck, mlAckBody{SeqNo: 7})})}), false},
		"nonsense":                  {[]byte{mlAlive, 0xff, 0xff}, false},
		"an array for a map":        {append([]byte{mlDead}, 0x93, 3, 0xa3, 'b', 'o', 'b', 0xa3, 'e', 'v', 'e'), false},
		"a name twice":              {append([]byte{mlDead}, "\x84\xabIncarnation\x03\xa4Node\xa3eve\xa4Node\xa3bob\xa4From\xa3eve"...), false},
	} {
		g := guard{from: "eve", to: "me", takes: true}
		got := g.packet(slices.Clone(c.message))
		if (got != nil) != c.passes || (g.refused == 0) != c.passes {
			t.Errorf("%s: passes %v, refused %d", name, got != nil, g.refused)
		}
		// Nor between others.
		g = guard{from: "eve", to: "me", takes: true}
		ack := ml(mlAck, mlAckBody{SeqNo: 9})
		got = g.packet(compound([][]byte{slices.Clone(ack), slices.Clone(c.message), slices.Clone(ack)}))
		want := 2
		if c.passes {
			want++
		}
		parts, _ := compoundParts(got[1:])
		if len(parts) != want {
			t.Errorf("%s: %d of 3 pass, want %d", name, len(parts), want)
		}
	}
}

// What goes into an exchange.
func TestGuardOnExchanges(t *testing.T) {
	pushPull := func(h mlHeader, user string, nodes ...mlState) []byte {
		b := ml(mlPushPull, h)
		for i := range nodes {
			b = append(b, ml(0, &nodes[i])[1:]...)
		}
		return append(b, user...)
	}
	state := func(name string, state int) mlState {
		return mlState{Name: name, Addr: everywhere, Port: everywherePort, Incarnation: 1, State: state, Vsn: versions}
	}
	g := guard{from: "eve", to: "me", takes: true}
	b, err := g.message(pushPull(mlHeader{Nodes: 5, UserStateLen: 3, Join: true}, "abc",
		state("bob", 2), state("eve", 0), state("me", 2), state("nobody", 0), state("eve", 3)))
	if err != nil || string(g.state) != "abc" || !g.accused || g.refused != 3 {
		t.Fatalf("%v; state %q, accused %v, refused %d", err, g.state, g.accused, g.refused)
	}
	dec := codec.NewDecoderBytes(b[1:], &codec.MsgpackHandle{})
	var h mlHeader
	var nodes [2]mlState
	if err := errors.Join(dec.Decode(&h), dec.Decode(&nodes[0]), dec.Decode(&nodes[1])); err != nil {
		t.Fatal(err)
	}
	if h != (mlHeader{Nodes: 2, Join: true}) || nodes[0].Name != "eve" || nodes[1].Name != "me" || dec.NumBytesRead() != len(b)-1 {
		t.Errorf("what passes is %+v %+v", h, nodes)
	}
	for name, b := range map[string][]byte{
		"empty":                {},
		"a user message":       ml(mlUser, mlHeader{UserStateLen: 20 << 20}),
		"a compressed bomb":    append([]byte{9}, make([]byte, 1000)...),
		"more nodes than any":  pushPull(mlHeader{Nodes: 1 << 20}, ""),
		"fewer than it says":   pushPull(mlHeader{Nodes: 2}, "", state("eve", 0)),
		"negative":             pushPull(mlHeader{Nodes: -1}, ""),
		"20 MiB of state":      pushPull(mlHeader{UserStateLen: 20 << 20}, "abc"),
		"less state":           pushPull(mlHeader{UserStateLen: 1}, "abc"),
		"a name of 4 GiB":      append(ml(mlPushPull, mlHeader{Nodes: 1}), 0x81, 0xa4, 'N', 'a', 'm', 'e', 0xdb, 0xff, 0xff, 0xff, 0xff),
		"a thousand of levels": append([]byte{mlPushPull}, bytes.Repeat([]byte{0x91}, 1<<20-1)...),
		"a ping for another":   ml(mlPing, mlPingBody{Node: "bob", SourceNode: "eve"}),
		"a long error":         ml(mlError, mlErrorBody{strings.Repeat("x", 1<<19)}),
	} {
		g := guard{from: "eve", to: "me", takes: true}
		if _, err := g.message(b); !errors.Is(err, errGuard) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a member sends, nothing of another passes.
func FuzzGuard(f *testing.F) {
	f.Add(ml(mlAlive, aliveOf("eve")), false)
	f.Add(compound([][]byte{ml(mlDead, mlSuspectBody{3, "bob", "eve"}), ml(mlPing, mlPingBody{Node: "me", SourceNode: "eve"}), {mlUser, 1}}), false)
	f.Add(append(ml(mlPushPull, mlHeader{Nodes: 1, UserStateLen: 1}), append(ml(0, mlState{Name: "bob"})[1:], 'x')...), true)
	f.Fuzz(func(t *testing.T, b []byte, exchange bool) {
		g := guard{from: "eve", to: "me", takes: true}
		var out []byte
		if exchange {
			out, _ = g.message(b)
		} else {
			out = g.packet(b)
		}
		for _, part := range split(out) {
			var about mlSuspectBody
			switch part[0] {
			case mlAlive, mlDead, mlSuspect:
				if err := codec.NewDecoderBytes(part[1:], &codec.MsgpackHandle{}).Decode(&about); err != nil || about.Node != "eve" && about.Node != "me" {
					t.Errorf("%q passes, %v", part, err)
				}
			case mlPushPull:
				dec := codec.NewDecoderBytes(part[1:], &codec.MsgpackHandle{})
				var h mlHeader
				if err := dec.Decode(&h); err != nil || h.Nodes > 2 || h.UserStateLen != 0 {
					t.Errorf("header %+v, %v", h, err)
				}
				for range h.Nodes {
					var n mlState
					if err := dec.Decode(&n); err != nil || n.Name != "eve" && n.Name != "me" {
						t.Errorf("node %+v, %v", n, err)
					}
				}
			case mlUser, mlCompound:
				t.Errorf("%q passes", part)
			}
		}
	})
}

func split(b []byte) [][]byte {
	switch {
	case len(b) == 0:
		return nil
	case b[0] == mlCompound:
		parts, _ := compoundParts(b[1:])
		return parts
	}
	return [][]byte{b}
}
