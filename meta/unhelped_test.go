package meta_test

import (
	"strconv"
	"testing"
	"time"

	"kith/internal/job"
)

// A site that refused a job for what the job is does not have it placed again by running
// dry: the pauses between its attempts double. Another site, or the same one with another
// stream, may take it, and has it placed at once.
func TestPausesOfAJobThatIdleSitesRefuse(t *testing.T) {
	s := &stage{t: t}
	id := job.ID{Origin: "alpha", Generation: 1, Seq: 1}
	attempt := func() uint32 { return s.state.Job(id).Attempt }
	// offers has beta run dry again and again, and refuse each attempt.
	offers := func(span time.Duration) {
		for end := s.now.Add(span); s.now < end; {
			before := attempt()
			s.do("load beta work=0 free=8 processors=8")
			s.do("wait 1s")
			if attempt() != before {
				s.do("recv beta refused 1#" + number(attempt()) + " reason=" + number(uint32(job.Directory)))
			}
		}
	}
	for _, line := range []string{
		"site processors=1 copies=1 scheme=k-distributed conserve", "up beta", "load beta work=0 free=8 processors=8", "submit name=x processors=2 walltime=1h dir=/data",
		"recv beta refused 1#1 reason=" + number(uint32(job.Directory)),
	} {
		s.do(line)
	}
	offers(10 * time.Minute)
	if n := attempt(); n > 8 { // after 5, 10, 20, ... 320 s
		t.Errorf("%d attempts in 10 minutes at a site that wants none", n)
	}
	for _, news := range [][]string{
		{"down beta", "up beta", "load beta work=0 free=8 processors=8"},
		{"up gamma", "load gamma work=0 free=8 processors=8"},
	} {
		before := attempt()
		for _, line := range news {
			s.do(line)
		}
		s.do("wait 6s")
		if attempt() != before+1 {
			t.Errorf("%v: attempt %d, want %d", news, attempt(), before+1)
		}
		s.do("recv beta refused 1#" + number(attempt()) + " reason=" + number(uint32(job.Directory)))
		offers(10 * time.Second)
	}
}

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
