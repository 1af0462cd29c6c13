package invite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"kith/cluster/wire"
)

// Bounds of a frame, in bytes without its length.
const (
	maxFrame   = 4 << 10  // of one before the proofs
	maxDetails = 20 << 10 // of one with a bundle
)

// ErrFrame is returned for bytes that are no frame of the exchange.
var ErrFrame = errors.New("not a frame of this exchange")

// readFrame reads one message of at most most bytes. Nothing is set aside for a frame
// that says it is longer. What breaks a bound of kith.v1 is refused.
func readFrame(r io.Reader, m proto.Message, most uint32) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > most {
		return fmt.Errorf("it has %d bytes, at most %d: %w", length, most, ErrFrame)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	if err := proto.Unmarshal(body, m); err != nil {
		return fmt.Errorf("it does not parse: %w", ErrFrame)
	}
	if b := wire.Check(m); len(b) > 0 {
		return fmt.Errorf("%w: %w", b[0], ErrFrame)
	}
	return nil
}

// writeFrame writes one message. The error is of the writer, or says that the message
// is longer than the other side reads.
func writeFrame(w io.Writer, m proto.Message, most int) error {
	body, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	if len(body) > most {
		return fmt.Errorf("%d bytes to send, at most %d: %w", len(body), most, ErrFrame)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body))), body...))
	return err
}

// checkAbout says what is wrong with what a site says of itself.
func checkAbout(addresses []string, version string) error {
	for _, a := range addresses {
		if err := wire.CheckAddress(a); err != nil {
			return fmt.Errorf("addresses: %.64q %w: %w", a, err, ErrFrame)
		}
	}
	if !printable(version) {
		return fmt.Errorf("version: %.64q is not printable: %w", version, ErrFrame)
	}
	return nil
}

func printable(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
