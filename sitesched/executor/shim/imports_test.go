package shim

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestImportsLittle keeps a shim small and quick to start.
func TestImportsLittle(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "kith/cmd/kith-shim").Output()
	if err != nil {
		t.Skipf("go list: %v", err)
	}
	deps := strings.Fields(string(out))
	for _, unwanted := range []string{"fmt", "log", "log/slog", "net", "encoding/json", "kith/internal/job", "google.golang.org/protobuf/proto"} {
		if slices.Contains(deps, unwanted) {
			t.Errorf("the shim imports %s", unwanted)
		}
	}
}
