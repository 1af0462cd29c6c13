// Package whatif answers an operator's question: what would the users of this site have
// waited on last month, had it been another site?
//
// A [Question] has the attempts that ended at a site, how the site is, and what is to be
// different ([Changes]): more load, another policy, other queues, another size, a partner
// that is gone. [Open] checks it, [Study.Run] takes the jobs through the scheduler of kithd
// in virtual time twice, as the site is and as it would be (package replay), and the
// [Answer] compares the two job by job, for the site's own users and for those of each
// other site, and for each kind of job. [Answer.Page] is the same as a page to look at.
//
// What was is replayed, too, and not only what would be: a replay knows no drains, no
// restarts and no claims, so that only two replays can be compared. What users have really
// waited stands beside it, and says how far the replay can be believed.
//
// Would the site do better in a federation with others? [Question.Join] makes that a study
// of package join.
package whatif
