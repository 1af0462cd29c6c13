//go:build race

package kdistributed

// raceEnabled is set where everything takes ten times as long.
const raceEnabled = true
