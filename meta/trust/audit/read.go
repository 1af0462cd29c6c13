package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Read calls see with each line of the log in a folder, the oldest first, until see
// returns false. Lines that are none are skipped; skipped says how many. It checks
// nothing else: see [Verify].
func Read(dir string, see func(*Line) bool) (skipped int, err error) {
	return readWith(dir, nil, see)
}

// readWith is Read for the lines that have one of some words; the others are not even
// parsed, which is much faster.
func readWith(dir string, words [][]byte, see func(*Line) bool) (skipped int, err error) {
	files, err := filesOf(dir)
	if err != nil {
		return 0, fmt.Errorf("audit log: %w", err)
	}
	on := true
	for _, f := range files {
		if !on {
			break
		}
		in, err := os.Open(f.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed as the oldest one meanwhile
		}
		if err != nil {
			return skipped, fmt.Errorf("audit log: %w", err)
		}
		_, _, err = eachLine(in, func(text []byte, _ int, long bool) bool {
			if !hasAny(text, words) {
				return true
			}
			l, err := parse(text)
			if long || err != nil {
				skipped++
				return true
			}
			on = see(l)
			return on
		})
		in.Close() //nolint:errcheck // it is only read
		if err != nil {
			return skipped, fmt.Errorf("audit log: %w", err)
		}
	}
	return skipped, nil
}
