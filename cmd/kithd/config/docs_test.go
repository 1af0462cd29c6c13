package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "draw the table of keys into docs/operations.md anew")

const (
	tableBegin = "<!-- The table is drawn from cmd/kithd/config/knobs.go: go test ./cmd/kithd/config -rewrite -->\n"
	tableEnd   = "<!-- end of the table -->\n"
)

// sectionSays is what stands in the head line of a table.
var sectionSays = map[string]string{
	"placement": "of jobs submitted here", "timing": "see [protocol.md](protocol.md#timeouts-and-bounds)", "peers": "once for every other site",
}

// The table of keys in docs/operations.md is the one of this package.
func TestOperationsTable(t *testing.T) {
	const path = "../../../docs/operations.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableBegin)
	old, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no table of keys between %q and %q", path, tableBegin, tableEnd)
	}
	if table := keyTable(); table != old {
		if !*rewrite {
			t.Fatalf("%s does not have the table of knobs.go; draw it with: go test ./cmd/kithd/config -rewrite", path)
		}
		if err := os.WriteFile(path, []byte(before+tableBegin+table+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func keyTable() string {
	var b strings.Builder
	b.WriteString("| key | default | reload | meaning |\n|---|---|---|---|\n")
	section := ""
	for _, k := range allKnobs() {
		if name, _, ok := strings.Cut(k.Key, "."); ok && name != section {
			section = name
			head := "[" + name + "]"
			if name == "peers" {
				head = "[[peers]]"
			}
			fmt.Fprintf(&b, "| **`%s`** | | | %s |\n", head, sectionSays[name])
		}
		standard := "`" + k.write(k.standard) + "`"
		if k.Key == "site" || k.Key == "peers.site" {
			standard = ""
		}
		reload := ""
		if k.Reloads {
			reload = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Key, standard, reload, k.Says)
	}
	return strings.ReplaceAll(b.String(), "|  |", "| |")
}
