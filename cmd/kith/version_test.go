package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// version --modules has the modules that a built program is made of, with the
// sums of go.sum. Test programs know none, so one is built.
func TestVersionListsModules(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out with -short: it builds the program")
	}
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	kith := filepath.Join(t.TempDir(), "kith")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", kith, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	text, err := exec.Command(kith, "version", "--modules", "--output", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var told struct {
		Modules []struct{ Path, Version, Sum string }
	}
	if err := json.Unmarshal(text, &told); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, m := range told.Modules {
		found = found || m.Path == "github.com/spf13/cobra"
		if !strings.Contains(string(sums), m.Path+" "+m.Version+" "+m.Sum+"\n") {
			t.Errorf("%+v is not in go.sum", m)
		}
	}
	if !found {
		t.Errorf("cobra is not among the modules: %s", text)
	}
	if text, err = exec.Command(kith, "version", "--output", "json").Output(); err != nil || strings.Contains(string(text), "modules") {
		t.Errorf("%v: version alone lists them: %s", err, text)
	}
}
