package flight

// Frames returns what the frames of a file hold.
func Frames(file []byte) (frames [][]byte) {
	rest := file[len(magic):]
	for {
		payload, more, err := takeFrame(rest)
		if err != nil {
			return frames
		}
		frames, rest = append(frames, payload), more
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

// Head returns what a file begins with.
func Head(r *Recorder) ([]byte, error) { return r.head(1) }
