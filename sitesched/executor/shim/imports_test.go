package shim

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestImportsLittle keeps a shim small and quick to start: beside the standard
// library it imports the system calls, the clock of leases, and how a job says that it has saved and what it estimates (ADR 0001).
func TestImportsLittle(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "kith/cmd/kith-shim").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	deps := strings.Fields(string(out))
	for _, dep := range deps {
		first, _, _ := strings.Cut(dep, "/")
		own := dep == "kith/cmd/kith-shim" || dep == "kith/sitesched/executor/shim" || dep == "kith/internal/clock" || dep == "kith/internal/donemark" || dep == "kith/internal/estimate" || dep == "golang.org/x/sys/unix"
		if !own && (first == "kith" || strings.Contains(first, ".")) {
			t.Errorf("the shim imports %s", dep)
		}
	}
	for _, unwanted := range []string{"fmt", "log", "log/slog", "net", "encoding/json", "kith/internal/job", "google.golang.org/protobuf/proto"} {
		if slices.Contains(deps, unwanted) {
			t.Errorf("the shim imports %s", unwanted)
		}
	}
}
