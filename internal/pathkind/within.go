package pathkind

import "path/filepath"

// Within returns what says of an absolute folder whether it is one of some, or in one.
func Within(roots []string) func(dir string) bool {
	return func(dir string) bool {
		for _, root := range roots {
			if rel, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(rel) {
				return true
			}
		}
		return false
	}
}
