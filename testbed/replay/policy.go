package replay

import (
	"errors"
	"fmt"
	"strings"

	"kith/sitesched"
)

// policies are the names under which published schedules go.
var policies = []struct {
	name     string
	backfill sitesched.Backfill
}{
	{"easy", sitesched.EASY},
	{"fcfs", sitesched.NoBackfill},
	{"cons-compress", sitesched.Conservative},
	{"cons-replan", sitesched.ConservativeReplan},
}

// ErrPolicy is wrapped by the error for a word that names no policy.
var ErrPolicy = errors.New("no such policy")

// Policies returns the words that [ParsePolicy] reads.
func Policies() []string {
	var names []string
	for _, p := range policies {
		names = append(names, p.name)
	}
	return names
}

// ParsePolicy reads easy, fcfs, cons-compress or cons-replan.
func ParsePolicy(s string) (sitesched.Backfill, error) {
	for _, p := range policies {
		if p.name == s {
			return p.backfill, nil
		}
	}
	return 0, fmt.Errorf("policy %.40q: %w; there are %s", s, ErrPolicy, strings.Join(Policies(), ", "))
}

// PolicyName returns the word that [ParsePolicy] reads.
func PolicyName(b sitesched.Backfill) string {
	for _, p := range policies {
		if p.backfill == b {
			return p.name
		}
	}
	return b.String()
}
