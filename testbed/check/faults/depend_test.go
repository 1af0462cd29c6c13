package faults

import (
	"strings"
	"testing"

	"kith/internal/job"
)

// Small schedules in which jobs and bags wait for others: how many processes each must have
// begun, and as what its last job ended.
func TestDependenciesAsTold(t *testing.T) {
	const sites = "run seed=1 end=10m scheme=k-dual latency=10ms sync=2ms\nsite s0 processors=4\nsite s1 processors=4\n"
	for name, c := range map[string]struct {
		text   string
		starts int
		last   job.State
	}{
		"what follows a success":                         {"job 1 from=s0\njob 2 from=s0 after=afterok:1", 2, job.Completed},
		"what follows a failure never starts":            {"job 1 from=s0 run=1m walltime=30s\njob 2 from=s0 after=afterok:1\njob 3 from=s0 after=afterok:2", 1, job.Cancelled},
		"what is to tell of a failure":                   {"job 1 from=s0 run=1m walltime=30s\njob 2 from=s0 after=afternotok:1", 2, job.Completed},
		"and of a success does not":                      {"job 1 from=s0\njob 2 from=s0 after=afternotok:1", 1, job.Cancelled},
		"whatever comes of it":                           {"job 1 from=s0\nact cancel 1 at=10s\njob 2 from=s0 after=afterany:1", 2, job.Completed},
		"of a bag all tasks must have succeeded":         {"bag 1 from=s0 tasks=5 run=1s fails=5\njob 1 from=s0 after=afterok:bag1", 5, job.Cancelled},
		"a bag that waits":                               {"job 1 from=s0\nbag 1 from=s0 tasks=5 run=1s after=afterok:1\njob 2 from=s0 after=afterok:bag1", 7, job.Completed},
		"the origin dies and comes back meanwhile":       {"job 1 from=s0\njob 2 from=s0 after=afterok:1\nfault crash s0 at=10s for=2m", 2, job.Completed},
		"singletons":                                     {"job 1 from=s0 name=x\njob 2 from=s0 name=x after=singleton\njob 3 from=s0 at=1s name=x after=singleton", 3, job.Completed},
		"one whose user has it run anyway does not wait": {"job 1 from=s0 run=1m walltime=30s\nbag 1 from=s0 tasks=2 run=1s after=afterok:1\nact retry-bag 1 at=5m", 3, job.TimedOut},
	} {
		s, err := Parse(sites + c.text)
		if err != nil {
			t.Fatal(err)
		}
		r := Run(s, nil)
		last := r.Jobs[s.Jobs[len(s.Jobs)-1].Number].State
		if r.Violation != nil || r.Starts != c.starts || last != c.last {
			t.Errorf("%s: %d starts, want %d; the last is %v, want %v; %v", name, r.Starts, c.starts, last, c.last, r.Violation)
		}
	}
}

func TestParseDependencies(t *testing.T) {
	for text, want := range map[string]string{
		"after=afterok":                          "choose afterok",
		"after=afterok:0":                        "choose afterok",
		"after=singleton:1":                      "choose afterok",
		"after=aftercorr:1":                      "choose afterok",
		"after=singleton,singleton,singleton,x:": "at most 3",
		"after=afterok:7":                        "no such thing",
		"after=afterok:bag1":                     "no such thing",
		"after=afterok:3":                        "no such thing",
		"after=afterok:2":                        "waits for itself",
	} {
		_, err := Parse("site a\nsite b\njob 1 from=a " + text + "\njob 2 from=a after=afterany:1\njob 3 from=b")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Some schedules with bags have dependencies, of each kind, and a smaller schedule names
// nothing that it has not.
func TestDependenciesAreDrawn(t *testing.T) {
	kinds := make(map[job.Condition]int)
	with := 0
	for seed := range uint64(300) {
		s, has := Bagged(seed, Size{}), false
		for _, p := range s.places() {
			for _, d := range p.waits.After {
				if !d.none() {
					kinds[d.Condition]++
					has = true
				}
			}
		}
		if has {
			with++
		}
		if err := s.check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s.Jobs = s.Jobs[:len(s.Jobs)/2]
		s.forgetMissing()
		if err := s.check(); err != nil {
			t.Fatalf("seed %d without half of its jobs: %v", seed, err)
		}
	}
	if with < 60 || with > 140 || len(kinds) != 4 {
		t.Errorf("%d of 300 schedules have dependencies, of kinds %v", with, kinds)
	}
}
