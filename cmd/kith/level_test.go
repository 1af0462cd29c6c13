package main

import (
	"strings"
	"testing"

	kithv1 "kith/proto/gen/kith/v1"
)

// What is guessed of a job is told as a guess, with where it is from, until an estimator gives a bound.
func TestLevelLinesTellOfAGuess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    *kithv1.JobStatus
		want string
	}{
		{&kithv1.JobStatus{Level: 2, WorkGuess: 660}, "2; needs at most 660 processor-seconds by the forecast of its user's jobs: a guess, by which it may begin at a lower level"},
		{&kithv1.JobStatus{Level: 2, WorkGuess: 660, WorkBound: 90}, "2; did 0 processor-seconds of the reference, of at most 90"},
		{&kithv1.JobStatus{Level: 2}, "2"},
		{&kithv1.JobStatus{Level: 2, AttemptBound: 90}, "2; the estimator of the attempt that runs says so far: at most 90 processor-seconds in all; that counts when the attempt has ended"},
		{&kithv1.JobStatus{WorkGuess: 660}, ""},
	} {
		if got := strings.Join(levelLines(c.s), "; "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
