package flight

import (
	"bytes"
	"errors"
	"io"
)

// Frames returns what the frames of a file hold.
func Frames(file []byte) (frames [][]byte) {
	f := newFrames(bytes.NewReader(file[len(magic):]))
	for {
		payload, err := f.next()
		if err != nil {
			return frames
		}
		frames = append(frames, bytes.Clone(payload))
	}
}

// File makes a file of frames.
func File(frames [][]byte) []byte {
	b := []byte(magic)
	for _, f := range frames {
		b = appendFrame(b, f)
	}
	return b
}

// Head returns what a file begins with, however long that takes.
func Head(r *Recorder) ([]byte, error) {
	r.fed = false
	return r.head(1)
}

// MostHeld is how much of a state a recorder writes down at most while its driver waits.
const MostHeld = mostHeld

// Continue returns a file that goes on from the middle of another one, as a roll makes it.
func Continue(file []byte) ([]byte, error) {
	frames := Frames(file)
	cut := 3 + (len(frames)-3)/2
	p, err := Open(bytes.NewReader(File(frames[:cut])))
	for err == nil {
		_, err = p.Next()
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	b, err := p.head(p.Header.Number+1, p.Header.Began)
	for _, f := range frames[cut:] {
		b = appendFrame(b, f)
	}
	return b, err
}

// CopyRounds is how often a roll copies what was recorded meanwhile, after it has looked for room once.
const CopyRounds = copyRounds
