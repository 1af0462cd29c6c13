package workload

import "io"

// ahead reads from r in a goroutine of its own while its user works on what has
// come: half of the time that a log takes is spent in unpacking it.
type ahead struct {
	full  chan piece
	empty chan []byte
	stop  chan struct{}
	done  chan struct{}
	rest  []byte // of the piece that is being read
	piece []byte // the whole of it
	err   error
}

// piece is what one read gave.
type piece struct {
	data []byte
	err  error
}

const (
	pieceSize  = 128 << 10
	pieceCount = 4
)

// newAhead starts to read. The goroutine ends when r does or close is called.
func newAhead(r io.Reader) *ahead {
	a := &ahead{
		full: make(chan piece, pieceCount), empty: make(chan []byte, pieceCount),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	for range pieceCount {
		a.empty <- make([]byte, pieceSize)
	}
	go a.fill(r)
	return a
}

func (a *ahead) fill(r io.Reader) {
	defer close(a.done)
	for {
		select {
		case <-a.stop:
			return
		case b := <-a.empty:
			n, err := readAll(r, b)
			a.full <- piece{b[:n], err} // has room for all pieces
			if err != nil {
				return
			}
		}
	}
}

// readAll fills b as far as r gives.
func readAll(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = r.Read(b[n:])
		n += m
	}
	return n, err
}

// Read implements io.Reader.
func (a *ahead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		if a.piece != nil {
			a.empty <- a.piece[:pieceSize]
		}
		next := <-a.full
		a.piece, a.rest, a.err = next.data, next.data, next.err
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// close ends the goroutine and waits for it.
func (a *ahead) close() {
	close(a.stop)
	<-a.done
}
