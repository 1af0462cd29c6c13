package level

import (
	"slices"
	"testing"
)

func TestLadder(t *testing.T) {
	t.Parallel()
	type site struct {
		rank  uint8
		width int32
	}
	for name, c := range map[string]struct {
		sites   []site
		wish    uint8
		width   int32
		visited []uint8
		skipped []uint8 // up to the last level visited
	}{
		"three levels":            {[]site{{1, 2}, {2, 100}, {3, 500}}, 1, 1, []uint8{1, 2, 3}, nil},
		"begin lower":             {[]site{{1, 2}, {2, 100}, {3, 500}}, 2, 1, []uint8{2, 3}, nil},
		"a gap":                   {[]site{{1, 2}, {4, 100}, {9, 500}}, 1, 1, []uint8{1, 4, 9}, []uint8{2, 3, 5, 6, 7, 8}},
		"no level 1":              {[]site{{2, 100}, {3, 500}}, 1, 1, []uint8{2, 3}, []uint8{1}},
		"two sites of one rank":   {[]site{{1, 2}, {2, 100}, {2, 500}}, 1, 200, []uint8{2}, []uint8{1}},
		"too wide for a level":    {[]site{{1, 2}, {2, 100}, {3, 500}}, 1, 50, []uint8{2, 3}, []uint8{1}},
		"too wide for all":        {[]site{{1, 2}, {2, 100}}, 1, 101, nil, nil},
		"no site at all":          {nil, 1, 1, nil, nil},
		"what is no rank":         {[]site{{0, 2}, {17, 2}, {255, 9}, {16, 2}}, 0, 0, []uint8{16}, []uint8{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
		"a wish below all levels": {[]site{{1, 2}}, 200, 1, nil, nil},
		"a site of no processors": {[]site{{1, 0}, {2, 1}}, 1, 0, []uint8{2}, []uint8{1}},
	} {
		var d Ladder
		for _, s := range c.sites {
			d.Add(s.rank, s.width)
		}
		var visited, skipped []uint8
		from := max(c.wish, 1)
		for at, ok := d.At(c.wish, c.width); ok; at, ok = d.Below(at, c.width) {
			skipped = d.Skipped(from, at, c.width, skipped)
			visited = append(visited, at)
			from = at + 1
		}
		if !slices.Equal(visited, c.visited) || !slices.Equal(skipped, c.skipped) {
			t.Errorf("%s: visited %d and passed over %d, want %d and %d", name, visited, skipped, c.visited, c.skipped)
		}
	}
}
