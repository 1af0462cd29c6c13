package members

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"time"

	"kith/store/blobstore"
)

// Requests about chunks, each a letter, the length of what follows in 4 bytes, and that. So is
// each answer.
const (
	askHave  = 'H' // sums; the answer has those that are missing
	askPut   = 'P' // a chunk
	askGet   = 'G' // a sum; the answer is the chunk
	askList  = 'L' // sums that are kept, as askHave; askSweep goes by them
	askSweep = 'S' // what was not listed on this connection and is old goes

	saysDone  = 'D' // with what was asked for
	saysNone  = 'N' // there is no such chunk
	saysFails = 'E' // with a text
)

const (
	// maxFrame bounds a request and an answer, in bytes.
	maxFrame = blobstore.MaxChunk
	// maxSums is how many sums are asked for at a time.
	maxSums = 4096
	// requestTime is how long a request may take.
	requestTime = 20 * time.Second
	// idleTime is how long a connection may wait for the next request.
	idleTime = 2 * time.Minute
	// sweepGrace is how old a chunk is at least that the leader does not have and that goes: an
	// upload may wait for an hour for its job, and for as long again with its next user.
	sweepGrace = 4 * time.Hour
	// maxListed bounds the list of chunks that are kept.
	maxListed = 16 << 20
)

// ErrAway is returned while a member has no store for chunks to use.
var ErrAway = errors.New("the member has no file store open for others at the moment")

// Store is what a member keeps chunks in for the others.
type Store interface {
	Missing(sums []blobstore.Sum) []blobstore.Sum
	Put(data []byte) (blobstore.Sum, error)
	Get(sum blobstore.Sum) ([]byte, error)
	Sweep(ctx context.Context, live iter.Seq2[blobstore.Sum, error], grace time.Duration) (blobstore.SweepReport, error)
}

// Serve answers requests about chunks on a connection until that ends. use has a function
// called with the store, or returns [ErrAway].
func Serve(ctx context.Context, conn net.Conn, use func(func(Store) error) error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() }) //nolint:errcheck // it ends the requests
	defer stop()
	defer conn.Close() //nolint:errcheck // nobody speaks on it any more
	listed := make(map[blobstore.Sum]struct{})
	for {
		if conn.SetDeadline(time.Now().Add(idleTime)) != nil {
			return
		}
		letter, body, err := readFrame(conn)
		if err != nil {
			return
		}
		if conn.SetDeadline(time.Now().Add(requestTime)) != nil {
			return
		}
		var answer []byte
		err = use(func(s Store) (err error) {
			answer, err = answerTo(ctx, s, letter, body, listed)
			return err
		})
		says := byte(saysDone)
		switch {
		case errors.Is(err, blobstore.ErrNotFound):
			says, answer = saysNone, nil
		case err != nil:
			says, answer = saysFails, []byte(err.Error())
		}
		if writeFrame(conn, says, answer) != nil {
			return
		}
	}
}

// answerTo carries one request out.
func answerTo(ctx context.Context, s Store, letter byte, body []byte, listed map[blobstore.Sum]struct{}) ([]byte, error) {
	switch letter {
	case askPut:
		_, err := s.Put(body)
		return nil, err
	case askSweep:
		_, err := s.Sweep(ctx, func(yield func(blobstore.Sum, error) bool) {
			for sum := range listed {
				if !yield(sum, nil) {
					return
				}
			}
		}, sweepGrace)
		clear(listed)
		return nil, err
	}
	sums, err := sumsOf(body)
	if err != nil {
		return nil, err
	}
	switch letter {
	case askHave:
		return joined(s.Missing(sums)), nil
	case askList:
		if len(listed)+len(sums) > maxListed {
			return nil, fmt.Errorf("more than %d chunks are listed", maxListed)
		}
		for _, sum := range sums {
			listed[sum] = struct{}{}
		}
		return joined(s.Missing(sums)), nil
	case askGet:
		if len(sums) == 1 {
			return s.Get(sums[0])
		}
	}
	return nil, fmt.Errorf("request %q is not known", letter)
}

func sumsOf(b []byte) ([]blobstore.Sum, error) {
	var sum blobstore.Sum
	if len(b)%len(sum) != 0 || len(b) > maxSums*len(sum) {
		return nil, fmt.Errorf("%d bytes are no list of at most %d sums", len(b), maxSums)
	}
	sums := make([]blobstore.Sum, 0, len(b)/len(sum))
	for ; len(b) > 0; b = b[len(sum):] {
		sums = append(sums, blobstore.Sum(b[:len(sum)]))
	}
	return sums, nil
}

func joined(sums []blobstore.Sum) []byte {
	var b []byte
	for _, sum := range sums {
		b = append(b, sum[:]...)
	}
	return b
}

func readFrame(from io.Reader) (letter byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("%d bytes, at most %d are taken", n, maxFrame)
	}
	body = make([]byte, n)
	_, err = io.ReadFull(from, body)
	return head[0], body, err
}

func writeFrame(to io.Writer, letter byte, body []byte) error {
	head := binary.BigEndian.AppendUint32([]byte{letter}, uint32(len(body))) //nolint:gosec // at most maxFrame
	_, err := to.Write(append(head, body...))
	return err
}

// ask says a request on a connection and returns the answer.
func ask(conn net.Conn, letter byte, body []byte) ([]byte, error) {
	if err := conn.SetDeadline(time.Now().Add(requestTime)); err != nil {
		return nil, err
	}
	if err := writeFrame(conn, letter, body); err != nil {
		return nil, err
	}
	says, answer, err := readFrame(conn)
	switch {
	case err != nil:
		return nil, err
	case says == saysNone:
		return nil, blobstore.ErrNotFound
	case says == saysFails:
		return nil, &refusal{string(answer)}
	}
	return answer, nil
}

// refusal is an error of the other side, after which the connection goes on.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }
