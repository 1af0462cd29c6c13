package declared

import "testing"

func TestHas(t *testing.T) {
	for _, c := range []struct {
		output, file string
		want         bool
	}{
		{"out", "out", true},
		{"out/", "out/deep/f", true},
		{"out", "outer", false},
		{"out", ".bashrc", false},
		{"a/b", "a", false},
		{"*.txt", "x.txt", true},
		{"*.txt", "d/x.txt", false},
		{"d/*.txt", "d/x.txt", true},
		{"d/*", "d/e/x", false},
		{`d/\*`, "d/*", true},
		{"*", ".bashrc", true}, // as it was declared
		{"", ".bashrc", false},
	} {
		if got := Has([]string{"other", c.output}, c.file); got != c.want {
			t.Errorf("%q has %q: %v", c.output, c.file, got)
		}
	}
	if Has(nil, "f") {
		t.Error("nothing has a file")
	}
}
