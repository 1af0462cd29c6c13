package main

import (
	"os"
	"path"
	"slices"
	"strings"
)

// withEstimator adds the program of --estimate to the inputs, if it is a file of this folder: a command
// that begins with "./" is meant to be found where the job is.
func (o *submission) withEstimator(inputs []string) []string {
	word, _, _ := strings.Cut(strings.TrimSpace(o.estimate), " ")
	name := path.Clean(word)
	if !strings.HasPrefix(word, "./") || strings.ContainsAny(name, ":") || slices.Contains(inputs, name) || slices.Contains(inputs, word) {
		return inputs
	}
	for _, in := range inputs {
		if _, to, ok := strings.Cut(in, ":"); ok && path.Clean(to) == name {
			return inputs
		}
	}
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return inputs // the site may have it
	}
	return append(slices.Clone(inputs), name)
}
