// Package faults searches for schedules of faults that break what the design
// promises (docs/reliability.md).
//
// A [Schedule] says what is submitted, what users ask for, and what goes wrong
// when. [Random] makes one of a seed, [Run] plays it in a simulated federation
// (testbed/sim) that runs the very engines of kithd, watches every invariant
// after every event, ends all faults, and demands that every job then ends.
// [Search] does so for many seeds on all processors; what fails is made as
// small as possible by [Shrink], so that a person can read it. A schedule has
// a text form ([Parse], [Schedule.String]), in which testbed/check/scenarios keeps
// what was found.
//
// The same schedule is the same run, to the byte.
package faults
