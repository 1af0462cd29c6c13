// Package ghs is the experiment of the Grid Harvest Service (JPDC 2006, spec 003): predicting and
// placing work on machines whose owners come first.
//
// What predicts, divides and chooses is [harvest], as production has it. What it is held against is
// an [owner] who comes and goes in virtual time, job by job. His jobs have the source's life times
// where predictions are judged, and the machines are those of the specification's generator where
// choices are; both were written down before any result was looked at.
package ghs
