//go:build !race

package sitesched

const raceEnabled = false
