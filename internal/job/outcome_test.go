package job

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A text that is cut says so, at a whole character, and is cut once only.
func TestClipReason(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"exit code 1", "exit code 1"},
		{strings.Repeat("x", 256), strings.Repeat("x", 256)},
		{strings.Repeat("x", 257), strings.Repeat("x", 253) + "…"},
		{strings.Repeat("€", 1000), strings.Repeat("€", 84) + "…"},
		{"a\xffb", "ab"},
		{strings.Repeat("\xff", 300) + "x", "x"},
	} {
		got := ClipReason(c.text)
		if got != c.want || len(got) > MaxReasonLength || !utf8.ValidString(got) {
			t.Errorf("%.20q of %d bytes became %q", c.text, len(c.text), got)
		}
		if again := ClipReason(got); again != got {
			t.Errorf("cut twice, %q became %q", got, again)
		}
	}
	if got := ClipText("€€", 4); got != "…" {
		t.Errorf("4 bytes of euros are %q", got)
	}
}

// No job closes with the end of an attempt after which it goes on.
func TestDemotedIsNoEnd(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a job could close as demoted")
		}
	}()
	Demoted.Event()
}
