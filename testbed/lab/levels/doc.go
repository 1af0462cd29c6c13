// Package levels asks whether a hierarchy of levels is still needed where lengths are predicted: the same jobs
// on the same three sites, as levels for jobs of unknown length, and as one flat federation whose schedulers go
// by users' limits, by predicted ones, or by the truth.
package levels
