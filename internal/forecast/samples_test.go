package forecast

import (
	"math"
	"testing"
	"time"
)

func TestSamples(t *testing.T) {
	a, b := Samples{3, 9, 5, 7}, Samples{4, 2, 6}
	if got := a.Min(b); len(got) != 3 || got[0] != 3 || got[1] != 2 || got[2] != 5 {
		t.Errorf("%v", got)
	}
	var d Dist
	Samples{}.Dist(&d)
	if d.Len() != 0 {
		t.Error("nothing has samples")
	}
	s := make(Samples, 50)
	for i := range s {
		s[i] = time.Duration(100 + i)
	}
	s.Dist(&d)
	if _, upto := d.PIT(99); math.Abs(upto-1.0/52) > 1e-9 {
		t.Errorf("the tail has %v", upto)
	}
	if below, _ := d.PIT(150); math.Abs(below-51.0/52) > 1e-9 || d.Quantile(1) != 4*149 || d.Quantile(0) != 25 {
		t.Errorf("%v, %v to %v", below, d.Quantile(0), d.Quantile(1))
	}
}
