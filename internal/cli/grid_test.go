package cli

import (
	"testing"
	"time"
	"unicode"
)

func TestTextWidth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "abc": 3, "größe": 5, "e\u0301": 1, "計算": 4, "…": 1, "日本": 4} {
		if got := TextWidth(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if got := Cut("計算機", 5); got != "計算…" {
		t.Errorf("cut: %q", got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[31mb\n\u202ec\xff")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range Clean(text) {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q is left in %q", r, Clean(text))
			}
		}
		for width := range 5 {
			if s := Cut(Clean(text), width+1); TextWidth(s) > width+1 {
				t.Fatalf("%q is wider than %d", s, width+1)
			}
		}
	})
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "00:00:00", -time.Hour: "00:00:00", 59*time.Second + 999*time.Millisecond: "00:00:59", 100 * time.Minute: "01:40:00",
		24 * time.Hour: "1-00:00:00", 100*24*time.Hour + time.Second: "100-00:00:01",
	} {
		if got := Span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
