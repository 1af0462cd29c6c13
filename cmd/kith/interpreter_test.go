package main

import (
	"strings"
	"testing"
)

// A script without an interpreter mostly lacks its first line; what comes from stdin has
// no file that could be taken along.
func TestScriptWithoutInterpreterSaysWhatToDo(t *testing.T) {
	for name, along := range map[string]bool{"sub/job.sh": true, "stdin": false} {
		err := checkScript(name, "echo hello\n")
		if err == nil || !strings.Contains(err.Error(), "write #!/bin/sh, or another, into the first line") {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Contains(err.Error(), "kith submit --input sub/job.sh -- ./job.sh"); got != along {
			t.Errorf("%s: taken along: %v, want %v: %v", name, got, along, err)
		}
	}
}
