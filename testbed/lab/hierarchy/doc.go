// Package hierarchy is the study of spec 000: tasks of unknown length that begin at a small level and sink.
//
// Who has to leave a level, and why, is decided by package level, which copies of sub-jobs run where by
// the scheduler of package sitesched: one site for each grid, first come, first served; where two
// levels share a grid, the sub-jobs of the lower one are guests that local jobs do not see. Masters of
// tasks, estimators, owners who take processors away and the moves from level to level are played here.
package hierarchy
