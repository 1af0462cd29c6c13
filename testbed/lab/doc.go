// Package lab carries out the experiments of the papers that Kith is built on
// and says, statement by statement, what holds.
//
// A [Statement] is what a source says, with the band in which a measurement must
// lie. An [Experiment] is a table of statements and a function that finds out
// about them. [Execute] carries it out; its [Report] has one [Finding] for each
// statement, with the tables and plots behind them. [Page] and [Markdown] put
// several reports on one page.
//
// Each experiment is a package of its own below this one. All are built the same
// way, on a [Study]:
//
//   - a trial is one configuration that can be run. It is a comparable struct, so
//     that equal ones are run once;
//   - a [Question] is a statement together with the trials that it needs and a
//     function that judges;
//   - a [Plan] runs trials with all seeds, as many at a time as the machine has
//     processors; its [Outcomes] are one value for each trial and seed;
//   - a [Source] has the jobs of a federation with large and small sites, generated
//     or from a log;
//   - [Answers] are the outcomes with whatever an experiment reads off them:
//     [Reading]s that [Conclude] puts together to a finding, tables, plots.
//
// Every simulated site runs the engines that kithd runs, through package
// federation; what only an experiment needs, such as a scheme with a central
// scheduler, is in the experiment's package.
//
// A band belongs to its statement and is that of the specification. It is never
// widened: a statement that does not reproduce fails, and its finding says why we
// think so. Bands are meant for runs of the source's size: a smaller one has a
// [Report.Caveat].
//
// An experiment depends on its [Env] only: the same seeds and the same workload
// give the same findings on any number of processors.
//
// # Add an experiment
//
// It is one folder and one line:
//
//  1. Make a folder testbed/lab/<name> for the package, with a file experiment.go
//     whose function Experiment() returns a [Experiment] with its id, title,
//     source, and the number of jobs and seeds that its bands are meant for.
//  2. Write its statements as [Question]s, with the bands of the specification,
//     in the specification's order and with ids that no other experiment has.
//  3. Write the trial, its run with one seed (usually a federation.Config and
//     the metrics of what comes of it), and the [Plan] that runs them.
//  4. Write Workload, Remark, Tables and Plots of its answers. Draw only what was
//     run: [Draw] and [WithRows] leave out the rest.
//  5. Test that each band accepts the source's own numbers and refuses numbers
//     just outside, and with labtest.Small that a small run has a finding for each
//     statement.
//  6. Add its line to the table in testbed/lab/experiments.
//  7. Run it, and write docs/reproduction.md again with the --markdown of lab run:
//     a test compares the page's statements with the table.
//
// Sources: spec 001 section 3, spec 004 section 3.
package lab
