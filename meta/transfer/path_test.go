package transfer

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckPath(t *testing.T) {
	for path, says := range map[string]string{
		"a":                            "",
		".kith/script":                 "",
		"..a":                          "",
		"a/..b/c":                      "",
		"ä/ö":                          "",
		strings.Repeat("d/", 63):       "shortest",
		strings.Repeat("/d", 64):       "absolute",
		"":                             "is empty",
		".":                            "shortest",
		"..":                           "leaves the folder",
		"../a":                         "leaves the folder",
		"a/../../b":                    "leaves the folder",
		"a/..":                         "shortest",
		"a/../b":                       "shortest",
		"./a":                          "shortest",
		"a//b":                         "shortest",
		"a/":                           "shortest",
		"/a":                           "absolute",
		"a\x00b":                       "control character",
		"a\nb":                         "control character",
		"a\x1b[2Jb":                    "control character",
		"a\u009bb":                     "control character",
		"a\xffb":                       "not UTF-8",
		strings.Repeat("n", 255):       "",
		strings.Repeat("n", 256):       "element of 256 bytes",
		strings.Repeat("n/", 600):      "has 1200 bytes",
		"d" + strings.Repeat("/d", 63): "",
		"d" + strings.Repeat("/d", 64): "more than 64 elements",
	} {
		err := CheckPath(path)
		switch {
		case says == "" && err != nil:
			t.Errorf("CheckPath(%.40q) returned %v", path, err)
		case says != "" && (!errors.Is(err, ErrBadPath) || !strings.Contains(err.Error(), says)):
			t.Errorf("CheckPath(%.40q) returned %v, want ErrBadPath with %q", path, err, says)
		}
	}
}

func TestCheckPattern(t *testing.T) {
	for pattern, ok := range map[string]bool{
		"*.csv": true, "out/[a-z]?*": true, `a\*`: true, "[": false, "out/[a": false, "../*": false, "/tmp/*": false, "[/x": true,
	} {
		if err := CheckPattern(pattern); (err == nil) != ok || err != nil && !errors.Is(err, ErrBadPath) {
			t.Errorf("CheckPattern(%q) returned %v, want ok = %v", pattern, err, ok)
		}
	}
}

func FuzzCheckPath(f *testing.F) {
	for _, s := range []string{"a/b", "../x", "a/./b", "\x00", "d/../../e", `a\..\b`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if err := CheckPattern(path); err == nil && CheckPath(path) != nil {
			t.Errorf("%q is a pattern and not a path", path)
		}
		if CheckPath(path) != nil {
			return
		}
		joined := filepath.Join("/root/of/all", filepath.FromSlash(path))
		if joined != "/root/of/all/"+path {
			t.Errorf("%q leads to %q", path, joined)
		}
	})
}
