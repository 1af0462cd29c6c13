// Package join answers an administrator's question: should we join a
// federation with these sites, and with how many copies of a job?
//
// A [Study] says which sites there are, which jobs each of them had, and how
// copies would be placed. [Study.Run] runs them twice and more, through the
// engines of kithd in virtual time (package federation): each site alone, and
// all together for each K. The [Answer] compares the two for the users of each
// site and for each kind of job, and says in a few sentences who wins and who
// loses. [Answer.Page] is the same as a page to look at.
package join
