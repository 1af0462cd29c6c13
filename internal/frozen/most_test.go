package frozen

import (
	"fmt"
	"strings"
	"testing"
)

// many is what may be much more than is to be written.
type many struct {
	list   []*secretive
	table  map[string]int
	ring   ring
	sorted *counted
}

type secretive struct{ secret string }

// counted is an index that notes when it is asked for its records.
type counted struct{ n, asked int }

func (c *counted) Len() int { return c.n }
func (c *counted) Records() []any {
	c.asked++
	return make([]any, c.n)
}
func (c *counted) Refill([]any) {}
func (c *counted) Record() any  { return (*secretive)(nil) }

// What is too much is not walked to its end, and not sorted: how much of it is looked at hangs on how
// much may be written, not on how much there is.
func TestAtMost(t *testing.T) {
	t.Parallel()
	const most = 4 << 10
	f := New(Rules{Windows: map[string][2]string{"frozen.ring": {"items", "head"}}, Hidden: map[string][]string{"frozen.secretive": {"secret"}}})
	hidden := 0
	hide := func(s string) string {
		hidden++
		return s
	}
	large := many{table: make(map[string]int)}
	for i := range 100_000 {
		large.list = append(large.list, &secretive{fmt.Sprint(i)})
	}
	for name, v := range map[string]*many{
		"a list": &large, "a window": {ring: ring{items: make([]int, 100_000)}}, "a text": {list: []*secretive{{strings.Repeat("x", most)}}},
	} {
		hidden = 0
		b, ok := f.AppendAtMost([]byte("before"), v, hide, false, most)
		if ok || string(b) != "before" || hidden > most/4 {
			t.Errorf("%s: %v, %d bytes, %d texts were looked at", name, ok, len(b), hidden)
		}
	}
	for i := range 1000 {
		large.table[fmt.Sprint(i)] = i
	}
	if _, ok := f.AppendAtMost(nil, &many{table: large.table}, nil, false, most); ok {
		t.Error("a map that is sorted before it is written")
	}
	sorted := &counted{n: 1000}
	if _, ok := f.AppendAtMost(nil, &many{sorted: sorted}, nil, false, most); ok || sorted.asked > 0 {
		t.Errorf("an index was sorted %d times", sorted.asked)
	}
	// What fits is what Append writes.
	v := sample()
	whole := f.Append([]byte("before"), v, nil)
	if b, ok := f.AppendAtMost([]byte("before"), v, nil, false, most); !ok || string(b) != string(whole) {
		t.Errorf("%v, %d bytes of %d", ok, len(b), len(whole))
	}
}
