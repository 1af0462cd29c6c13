package job

import "fmt"

// A Dependency is a job or a bag of the same origin that must have ended before another
// one may start.
type Dependency struct {
	// On is what is waited for; zero with [Singleton].
	On        ID
	Condition Condition
	State     DependencyState
}

// MaxDependencies is how many dependencies a job or a bag may have.
const MaxDependencies = 64

// Condition says how what is waited for must have ended. The numbers are stored, those of
// kith.v1.Dependency.Condition, and frozen.
type Condition uint8

// The conditions.
const (
	AfterOK    Condition = 1 // it completed; of a bag: every task did
	AfterAny   Condition = 2 // it ended in any way
	AfterNotOK Condition = 3 // it ended otherwise than AfterOK asks
	// Singleton: all jobs and bags of the same user and name that were submitted before have ended.
	Singleton Condition = 4

	conditionCount = 5
)

// DependencyState says what has become of a dependency. The numbers are stored, those of
// kith.v1.Dependency.State, and frozen.
type DependencyState uint8

// The states of a dependency. Only one that waits changes.
const (
	DependencyWaits  DependencyState = 1
	DependencyMet    DependencyState = 2
	DependencyBroken DependencyState = 3 // what was waited for ended in another way: it can never be met
	// DependencyDropped: what it was to hold back ended before, or another one was broken.
	DependencyDropped DependencyState = 4

	dependencyStateCount = 5
)

// Judge returns what becomes of a dependency when what it waits for has ended, well or not.
func (c Condition) Judge(ok bool) DependencyState {
	if c == AfterOK && !ok || c == AfterNotOK && ok {
		return DependencyBroken
	}
	return DependencyMet
}

// Known reports whether the condition is one of this version.
func (c Condition) Known() bool { return c >= AfterOK && c < conditionCount }

// Known reports whether the state is one of this version.
func (s DependencyState) Known() bool { return s >= DependencyWaits && s < dependencyStateCount }

var conditionNames = [conditionCount]string{
	AfterOK: "afterok", AfterAny: "afterany", AfterNotOK: "afternotok", Singleton: "singleton",
}

// String returns the word of Slurm's --dependency.
func (c Condition) String() string {
	if !c.Known() {
		return fmt.Sprintf("condition(%d)", uint8(c))
	}
	return conditionNames[c]
}

// String returns the dependency as --dependency has it.
func (d Dependency) String() string {
	if d.Condition == Singleton {
		return d.Condition.String()
	}
	return d.Condition.String() + ":" + d.On.String()
}

// Waiting returns how many of the dependencies are not decided.
func Waiting(after []Dependency) int {
	n := 0
	for i := range after {
		if after[i].State == DependencyWaits {
			n++
		}
	}
	return n
}
