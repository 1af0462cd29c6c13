//go:build race

package lab

// raceEnabled is set where everything takes ten times as long.
const raceEnabled = true
