package api

import (
	"os"
	"strings"
	"testing"
)

// docs/protocol.md names every reason that an error can carry.
func TestProtocolNamesEveryErrorReason(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := []string{"INVALID_ARGUMENT", "INTERNAL"}
	for _, k := range append(kinds[:len(kinds):len(kinds)], hostScarce) {
		reasons = append(reasons, k.reason)
	}
	for _, r := range reasons {
		if !strings.Contains(string(page), "`"+r+"`") {
			t.Errorf("docs/protocol.md does not explain %s", r)
		}
	}
}
