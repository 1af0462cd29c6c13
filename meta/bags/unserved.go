package bags

import (
	"slices"

	"kith/internal/job"
)

// Unserved are asks that got nothing, the oldest first: nodes that would run what is
// recalled. A recall that is not worth it when the ask comes may be later, when the tasks
// that others have turn out long. The zero value is empty.
type Unserved struct{ asks []Ask }

// Answer notes whether an ask got tasks. One that got none stands in the place of the
// node's earlier one.
func (u *Unserved) Answer(a Ask, tasks int) {
	at := slices.IndexFunc(u.asks, func(b Ask) bool { return a.Site == b.Site && a.Node == b.Node && a.Shape == b.Shape })
	switch {
	case at >= 0 && tasks > 0:
		u.asks = slices.Delete(u.asks, at, at+1)
	case at >= 0:
		u.asks[at] = a.Bounded()
	case tasks == 0:
		u.asks = append(u.asks, a.Bounded())
	}
}

// Recall returns for whom of those of a shape which stock should give
// back how many tasks, as [Recall]; none, with -1. Each ask has one recall: the node gets
// an offer of what comes back, and asks anew.
func (u *Unserved) Recall(shape Shape, holdings []Holding) (from, tasks int) {
	for i, a := range u.asks {
		if a.Shape != shape {
			continue
		}
		if from, tasks = Recall(a, holdings); from >= 0 {
			u.asks = slices.Delete(u.asks, i, i+1)
			return from, tasks
		}
	}
	return -1, 0
}

// Shapes returns the shapes of the asks, each once.
func (u *Unserved) Shapes() []Shape {
	var shapes []Shape
	for i := range u.asks {
		if !slices.Contains(shapes, u.asks[i].Shape) {
			shapes = append(shapes, u.asks[i].Shape)
		}
	}
	return shapes
}

// ForgetShape lets go of the asks of a shape: no site has tasks of it.
func (u *Unserved) ForgetShape(shape Shape) {
	u.asks = slices.DeleteFunc(u.asks, func(a Ask) bool { return a.Shape == shape })
}

// Forget lets go of the asks of a site: its connection is gone.
func (u *Unserved) Forget(site job.SiteID) {
	u.asks = slices.DeleteFunc(u.asks, func(a Ask) bool { return a.Site == site })
}
