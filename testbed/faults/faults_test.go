package faults

import (
	"flag"
	"os"
	"testing"
)

var (
	firstSeed = flag.Uint64("first-seed", 0, "first seed of the random schedules")
	seeds     = flag.Int("seeds", 150, "how many random schedules")
	story     = flag.String("story", "", "file to write the story of the first seed to")
)

func TestRandomSchedules(t *testing.T) {
	if *story != "" {
		f, err := os.Create(*story)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s := Random(*firstSeed, Size{})
		f.WriteString(s.String())
		r := Run(s, func(l string) { f.WriteString(l + "\n") })
		t.Log(r.Violation)
	}
	bad := 0
	for i := range *seeds {
		r := Run(Random(*firstSeed+uint64(i), Size{}), nil)
		if r.Violation != nil {
			t.Error(r.Violation)
			if bad++; bad > 20 {
				t.FailNow()
			}
		}
	}
}
