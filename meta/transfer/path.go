package transfer

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// CheckPath returns an error wrapping [ErrBadPath] unless p can name a file of
// a set: a relative path in its shortest form that stays in the private
// folder, of at most [MaxPathBytes] bytes of UTF-8 without control characters
// (paths are printed on terminals), [MaxDepth] elements and [MaxNameBytes]
// bytes an element.
func CheckPath(p string) error {
	if reason := pathFault(p); reason != "" {
		return fmt.Errorf("path %q: %s: %w", clip(p), reason, ErrBadPath)
	}
	return nil
}

// CheckPattern is [CheckPath] for a declared output, whose last element may be
// a pattern of [path.Match].
func CheckPattern(p string) error {
	if err := CheckPath(p); err != nil {
		return err
	}
	if _, err := path.Match(path.Base(p), ""); err != nil {
		return fmt.Errorf("path %q: its last element is not a pattern: %w", clip(p), ErrBadPath)
	}
	return nil
}

// pathFault says what is wrong with p; nothing if it returns "".
func pathFault(p string) string {
	switch {
	case p == "":
		return "is empty"
	case len(p) > MaxPathBytes:
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(p), MaxPathBytes)
	case !utf8.ValidString(p):
		return "is not UTF-8"
	case strings.ContainsFunc(p, isControl):
		return "contains a control character"
	case path.IsAbs(p):
		return "is absolute"
	case !filepath.IsLocal(p):
		return "leaves the folder"
	case p == "." || path.Clean(p) != p:
		return "is not in its shortest form"
	case strings.Count(p, "/") >= MaxDepth:
		return fmt.Sprintf("has more than %d elements", MaxDepth)
	}
	for name := range strings.SplitSeq(p, "/") {
		if len(name) > MaxNameBytes {
			return fmt.Sprintf("has an element of %d bytes, at most %d are allowed", len(name), MaxNameBytes)
		}
	}
	return ""
}

// isControl reports whether r could steer a terminal instead of being shown.
func isControl(r rune) bool {
	return r < 0x20 || r >= 0x7f && r < 0xa0
}

// parents calls f with each folder above p, the nearest first, until it
// returns false.
func parents(p string, f func(dir string) bool) {
	for i := strings.LastIndexByte(p, '/'); i > 0; i = strings.LastIndexByte(p[:i], '/') {
		if !f(p[:i]) {
			return
		}
	}
}
