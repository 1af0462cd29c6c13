// Command kith is the command line of users and operators: it speaks gRPC to
// one kithd, which knows the others.
//
// Where to start: cli.go has the list of verbs and what all of them share, each
// verb is a file of its name. A verb returns an error or nil; errors.go turns
// errors into sentences for people, exit.go into exit codes for scripts. Both
// tables are promises: scripts depend on them.
//
// What a verb owes its user:
//
//   - With --output json it prints the response as proto JSON and nothing else
//     on stdout; verbs that follow something print one line per message.
//   - It prints its answer at the end and in one piece, so that a failure
//     leaves nothing half-printed.
//   - What comes from a site goes through [cli.Clean] before it reaches a
//     terminal: names and reasons are other people's text.
//
// A new verb is a function that returns a cobra command, and one line in
// verbs.
package main
