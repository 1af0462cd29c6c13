// Package mutants keeps small bugs that a programmer could make: each takes away one
// of the rules that keep a job from running twice, or from being lost. Each must
// be caught, by exploration (testbed/check/explore) or by the search for schedules of
// faults (testbed/check/faults); the test says by which, with how many states or which
// seed.
//
// A mutant is a replacement of text in a file of the engines. The shipped code
// knows nothing of them: the test writes all mutants to another place, each function with
// its variants, and builds once with the go command's -overlay. The environment then says
// which mutant a process is.
//
// Guards are the checks that keep attackers out. Each is a place in the code, and a test of
// its package that must fail when the guard is out. They are all built into one program of
// tests for each package, with switches.
//
//	go test ./testbed/check/mutants -mutants            all of them, some minutes
//	go test ./testbed/check/mutants -mutants -only NAME one
package mutants
