//go:build race

package sitesched

// raceEnabled is set where everything takes ten times as long.
const raceEnabled = true
