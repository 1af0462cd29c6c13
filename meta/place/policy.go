package place

import "kith/store"

// Policy is a way of placing jobs: the stages, in the order in which they
// run. It is a value, and deciding does not change it.
type Policy struct {
	// Filters refuse sites. Each sees the sites that those before it left.
	Filters []Filter
	// Estimates score the sites that are left. The first that can, scores all of
	// them: scores of different kinds cannot be compared.
	Estimates []Estimate
	// Weights multiply the scores.
	Weights []Weight
	// Choose ranks the sites and marks those that get a copy.
	Choose Choose

	// Draws says that a draw seeded by the job decides between equal scores,
	// after the origin; else the name does.
	Draws bool
	// Question is what the origin asks the sites before it decides.
	Question Question
	// KeepsOwn says that the origin gets a copy of each job that it can take,
	// whatever its rank. A job that can start there at once needs no answers.
	KeepsOwn bool
	// StaysHome says that no other site ever gets a copy. A job that is too
	// large for its origin is refused when it is submitted.
	StaysHome bool
	// Kept is how many sites a decision tells of, at most
	// [store.MaxDecisionSites]. Zero means the most. The chosen ones are told in any
	// case.
	Kept int
}

// The stages.
type (
	// Filter refuses the sites that must not get a copy, see [Candidate.Refuse].
	Filter func(r *Round)
	// Weight multiplies Weight of each site whose score it changes. Before the
	// first weight it is 1.
	Weight func(r *Round)
	// Choose sets Chosen of the sites that get a copy, and may set Reason of the
	// others. It leaves r.Sites in rank order, as far as the decision tells of
	// them ([Round.RankFirst]).
	Choose func(r *Round)
)

// Estimate gives sites a score.
type Estimate struct {
	// Rank is what the score stands for.
	Rank Rank
	// Score sets Score of each eligible site, or Blind if there is nothing to
	// score it by. It reports false, and changes nothing, if it cannot score in
	// this round; the next estimate is tried then.
	Score func(r *Round) bool
}

// Question is what sites are asked about a job before it is placed.
type Question uint8

// The questions.
const (
	AskNothing  Question = iota // loads are known as it is
	AskStart                    // the earliest start in the site's surface
	AskPredict                  // the start that the site's scheduler predicts
	AskForecast                 // a forecast of the start, or else that prediction
)

func (p *Policy) kept() int {
	if p.Kept <= 0 {
		return store.MaxDecisionSites
	}
	return min(p.Kept, store.MaxDecisionSites)
}
