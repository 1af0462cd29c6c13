package job

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestOrdinals(t *testing.T) {
	for name, c := range map[string]struct{ bag, of, want, err string }{
		"all":                 {"0-9", "0-9", "0-9", ""},
		"some":                {"0-9", "2,4-6,9", "2,4-6,9", ""},
		"of a step":           {"10-30:5", "15,20-30:5", "1-4", ""},
		"every other":         {"0-99", "0-8:2", "0,2,4,6,8", ""},
		"step that is double": {"0-99:3", "3-15:6", "1,3,5", ""},
		"over a gap":          {"1-3,7-9", "2-3,7-8", "1-4", ""},
		"in any order":        {"5,1,9", "9,1", "0,2", ""},
		"one range over two":  {"0-9,20-29:3", "9,20-23:3", "9-11", ""},
		"highest":             {"2147483640-2147483647", "2147483647", "7", ""},
		"above":               {"0-9", "8-12", "", "index 10: the bag has no task with it; there are 0-9"},
		"in a gap":            {"1-3,7-9", "2-8", "", "index 4:"},
		"between steps":       {"0-9:3", "3,4", "", "index 4:"},
		"other steps":         {"0-9:3", "0-9:2", "", "index 2:"},
	} {
		bag, _, err := ParseIndices(c.bag)
		if err != nil {
			t.Fatal(err)
		}
		of, _, err := ParseIndices(c.of)
		if err != nil {
			t.Fatal(err)
		}
		got, err := bag.Ordinals(&of)
		switch {
		case c.err != "":
			if !errors.Is(err, ErrNoSuchIndex) || !strings.HasPrefix(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", name, err, c.err)
			}
		case err != nil || got.String() != c.want:
			t.Errorf("%s: %s, %v, want %s", name, got.String(), err, c.want)
		}
	}
}

// Indices that do not follow one another cost a bit each, not a look at all pages of the
// set: a short request may name millions.
func TestOrdinalsOneByOne(t *testing.T) {
	bag := FirstIndices(1 << 20)
	of, _, err := ParseIndices("0-1048574:2")
	if err != nil {
		t.Fatal(err)
	}
	allocations := testing.AllocsPerRun(1, func() {
		if got, err := bag.Ordinals(&of); err != nil || got.Count() != 1<<19 {
			t.Errorf("%d, %v", got.Count(), err)
		}
	})
	if pages := float64(1 << 20 / pageTasks); allocations > 4*pages {
		t.Errorf("%v allocations for %v pages", allocations, pages)
	}
}

// What Ordinals finds at once is what looking for each index by itself finds.
func FuzzOrdinals(f *testing.F) {
	f.Add("0-15:4,17,100-200", "4-12:4,17,150-160")
	f.Fuzz(func(t *testing.T, bagText, ofText string) {
		bag, _, err1 := ParseIndices(bagText)
		of, _, err2 := ParseIndices(ofText)
		if err1 != nil || err2 != nil || of.Count() > 10_000 {
			return
		}
		var want []uint32
		for i := range of.Count() {
			if ordinal, ok := bag.Ordinal(of.Index(i)); ok {
				want = append(want, ordinal)
			}
		}
		got, err := bag.Ordinals(&of)
		if missing := len(want) < int(of.Count()); missing != (err != nil) {
			t.Fatalf("%d of %d are there: %v", len(want), of.Count(), err)
		}
		if err == nil && !slices.Equal(slices.Collect(got.All), want) {
			t.Errorf("%s, want %v", got.String(), want)
		}
	})
}
