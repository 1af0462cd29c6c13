package strict_test

import (
	"testing"

	"github.com/BurntSushi/toml"

	"kith/internal/strict"
)

const odd = `# a comment with [brackets] = and "quotes
title = "a # no comment" # one
long = """
not.a.key = 1
[nor a table]
\""" ends not yet """"
raw = '''
x = 1'''
list = [ # [[
  "a", 'b]', # ]
  { k = 1 },
]
a.b."c d" = 5
[ table . "sub.table" ]
key = { inner = [1,
 2] }
'quoted key'=1
[[peers]]
site = "b"
[peers.more]
x = 1
[[peers]]
[[peers.deep]]
y = 1
[[peers.deep]]
y = 2
[last]
z = 1979-05-27T07:32:00Z`

func TestLines(t *testing.T) {
	var any map[string]any
	if _, err := toml.Decode(odd, &any); err != nil {
		t.Fatalf("the test's text is no TOML: %v", err)
	}
	got := strict.Lines(odd)
	want := map[string]int{
		"title": 2, "long": 3, "raw": 7, "list": 9, "a": 13, "a.b": 13, "a.b.c d": 13,
		"table.sub.table": 14, "table.sub.table.key": 15, "table.sub.table.quoted key": 17,
		"peers": 18, "peers[0]": 18, "peers[0].site": 19, "peers[0].more": 20, "peers[0].more.x": 21,
		"peers[1]": 22, "peers[1].deep": 23, "peers[1].deep[0]": 23, "peers[1].deep[0].y": 24,
		"peers[1].deep[1]": 25, "peers[1].deep[1].y": 26, "last": 27, "last.z": 28,
	}
	for key, line := range want {
		if got[key] != line {
			t.Errorf("%s is on line %d, want %d", key, got[key], line)
		}
	}
	for key, line := range got {
		if want[key] == 0 {
			t.Errorf("%s on line %d is no key", key, line)
		}
	}
}

// A line that is no TOML does not hide those behind it.
func TestReadFaults(t *testing.T) {
	d := strict.Read("a = 1\nb = \nc = 3\nc = 4\nd = yes\ne = 5\n")
	if d.Values["a"] != int64(1) || d.Values["c"] != int64(3) || d.Values["e"] != int64(5) {
		t.Errorf("read %v", d.Values)
	}
	var lines []int
	for _, f := range d.Faults {
		lines = append(lines, f.Line)
	}
	if len(lines) != 3 || lines[0] != 2 || lines[1] != 4 || lines[2] != 5 {
		t.Errorf("faults %v", d.Faults)
	}
	if d.Line("e") != 6 || d.Line("e.f[3].g") != 6 || d.Line("nowhere") != 0 {
		t.Errorf("lines %d, %d, %d", d.Line("e"), d.Line("e.f[3].g"), d.Line("nowhere"))
	}
	for _, hopeless := range []string{"a = [", "a = \"\"\"", "[", "= = ="} {
		if d := strict.Read(hopeless); len(d.Faults) == 0 {
			t.Errorf("%q has no fault", hopeless)
		}
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"data", "limits", "limits.copies", "peers", "peers.site", "placement.copies", "placement.rank", "site"}
	for key, want := range map[string]string{
		"siet": "site", "Site": "site", "dtaa": "data", "peers.siet": "peers.site", "limits.cpies": "limits.copies",
		"copies": "limits.copies", "limit": "limits", "frobnicate": "", "x": "",
	} {
		if got := strict.Suggest(key, known); got != want {
			t.Errorf("for %q %q is suggested, want %q", key, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(odd)
	f.Add("a = [\n\"\"\"")
	f.Fuzz(func(t *testing.T, text string) {
		d := strict.Read(text)
		if len(d.Faults) == 0 && d.Values == nil {
			t.Error("neither values nor a fault")
		}
	})
}
