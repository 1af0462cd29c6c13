package frames

// Sizes of HTTP/2, RFC 9113.
const (
	prefaceBytes = 24 // what a client begins with
	headerBytes  = 9  // of a frame, before its payload
	// maxPayload is what gRPC takes in a frame; it ends a connection with a longer one.
	maxPayload = 16 << 10
)

// Kinds of frames that do not all cost the same.
const (
	data     = 0x0
	headers  = 0x1
	reset    = 0x3
	settings = 0x4
)

// What frames cost in tokens, where that is not one. Taking a call back costs more than
// beginning it, so that who does both pays for what the server has done.
const (
	callCost  = 2
	resetCost = 5
)

// perPiece is how many bytes of headers and the like cost one token more: they are decoded
// a byte at a time.
const perPiece = 256

// settingBytes is how long a setting is. Each is applied to all streams.
const settingBytes = 6

// Cost is what frames cost, in tokens. A frame costs more for what is in it, unless that is
// data, of which flow control bounds how much comes.
type Cost struct {
	All int
	// Idle is the part for frames that bring nothing: neither a call nor data for one.
	Idle int
}

// follower counts the frames in the bytes that come over a connection.
type follower struct {
	// begins is what a frame costs that begins a call, where a connection needs so few of
	// them that it counts as idle; 0 where calls are what it is for.
	begins int
	// uncalled says that no call is under way that data could be for.
	uncalled bool
	skip     int // bytes of the preface or a payload that have yet to come
	header   [headerBytes]byte
	have     int // bytes of header that have come
}

func newFollower(begins int) follower { return follower{begins: begins, skip: prefaceBytes} }

// follow returns what the frames cost that begin in the next bytes.
func (f *follower) follow(b []byte) (sum Cost) {
	for {
		n := min(f.skip, len(b))
		f.skip -= n
		b = b[n:]
		if len(b) == 0 {
			return sum
		}
		n = copy(f.header[f.have:], b)
		f.have += n
		b = b[n:]
		if f.have < headerBytes {
			return sum
		}
		f.have = 0
		f.skip = int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
		one := f.costOf(f.header[3], min(f.skip, maxPayload))
		sum.All += one.All
		sum.Idle += one.Idle
	}
}

func (f *follower) costOf(kind byte, length int) Cost {
	switch {
	case kind == data && length > 0 && !f.uncalled:
		return Cost{All: 1}
	case kind == headers && f.begins == 0:
		return Cost{All: callCost + length/perPiece}
	case kind == headers:
		return idle(f.begins + length/perPiece)
	case kind == reset:
		return idle(resetCost)
	case kind == settings:
		return idle(1 + length/settingBytes)
	}
	return idle(1 + length/perPiece)
}

func idle(n int) Cost { return Cost{All: n, Idle: n} }
