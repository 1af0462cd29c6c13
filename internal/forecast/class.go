package forecast

import "time"

// Class is a class of forecasts that are recalibrated and counted together.
type Class uint8

// RunClasses and StartClasses are how many classes there are.
const (
	RunClasses   = 4
	StartClasses = 3
)

// RunClass returns the class of a run time by the limit of the job and by how many jobs of
// its user have ended, 0 to [RunClasses] − 1.
func RunClass(limit time.Duration, jobs int) Class {
	c := Class(0)
	if limit > 4*time.Hour {
		c = 2
	}
	if jobs >= 20 {
		c++
	}
	return c
}

var (
	runClassNames   = [RunClasses]string{"limit up to 4 h, new user", "limit up to 4 h", "limit above 4 h, new user", "limit above 4 h"}
	startClassNames = [StartClasses]string{"median up to 1 h", "1 h to 6 h", "above 6 h"}
)

// RunClassName and StartClassName name a class for people.
func RunClassName(c Class) string { return runClassNames[min(int(c), RunClasses-1)] }

// StartClassName names a class of starts for people.
func StartClassName(c Class) string { return startClassNames[min(int(c), StartClasses-1)] }

// StartClass returns the class of a wait by its median, 0 to [StartClasses] − 1.
func StartClass(median time.Duration) Class {
	switch {
	case median <= time.Hour:
		return 0
	case median <= 6*time.Hour:
		return 1
	}
	return 2
}
