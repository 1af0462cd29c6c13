package lab

import "testing"

// A part that is not met makes a statement fail and is marked; one that is only
// shown does not.
func TestFinding(t *testing.T) {
	f := Conclude(Within("a", Spread{1, 2}, 1, 2), Below("b", Spread{3}, 3), Shown("c", Spread{4}, "s"))
	if f.Result != Fails || f.Measured != "a 1.50 (1.00 to 2.00); b 3.00 [not met]; c 4.00 s" || len(f.Values) != 3 {
		t.Errorf("%+v", f)
	}
	if f.Noted("always.", "why").Note != "always. why" || Conclude(Shown("c", nil, "")).Noted("", "why").Note != "" {
		t.Error("notes")
	}
}
