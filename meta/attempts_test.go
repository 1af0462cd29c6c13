package meta_test

import (
	"fmt"
	"strings"
	"testing"

	"kith/internal/job"
)

// Attempts that no site began do not use up those that a job may lose: under rerun it is
// run again after any number of refusals, copies given back and claims given back, also
// after a restart of its origin.
func TestAttemptsThatNeverBeganAreNotCounted(t *testing.T) {
	const more = 300 // more than the number of an attempt in a byte
	for name, lines := range map[string][]string{
		"refused":          {"recv beta refused 1#%d"},
		"given back":       {"recv beta accepted 1#%d", "recv beta give-back 1#%d"},
		"claim given back": {"recv beta accepted 1#%d", "recv beta claim 1#%d", "recv beta give-back 1#%d"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{t: t}
			for _, line := range []string{"site processors=1 copies=1 scheme=k-distributed", "up beta", "load beta work=1 processors=8", "submit name=x processors=2 walltime=1h lost=rerun"} {
				s.do(line)
			}
			id := job.ID{Origin: "alpha", Generation: 1, Seq: 1}
			attempt := func() uint32 { return s.state.Job(id).Attempt }
			for range more {
				n := attempt()
				for _, line := range lines {
					s.do(fmt.Sprintf(line, n))
				}
				for k := 0; attempt() == n && k < 100; k++ {
					s.do("wait 20s")
					s.do("load beta work=1 processors=8")
				}
				if attempt() == n {
					t.Fatalf("attempt %d is the last one: %+v", n, s.state.Job(id))
				}
			}
			n := attempt()
			s.do(fmt.Sprintf("recv beta accepted 1#%d", n))
			s.do(fmt.Sprintf("recv beta claim 1#%d", n))
			s.do(fmt.Sprintf("recv beta result 1#%d lost", n))
			if j := s.state.Job(id); j.State != job.Pending && j.State != job.Queued {
				t.Errorf("after attempt %d was lost: %v, outcome %v", n, j.State, j.Outcome)
			}
		})
	}
}

// No number of an attempt is used twice, however many there were, when an earlier attempt
// outraces the latest one.
func TestNumbersOfManyAttempts(t *testing.T) {
	for name, lines := range map[string][]string{
		"the latest one runs":  {"recv gamma accepted 1#%d", "recv gamma claim 1#%d", "up beta"},
		"the latest one waits": {"recv gamma accepted 1#%d", "up beta"},
	} {
		t.Run(name, func(t *testing.T) { numberManyAttempts(t, lines) })
	}
}

func numberManyAttempts(t *testing.T, latestOne []string) {
	s := &stage{t: t}
	id := job.ID{Origin: "alpha", Generation: 1, Seq: 1}
	do := func(format string) {
		if strings.Contains(format, "%d") {
			format = fmt.Sprintf(format, s.state.Job(id).Attempt)
		}
		s.do(format)
	}
	for _, line := range []string{"site processors=1 copies=1 scheme=k-distributed", "up beta", "load beta work=1 processors=8", "submit name=x processors=2 walltime=1h lost=race"} {
		do(line)
	}
	for s.state.Job(id).Attempt < 300 {
		for _, line := range []string{"recv beta accepted 1#%d", "recv beta claim 1#%d", "recv beta give-back 1#%d"} {
			do(line)
		}
	}
	earlier := s.state.Job(id).Attempt
	for _, line := range []string{"recv beta accepted 1#%d", "recv beta claim 1#%d", "up gamma", "load gamma work=1 processors=8", "down beta", "wait 61s"} {
		do(line)
	}
	latest := s.state.Job(id).Attempt
	if latest != earlier+1 {
		t.Fatalf("attempt %d, the earlier one was %d", latest, earlier)
	}
	for _, line := range latestOne {
		do(line)
	}
	s.do(fmt.Sprintf("recv beta result 1#%d success files=1", earlier))
	j := s.state.Job(id)
	if j.Attempt != earlier || j.NextAttempt() != latest+1 {
		t.Errorf("attempt %d after attempt %d has outraced %d; the next one would be %d", j.Attempt, earlier, latest, j.NextAttempt())
	}
}
