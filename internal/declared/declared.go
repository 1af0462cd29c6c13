// Package declared says which files of an attempt its job wants back.
package declared

import (
	"path"
	"strings"
)

// Has reports whether one of the declared outputs stands for a file: it is its path,
// a folder above it, or a pattern of [path.Match] in the last element that its name
// matches. Both are relative paths in their shortest form.
func Has(outputs []string, file string) bool {
	for _, output := range outputs {
		output = strings.TrimRight(output, "/")
		dir, last := path.Split(output)
		if !strings.ContainsAny(last, `*?[\`) {
			if file == output || strings.HasPrefix(file, output+"/") {
				return true
			}
			continue
		}
		if name, inside := strings.CutPrefix(file, dir); inside && !strings.Contains(name, "/") {
			if ok, err := path.Match(last, name); ok && err == nil {
				return true
			}
		}
	}
	return false
}
