package main_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"kith/meta/flight"
)

// playsAgain plays all that the members of a site of three recorded, each lead by itself: it must
// come to the same, to the bit. At least so many leads must be there.
func (s *siteOfThree) playsAgain(t *testing.T, leads int) {
	t.Helper()
	lives, steps := make(map[uint64]bool), 0
	for name := range s.members {
		files, err := filepath.Glob(filepath.Join(s.root, "alpha-"+name, flight.Folder, "*"+flight.Suffix))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			p, err := flight.Open(bytes.NewReader(b))
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			for err == nil {
				if _, err = p.Next(); err == nil {
					steps++
				}
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("the recording of lead %d at member %s: %v", p.Header.Incarnation, name, err)
			}
			lives[p.Header.Incarnation] = true
		}
	}
	if len(lives) < leads || steps == 0 {
		t.Errorf("%d leads of %d at least were recorded, with %d steps", len(lives), leads, steps)
	}
	t.Logf("%d leads, %d steps play again", len(lives), steps)
}
