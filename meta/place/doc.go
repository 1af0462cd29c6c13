// Package place decides which sites get copies of a job.
//
// [Decide] is a pure function of the job, the view that its origin has of all
// sites, the time and a [Policy]. It changes none of them, asks no site and
// keeps nothing; a [Round] that is handed in only saves memory. What it
// thought of each site is data ([store.Decision]), kept with the job for
// `kith why`.
//
//	view ─► filter ─► estimate ─► weight ─► choose ─► decision
//	        refuses   scores      multiplies ranks,
//	        sites     the rest    scores     marks K
//
// A policy is a value with its stages. [Options] are what an operator may
// choose, and [Options.Policy] puts the stages together: the schemes of the
// papers are rows of one table (scheme.go), not branches in the stages.
//
// # How to add a stage
//
// Levels, forecasts, users' own expressions, features of sites and rules of
// trust are stages of one of the four kinds. For each:
//
//  1. Write one file with a function of the stage's type: [Filter], [Weight],
//     [Choose], or the Score of an [Estimate]. It reads the [Round] and changes
//     only r.Sites, so that equal inputs give equal decisions.
//  2. Name it in one line: in the row of its scheme (scheme.go), or in
//     [Options.Policy] if an option turns it on for every scheme.
//  3. A filter refuses with [Candidate.Refuse]. If no [job.Reason] says why, add
//     one there: the numbers are stored, so it goes last.
//  4. What a stage needs to know of another site is a field of [cluster.Digest]
//     with a type of its own, and its zero value means that the site did not say.
//     Texts for people decide nothing.
//  5. If an option turns it on, add the field to Options with unit, bounds and
//     default, and check it in [Options.Check].
//  6. Test it alone, with a View made by hand; example_test.go shows one.
//
// # Source
//
// Spec 999 section 2 has the pipeline, spec 001 sections 2.3 and 2.4 loads and
// schemes, spec 004 sections 2.2, 2.3 and 4 completion times and weights.
package place
