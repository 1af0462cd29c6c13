package invite

import (
	"regexp"
	"testing"
)

// Each reason has a word of its own, for the audit log, and a sentence.
func TestEachReasonHasAWord(t *testing.T) {
	word, seen := regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)*$`), make(map[string]bool)
	for r := UnknownInvitation; r <= reasons; r++ { // the last is one that this version does not know
		w := r.Word()
		if !word.MatchString(w) || len(w) > 32 || seen[w] {
			t.Errorf("reason %d is %q", r, w)
		}
		seen[w] = true
	}
}
