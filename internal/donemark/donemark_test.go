package donemark

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{
		"1": 1, "7\n": 7, " 12 \r\n": 12, "18446744073709551615": 1<<64 - 1, strings.Repeat(" ", 30) + "9\n": 9, "007": 7,
		"18446744073709551616": 0, "99999999999999999999": 0, "": 0, "0": 0, "\n": 0, "-1": 0, "+1": 0, "1 2": 0, "six": 0, "1.5": 0, "1\x00": 0,
		strings.Repeat(" ", 32) + "9": 0,
	} {
		if n, ok := Parse([]byte(text)); n != want || ok != (want > 0) {
			t.Errorf("%q is %d, %v", text, n, ok)
		}
	}
}
