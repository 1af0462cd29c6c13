// Package scenarios keeps schedules of faults that have a name: those that
// users ask about, and every bug that was found by search, made small.
//
// Each text file here is one: a schedule as package faults reads it, and what is
// expected of its jobs beyond that no invariant breaks:
//
//	expect 1 COMPLETED host=s1 attempt=2 starts=1 from=5m to=6m
//
// Job 1 ends so, run by that site in that attempt; all in all so many processes
// were started for it, the last of them no earlier than from and no later than
// to. What is left out may be anything.
//
//	kith-lab faults --replay FILE
//
// tells the story of one.
package scenarios
