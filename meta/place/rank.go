package place

import "fmt"

// Rank is what sites are ranked by; less is better.
type Rank uint8

// The ranks (spec 001 section 2.3, spec 004 section 2.2). The numbers are stored; they are frozen.
const (
	RankWork       Rank = 0 // load "work": seconds to drain the site
	RankProcs      Rank = 1 // load "procs": processors asked for over processors there
	RankStart      Rank = 2 // the job's earliest start in the site's surface, asked for at each submission
	RankCompletion Rank = 3 // predicted start plus run time, asked for at each submission (MCT)
	RankNone       Rank = 4 // no choice was to be made
	RankForecast   Rank = 5 // median of when the job would end by forecasts, plus Options.Risk deviations

	// RankUnset leaves the rank to the scheme, or else to RankWork. It is an
	// option only: no decision has it.
	RankUnset Rank = 255
)

var rankNames = map[Rank]string{
	RankWork: "work", RankProcs: "procs", RankStart: "start", RankCompletion: "completion", RankNone: "none", RankForecast: "forecast", RankUnset: "unset",
}

// String returns the rank's word.
func (r Rank) String() string {
	if s, ok := rankNames[r]; ok {
		return s
	}
	return fmt.Sprintf("rank-%d", uint8(r))
}

// ParseRank returns the rank of a word.
func ParseRank(word string) (Rank, bool) {
	for _, r := range []Rank{RankWork, RankProcs, RankStart, RankCompletion, RankForecast} {
		if r.String() == word {
			return r, true
		}
	}
	return 0, false
}

// question is what sites must be asked for the rank.
func (r Rank) question() Question {
	switch r {
	case RankStart:
		return AskStart
	case RankCompletion:
		return AskPredict
	case RankForecast:
		return AskForecast
	}
	return AskNothing
}
