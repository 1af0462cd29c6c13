// Package docs holds no code, only the test that the pages agree with each
// other and with the tree. That they name every configuration key, verb,
// message and reason is tested beside those.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = ".."

// pages returns README.md and all pages below docs, by their paths from root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{"README.md": read(t, "README.md")}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			name, _ := filepath.Rel(root, path)
			found[name] = read(t, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fences = regexp.MustCompile("(?ms)^```.*?^```$")
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// TestLinks follows every relative link and image, and what stands behind a #.
func TestLinks(t *testing.T) {
	all := pages(t)
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			path := name
			if target != "" {
				path = filepath.Join(filepath.Dir(name), target)
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s: %s leads nowhere", name, m[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(all[path]), anchor) {
				t.Errorf("%s: %s: no such heading", name, m[1])
			}
		}
	}
}

var heading = regexp.MustCompile(`(?m)^#+ (.*)$`)

// anchors are the names that headings get: small letters, blanks as hyphens,
// no other punctuation.
func anchors(page string) []string {
	var names []string
	for _, m := range heading.FindAllStringSubmatch(fences.ReplaceAllString(page, ""), -1) {
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', r >= 'a' && r <= 'z', r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(m[1])))
	}
	return names
}

// TestPicturesAreUsed finds pictures that no page shows.
func TestPicturesAreUsed(t *testing.T) {
	pictures, err := filepath.Glob("images/*")
	if err != nil || len(pictures) == 0 {
		t.Fatal("no pictures", err)
	}
	var all strings.Builder
	for _, text := range pages(t) {
		all.WriteString(text)
	}
	for _, p := range pictures {
		if !strings.Contains(all.String(), p) {
			t.Errorf("no page shows %s", p)
		}
	}
}

var mentioned = regexp.MustCompile(`docs/[a-z0-9/-]+\.md`)

// TestSourcesNamePages checks what comments and messages say about pages.
func TestSourcesNamePages(t *testing.T) {
	seen := 0
	for name, text := range sources(t, ".go", ".proto", ".toml") {
		for _, page := range mentioned.FindAllString(text, -1) {
			seen++
			if _, err := os.Stat(filepath.Join(root, page)); err != nil {
				t.Errorf("%s names %s, which does not exist", name, page)
			}
		}
	}
	if seen == 0 {
		t.Error("no source names a page: is the search broken?")
	}
}

// sources returns the texts of the tree's own sources, without tests and what
// is generated.
func sources(t *testing.T, endings ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name := d.Name(); name == ".git" || name == "gen" || name == "testdata" || name == "image" {
				return filepath.SkipDir
			}
		case slices.Contains(endings, filepath.Ext(path)) && !strings.HasSuffix(path, "_test.go"):
			name, _ := filepath.Rel(root, path)
			found[name] = read(t, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestDecisions checks that each decision has a number of its own and is listed.
func TestDecisions(t *testing.T) {
	index := read(t, "docs/adr/README.md")
	decisions, err := filepath.Glob("adr/[0-9]*.md")
	if err != nil || len(decisions) == 0 {
		t.Fatal("no decisions", err)
	}
	taken := make(map[string]string)
	for _, path := range decisions {
		name := filepath.Base(path)
		number := name[:4]
		if other := taken[number]; other != "" {
			t.Errorf("%s and %s have the same number", other, name)
		}
		taken[number] = name
		text := read(t, filepath.Join("docs", path))
		if !strings.HasPrefix(text, "# "+number+" ") {
			t.Errorf("%s does not begin with its number", name)
		}
		for _, part := range []string{"**Context.**", "**Decision.**", "**Consequences.**"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no %s", name, part)
			}
		}
		if !strings.Contains(index, "["+number+"]("+name+")") {
			t.Errorf("docs/adr/README.md does not list %s", name)
		}
	}
}

var requirement = regexp.MustCompile(`(?m)^\t(\S+) v\S+$`)

// TestDependenciesAreJustified checks that each direct dependency has its line.
func TestDependenciesAreJustified(t *testing.T) {
	reasons := read(t, "docs/adr/0001-module-and-dependencies.md")
	found := requirement.FindAllStringSubmatch(read(t, "go.mod"), -1)
	if len(found) == 0 {
		t.Fatal("no dependencies in go.mod")
	}
	for _, m := range found {
		if !strings.Contains(reasons, "`"+m[1]+"`") {
			t.Errorf("docs/adr/0001-module-and-dependencies.md does not say why %s is needed", m[1])
		}
	}
}

var logRow = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\| (info|warn|error) \\|")

// TestLogMessagesExist checks that what operators are told to watch for is
// what is logged.
func TestLogMessagesExist(t *testing.T) {
	var code strings.Builder
	for _, text := range sources(t, ".go") {
		code.WriteString(text)
	}
	rows := logRow.FindAllStringSubmatch(read(t, "docs/operations.md"), -1)
	if len(rows) < 10 {
		t.Fatalf("%d rows of log messages", len(rows))
	}
	for _, row := range rows {
		for message := range strings.SplitSeq(row[1], "`, `") { // a message may have a comma
			if !strings.Contains(code.String(), `"`+strings.Trim(message, "`")+`"`) {
				t.Errorf("nothing logs %s", message)
			}
		}
	}
}
