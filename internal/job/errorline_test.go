package job

import (
	"strings"
	"testing"
)

func TestErrorLineOf(t *testing.T) {
	for _, test := range []struct{ tail, want string }{
		{"", ""},
		{" \n\r\n\t\n", ""},
		{"no such file", "no such file"},
		{"first\nno such file\n", "no such file"},
		{"first\r\nno such file  \r\n\n", "no such file"},
		{"  indented\n", "indented"},
		{"10 %\r50 %\r100 %\n", "100 %"},
		{"a\tb", "a b"},
		{"\x1b[1;31mError:\x1b[0m bad\x1b[K", "Error: bad"},
		{"cut off \x1b[1;", "cut off"},
		{"odd \x1b[1\x07end", "odd \uFFFDend"},
		{"bell\a nul\x00 del\x7f c1\u0085 title\x1b]0;x", "bell\uFFFD nul\uFFFD del\uFFFD c1\uFFFD title\uFFFD]0;x"},
		{"evil \u202etxt.exe\u2066\u2028", "evil \uFFFDtxt.exe\uFFFD\uFFFD"},
		{"not UTF-8: \xff\xfe.", "not UTF-8: \uFFFD."},
		{"kommt aus Köln", "kommt aus Köln"},
		{strings.Repeat("x", MaxErrorLine), strings.Repeat("x", MaxErrorLine)},
		{strings.Repeat("ö", MaxErrorLine), strings.Repeat("ö", 62) + "…"},
	} {
		if got := ErrorLineOf([]byte(test.tail)); got != test.want {
			t.Errorf("ErrorLineOf(%q) = %q, want %q", test.tail, got, test.want)
		}
	}
}

// What a host makes of any output, any origin takes.
func FuzzErrorLine(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "\x1b[31mx\x1b[0m", "\xff\u202e" + strings.Repeat("ü", 100)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, tail []byte) {
		line := ErrorLineOf(tail)
		r := TaskResult{Kind: Failure, ExitCode: 1, ErrorLine: line}
		if err := r.Validate(); err != nil {
			t.Fatalf("of %q: %v", tail, err)
		}
		if again := ErrorLineOf([]byte(line)); again != line && len(line) < MaxErrorLine-2 {
			t.Fatalf("of %q: %q, and of that %q", tail, line, again)
		}
	})
}
