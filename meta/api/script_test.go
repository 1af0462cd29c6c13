package api

import (
	"testing"

	kithv1 "kith/proto/gen/kith/v1"
)

// Jobs that run the same have the same hash, whatever else they ask for, and others another one.
func TestScriptOf(t *testing.T) {
	seen := make(map[uint64]int)
	for i, j := range []*kithv1.Job{
		{Command: []string{"a", "b"}}, {Command: []string{"a", "", "b"}}, {Command: []string{"ab"}}, {Command: []string{"b", "a"}}, {Script: "a", Arguments: []string{"b"}},
		{Script: "#!/bin/sh\na"}, {Script: "#!/bin/sh\nb"},
	} {
		h := scriptOf(j)
		if before, ok := seen[h]; ok || h == 0 {
			t.Errorf("job %d has the hash %x of job %d", i, h, before)
		}
		seen[h] = i
		j.Name, j.Processors, j.Environment = "x", 7, map[string]string{"A": "b"}
		if scriptOf(j) != h {
			t.Errorf("job %d: what it asks for changes the hash", i)
		}
	}
	if r := requestOf(&kithv1.Job{Command: []string{"a", "b"}}, "ada"); seen[r.Script] != 0 || r.Script == 0 {
		t.Errorf("the request has %x", r.Script)
	}
}
