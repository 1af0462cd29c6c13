//go:build !race

package kdistributed

const raceEnabled = false
