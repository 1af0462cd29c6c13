package bags

import (
	"time"

	"kith/internal/job"
)

// Bounds on asks and on what they get.
const (
	// MaxAsk is the most tasks that one ask gets.
	MaxAsk = 4096
	// MaxBundles is the most bundles that one ask gets: it bounds the answer, and the work
	// for it, where bags have few tasks each.
	MaxBundles = 64
	// MaxPlaces bounds [Ask.Places].
	MaxPlaces = 1 << 16
)

// Ahead is for how long a place has tasks of one ask. It hides the way to the origin and
// its disk many times over, and is short enough for what waits at one site to be no loss
// to others.
const Ahead = 2 * time.Second

// Ask is what a host says when it wants tasks of a shape for one of its nodes.
type Ask struct {
	Site  job.SiteID
	Node  string // of a site that has several; "" of others
	Shape Shape
	// Places is how many pilots run there for the shape, Running how many tasks they run,
	// Stock how many tasks of the asked origin are there and have not begun.
	Places, Running, Stock int
	// Mean is how long tasks of the shape have run there, 0 if none has ended.
	Mean time.Duration
	// Want is how many tasks it would take.
	Want int
}

// Bounded returns the ask with each number within its bounds.
func (a Ask) Bounded() Ask {
	a.Places = min(max(0, a.Places), MaxPlaces)
	a.Running = min(max(0, a.Running), a.Places)
	a.Stock = min(max(0, a.Stock), MaxAsk)
	a.Want = min(max(0, a.Want), MaxAsk)
	a.Mean = min(max(0, a.Mean), job.MaxWalltime)
	return a
}

// cost returns what a task takes of the room of an ask, which is [Ahead] for each place:
// its mean run time, but no more than the place has. So a place gets one long task, and
// of short ones two seconds' worth. What is not known is taken for long.
func cost(mean time.Duration) time.Duration {
	if mean <= 0 {
		return Ahead
	}
	return min(mean, Ahead)
}

// room returns how much a bounded ask may get, in units of [cost]. A stock may hold twice
// what one ask gets: whoever asks for more than it uses up does not get it.
func (a *Ask) room() time.Duration {
	whole := time.Duration(a.Places) * Ahead
	return max(0, min(whole, 2*whole-time.Duration(a.Stock)*cost(a.Mean)))
}

// fit returns how many tasks of a cost fit into room, of which the last may overhang.
func fit(room, cost time.Duration) int {
	if room <= 0 {
		return 0
	}
	return int((room-1)/cost) + 1
}
