package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestParseSlurmSignal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]askSignal{
		"USR1": {"USR1", true, time.Minute}, "B:USR2@120": {"USR2", false, 2 * time.Minute}, "b:sigterm@1": {"TERM", false, time.Second}, "10@65535": {"USR1", true, 65535 * time.Second},
	} {
		if got, err := parseSlurmSignal(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "B:", "@60", "R:USR1", "USR1@", "USR1@0", "USR1@-1", "USR1@65536", "USR1@1m"} {
		if got, err := parseSlurmSignal(text); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// What is asked for with --signal and the rest makes sense only of a job that saves.
func TestCheckpointOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		want string // the error, or the checkpoint
	}{
		{"--signal USR1@60", "say what the job saves with --checkpoint"},
		{"--checkpoint-grace 5m", "say what the job saves with --checkpoint"},
		{"--checkpoint a --signal USR1 --checkpoint-signal HUP", "choose one of them"},
		{"--requeue --on-site-lost race", "choose one of them"},
		{"--checkpoint a --signal B:HUP@90 --checkpoint-grace 30s", `paths:"a" signal:"HUP" grace:{seconds:30} before_walltime:{seconds:90}`},
		{"--checkpoint a --checkpoint-signal all:usr2", `paths:"a" signal:"USR2" signal_all:true`},
	} {
		o := newSubmission()
		flags := flagsFor(o)
		if err := flags.Parse(strings.Fields(c.args)); err != nil {
			t.Fatalf("%s: %v", c.args, err)
		}
		j, err := o.job(&program{name: "x"}, nil)
		got := strings.Join(strings.Fields(j.GetCheckpoint().String()), " ")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.args, got)
		}
	}
}

// flagsFor are the flags of a submission.
func flagsFor(o *submission) *pflag.FlagSet {
	flags := pflag.NewFlagSet("submit", pflag.ContinueOnError)
	o.register(flags)
	return flags
}
