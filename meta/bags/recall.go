package bags

import (
	"math"
	"time"

	"kith/internal/job"
	"kith/store"
)

// Holding is what an origin knows of a stock with tasks of a shape, from the host's asks
// and results.
type Holding struct {
	Site   job.SiteID
	Node   string
	Places int
	// Unstarted is how many of the origin's tasks are there that have not begun, without
	// those that were recalled already.
	Unstarted int
	Mean      time.Duration // 0 if no task has ended there
}

// WorthRecall is how long a stock must last for tasks of it to be recalled: shorter, they
// would have begun before the word comes.
const WorthRecall = 2 * time.Second

// Recall returns which stock should give back tasks for an ask that got none because none
// waits, and how many; none, with -1. It is the stock that lasts longest, and it gives the
// share that the asker would work off in the same time: afterwards both last equally long.
//
// The paper's larger bundles make longer tails (spec 002, G14), as what a host has fetched
// stays there.
func Recall(ask Ask, holdings []Holding) (from, tasks int) {
	ask = ask.Bounded()
	from = -1
	longest := WorthRecall
	for i := range holdings {
		h := &holdings[i]
		if h.Site == ask.Site && h.Node == ask.Node || h.Unstarted <= 0 {
			continue
		}
		if lasts := h.lasts(); lasts > longest {
			from, longest = i, lasts
		}
	}
	room := ask.room()
	if from < 0 || ask.Want == 0 || room == 0 {
		return -1, 0
	}
	h := &holdings[from]
	unstarted, places := min(h.Unstarted, job.MaxTasks), min(max(0, h.Places), MaxPlaces)
	share := (unstarted*ask.Places + places + ask.Places - 1) / (places + ask.Places)
	return from, min(share, unstarted, ask.Want, fit(room, cost(h.Mean)), store.MaxBundleTasks)
}

// lasts returns when the last task of the stock begins, for ever without a place.
func (h *Holding) lasts() time.Duration {
	if h.Places <= 0 {
		return math.MaxInt64
	}
	each := h.Mean
	if each <= 0 {
		each = FirstGuess
	}
	lasts := float64(each) * float64(h.Unstarted) / float64(h.Places)
	return time.Duration(min(lasts, math.MaxInt64/2))
}
