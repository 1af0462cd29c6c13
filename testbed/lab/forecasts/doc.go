// Package forecasts measures how often forecasts hold, and what they are worth beside simpler
// ones: ranges of run times and of starts, at one site under EASY and conservative backfill,
// and in a federation whose jobs may start anywhere. Jobs are made up or come from a log; every
// forecast knows only what had happened when it was made.
package forecasts
