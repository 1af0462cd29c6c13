package bags

import (
	"fmt"
	"time"

	"kith/internal/job"
)

// PilotSlack is what the walltime of a pilot has above that of its tasks: asking for the
// first one and bringing what it needs take their time. Without it the longest task would
// never fit into what is left.
const PilotSlack = time.Minute

// MaxTaskWalltime is the longest walltime of a task: a pilot for a longer one would need
// more than a copy may have.
const MaxTaskWalltime = job.MaxWalltime - PilotSlack

// PilotWalltime returns the walltime of pilots of a shape at a site that lets them run for a
// turn.
func (s Shape) PilotWalltime(turn time.Duration) time.Duration {
	return min(max(s.Walltime, turn)+PilotSlack, job.MaxWalltime)
}

// Shortest returns a walltime below that of every task of the shape, by an
// eighth at most, but for the unit.
func (s Shape) Shortest() time.Duration {
	at := step(ceil(uint64(s.Walltime), uint64(walltimeUnit)))
	return walltimeOf(at - 1)
}

// Yield is what pilots do while a home job waits.
type Yield uint8

// The ways to yield.
const (
	YieldNever Yield = 0
	YieldTask  Yield = 1 // a pilot ends after its present task
	YieldNow   Yield = 2 // its task is stopped, which is no failure
)

// String returns the word of the way in configurations.
func (y Yield) String() string {
	if int(y) < len(yieldTexts) {
		return yieldTexts[y]
	}
	return fmt.Sprintf("yield(%d)", uint8(y))
}

var yieldTexts = [...]string{"never", "task", "now"}

// Moment is all that decides what a pilot does next.
type Moment struct {
	// Left is of the pilot's walltime. Running says that it runs a task.
	Left    time.Duration
	Running bool
	// Fits says that the stock has a task that fits into Left ([Stock.Fits]), Stock how many
	// it has.
	Fits  bool
	Stock int
	// Coming says that an ask is under way or about to leave; Shortest is below the walltime
	// of any task of the shape ([Shape.Shortest]).
	Coming   bool
	Shortest time.Duration
	// Draining: the site starts nothing any more. HomeWaits: a job of its own users waits for
	// processors, and was not waiting already when the pilot was let go ahead of it.
	Draining, HomeWaits bool
	Yield               Yield
}

// Act is what a pilot does next.
type Act uint8

// What a pilot can do.
const (
	Go     Act = iota // it goes on with its task, or waits for one
	Begin             // it begins the next task of its stock
	Finish            // it ends
	Stop              // its task is stopped and goes back, then it ends
)

// Why says why a pilot ends.
type Why uint8

// Why pilots end.
const (
	NoReason Why = iota
	Drained
	Yielded  // to a home job
	TurnOver // no task fits into what is left
	NoWork   // there is no task, and none is coming
)

var whyTexts = [...]string{"", "the site drains", "a home job waits", "its turn is over", "no task is there or coming"}

// String returns the reason in words.
func (w Why) String() string {
	if int(w) >= len(whyTexts) {
		return fmt.Sprintf("reason(%d)", uint8(w))
	}
	return whyTexts[w]
}

// Next returns what a pilot does next, and why if it ends. A task that runs is stopped for
// a home job only, where the site says so; otherwise it ends first. At a slots site a
// pilot ends as soon as there is nothing to do: its processors are worth more than its
// place, and another one starts in milliseconds.
//
// Source: design, pilots; in the paper clients quit after minutes without work (spec 002
// section 2.7), as theirs wait hours for a place.
func (m Moment) Next() (Act, Why) {
	yields := m.HomeWaits && m.Yield != YieldNever
	switch {
	case m.Running && yields && m.Yield == YieldNow:
		return Stop, Yielded
	case m.Running:
		return Go, NoReason
	case m.Draining:
		return Finish, Drained
	case yields:
		return Finish, Yielded
	case m.Fits:
		return Begin, NoReason
	case m.Stock > 0 || m.Left <= m.Shortest:
		return Finish, TurnOver
	case m.Coming:
		return Go, NoReason
	}
	return Finish, NoWork
}

// IdleStock is how long a stock stays without a running pilot: the next turn mostly comes
// sooner, and what waits longer is better off elsewhere.
const IdleStock = 30 * time.Second

// GiveBack reports whether all tasks of a stock go back to their origin, where pilots run
// for it or the last one ended at since; and when it should be looked at again if not.
func GiveBack(pilots int, since, now job.Time, draining bool) (back bool, again job.Time) {
	switch due := since.Add(IdleStock); {
	case draining:
		return true, 0
	case pilots > 0:
		return false, job.Never
	case now >= due:
		return true, 0
	default:
		return false, due
	}
}
