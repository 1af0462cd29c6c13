package transfer

import (
	"slices"
	"testing"
)

func TestLRUKeepsWhatWasUsedLast(t *testing.T) {
	var gone []int
	c := newLRU[string](2, func(v int) { gone = append(gone, v) })
	c.put("a", 1)
	c.put("b", 2)
	if v, ok := c.get("a"); v != 1 || !ok {
		t.Errorf("a is %d, %v", v, ok)
	}
	c.put("c", 3)
	if _, ok := c.get("b"); ok || !slices.Equal(gone, []int{2}) {
		t.Errorf("b is kept: %v; gone are %v", ok, gone)
	}
	c.remove("b") // is no longer there
	c.remove("a")
	if _, ok := c.get("c"); !ok || c.order.Len() != 1 || !slices.Equal(gone, []int{2, 1}) {
		t.Errorf("c is kept: %v, of %d; gone are %v", ok, c.order.Len(), gone)
	}
}
