// Package cli is what the command lines of this module share: kith, kith-lab
// and kithd are used alike because they stand on it.
//
// A program makes a [Program], gives it its verbs with [Program.Root] and runs
// one command line with [Program.Run]. What all verbs then have in common:
//
//   - --output table|json chooses between people and programs. With json, stdout
//     holds the answer as one JSON value and nothing else.
//   - A verb returns an error or nil. A [Failure] has one sentence for each
//     problem and the exit code; every other error counts as [ExitRefused].
//   - A wrong word or flag names the remedy and ends with [ExitUsage].
//   - A [Grid] is a table that fits the terminal. [Clean] makes text from
//     elsewhere safe to print.
//   - A file that a flag names is written whole or not at all: [CreateFile].
//
// The package opens no connection and knows no site, no daemon and no
// experiment.
package cli
