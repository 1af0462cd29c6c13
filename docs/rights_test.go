package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/cluster/wire"
	"kith/meta"
	"kith/meta/peer"
	kithv1 "kith/proto/gen/kith/v1"
)

const (
	rightsBegin = "<!-- rights: drawn by go test ./docs -run TestRightsPage -rewrite -->\n"
	rightsEnd   = "<!-- end of rights -->\n"
)

// elsewhere are the messages that are not for the engine, and who asks whose they are.
var elsewhere = map[string]string{
	"hello":        "the site at the other end, first and once | | the stream is closed |",
	"file_request": "the origin of the job (outputs), the holder of the claim (inputs) | | `ERROR_DENIED`, by `sitesched/runner` |",
	"file_reply":   "a site that was asked | | skipped |",
}

// TestRightsPage checks that docs/protocol.md says who may say what as the code does.
func TestRightsPage(t *testing.T) {
	rows := map[string]meta.Right{}
	for _, r := range meta.Rights() {
		rows[strings.ReplaceAll(r.Kind, "-", "_")] = r
	}
	var b strings.Builder
	b.WriteString(rightsBegin + "| message | who is heard | who is served, if fewer | the others | rate | bounds |\n|---|---|---|---|---|---|\n")
	messages := (&kithv1.PeerMessage{}).ProtoReflect().Descriptor().Fields()
	for i := range messages.Len() {
		m := messages.Get(i)
		name := string(m.Name())
		line, ok := elsewhere[name]
		if r, found := rows[name]; found {
			served, others := "", "refused"
			if r.Heard == meta.AnySite {
				others = ""
			}
			if r.Served != r.Heard {
				served, others = r.Served.String(), r.State
			}
			line, ok = fmt.Sprintf("%v | %s | %s |", r.Heard, served, others), true
			delete(rows, name)
		}
		if !ok {
			t.Errorf("the message %s has no row in meta/rights.go", name)
		}
		rate, p := "", &kithv1.PeerMessage{}
		p.ProtoReflect().Set(m, p.ProtoReflect().NewField(m))
		if c, counted := peer.ClassOf(p); counted && name != "hello" {
			rate = c.String()
		}
		fmt.Fprintf(&b, "| `%s` | %s %s | %s |\n", name, line, rate, strings.Join(wire.Bounds(m.Message()), ", "))
	}
	for name := range rows {
		t.Errorf("meta/rights.go has a row for %s, which is no message", name)
	}
	b.WriteString(rightsEnd)
	path := filepath.Join(root, "docs", "protocol.md")
	page := read(t, "docs/protocol.md")
	before, rest, ok := strings.Cut(page, rightsBegin)
	_, after, ended := strings.Cut(rest, rightsEnd)
	if !ok || !ended {
		t.Fatal("docs/protocol.md has no place for the table of rights")
	}
	if want := before + b.String() + after; want != page {
		if !*rewrite {
			t.Fatal("docs/protocol.md does not say who may say what as meta/rights.go does: run go test ./docs -run TestRightsPage -rewrite")
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // a page is for everybody
			t.Fatal(err)
		}
	}
}
