// Package policy makes the policies of bags, which are texts in CEL, into what
// [kith/meta/bags] can ask. Its variables are in [bags.Vars], the reasons in ADR 0046.
//
//	text ─► parse ─► numbers to doubles ─► check ─► bounds ─► program
//	                                          └─► what it reads
//	scene ─► program ─► value, or UNDEFINED ─► verdict, kept until what is read changes
//
// It is pure: a value depends on the text and the scene alone, and the programs know no
// clock, no randomness and no order of maps. Nothing a user writes can do harm: texts
// are at most 4 KiB and 500 parts, nest at most 64 deep, and what evaluating one can cost is bounded
// when it is compiled, by the sizes that names and lists may have.
//
// An error at evaluation is UNDEFINED (spec 002 section 2.1): && and || take no notice of
// it where the other side decides, everything else hands it on, and a text that gives it
// falls back to what [bags.Texts] says.
//
// # Where to start
//
// parse.go parses and bounds texts, compile.go makes programs, judge.go asks them, explain.go says which part decided.
package policy
