package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// manual writes the pages of a small program and returns their folder.
func manual(t *testing.T) string {
	t.Helper()
	p := New("tool", nil, &bytes.Buffer{}, &bytes.Buffer{})
	run := func(*cobra.Command, []string) error { return nil }
	verb := &cobra.Command{
		Use: "cut FILE", Short: "Cut a file", RunE: run, Example: "  tool cut 'a b'\n.dots",
		Long: "Cut a file.\n.It has a \\ in it.\n\n'quoted'\n\n  -x  indented\n  -y  too",
	}
	verb.Flags().StringP("where", "w", "here", "cut at `PLACE`")
	secret := &cobra.Command{Use: "secret", Hidden: true, RunE: run}
	group := &cobra.Command{Use: "group", Short: "Have commands below"}
	group.AddCommand(&cobra.Command{Use: "below", Short: "Be below", RunE: run})
	root := p.Root(&cobra.Command{Use: "tool", Short: "Do things", Long: "Do things."}, nil, verb, secret, group, ExitTopic("Codes:\n\n  0  good"))
	dir := filepath.Join(t.TempDir(), "new", "man1")
	if code := p.Run(t.Context(), root, []string{"help", "man", dir}); code != ExitOK {
		t.Fatalf("exit code %d: %s", code, p.Stderr)
	}
	return dir
}

// There is a page for each command that people see, and nothing in a help text
// is taken for a request of roff.
func TestManPages(t *testing.T) {
	t.Parallel()
	dir := manual(t)
	var names []string
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	if got := strings.Join(names, " "); got != "tool-cut.1 tool-group-below.1 tool-group.1 tool.1" {
		t.Errorf("pages %s", got)
	}
	page, err := os.ReadFile(filepath.Join(dir, "tool-cut.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		".TH \"TOOL\\-CUT\" \"1\" \"\" ", ".SH NAME\ntool\\-cut \\- Cut a file\n", "\n\\&.It has a \\e in it.\n", "\n\\(aqquoted\\(aq\n", ".nf\n  \\-x  indented\n  \\-y  too\n.fi\n",
		".TP\n\\fB\\-w\\fR, \\fB\\-\\-where\\fR \\fIPLACE\\fR\ncut at PLACE (default here)\n", "\n\\&.dots\n", ".SH \"OPTIONS OF ALL COMMANDS\"\n", ".SH SEE ALSO\n.BR tool (1)\n",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	top, err := os.ReadFile(filepath.Join(dir, "tool.1"))
	if err != nil || !strings.Contains(string(top), ".SH EXIT STATUS\n") {
		t.Errorf("%v\n%s", err, top)
	}
}

// groff has no complaint about a page, where it is installed.
func TestManPagesAreGoodRoff(t *testing.T) {
	t.Parallel()
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff on this machine, which reads man pages")
	}
	pages, err := filepath.Glob(filepath.Join(manual(t), "*"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		out, err := exec.Command(groff, "-man", "-ww", "-Tutf8", "-z", page).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v %s", page, err, out)
		}
	}
}

func TestManNeedsAFolder(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	p := New("tool", nil, &bytes.Buffer{}, &stderr)
	root := p.Root(&cobra.Command{Use: "tool"}, nil, VersionVerb(p, ""))
	if code := p.Run(t.Context(), root, []string{"help", "man"}); code != ExitUsage || !strings.Contains(stderr.String(), "tool help man DIR") {
		t.Errorf("%d %s", code, stderr.String())
	}
}
