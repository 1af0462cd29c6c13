package places

import "testing"

func TestPlaces(t *testing.T) {
	p := Places{Most: 3, MostOne: 2}
	for n, c := range []struct {
		sender string
		want   Bound
	}{{"a", None}, {"a", None}, {"a", OfOne}, {"b", None}, {"b", InAll}, {"c", InAll}} {
		if got := p.Enter(c.sender); got != c.want {
			t.Errorf("%d, %s: %d, want %d", n, c.sender, got, c.want)
		}
	}
	p.Leave("a")
	if p.Enter("c") != None || p.Taken() != 3 {
		t.Errorf("a place that was given back is not free; %d are taken", p.Taken())
	}
	p.Leave("a")
	p.Leave("b")
	p.Leave("c")
	if p.Taken() != 0 || len(p.of) != 0 {
		t.Errorf("%d places are taken, of %v", p.Taken(), p.of)
	}
}
