package cluster

import (
	"fmt"

	"kith/internal/harvest"
)

// Owner is what a site says of the owner of its machine, who comes before all jobs: how much of
// it he is expected to take of a job of one processor, of half of them and of all, see
// [harvest.WidthOf]. It is not changed once it is made; nil stands for a site of which no owner
// has a part. All methods work on nil.
type Owner struct{ Loads [harvest.Widths]harvest.Load }

// Of returns what the owner takes of a job that has so many of the site's processors.
func (o *Owner) Of(taken, processors int32) harvest.Load {
	if o == nil {
		return harvest.Load{}
	}
	return o.Loads[harvest.WidthOf(taken, processors)]
}

// busiest is the share of the time from which on an owner leaves so little that a job is better
// off anywhere else (spec 003 section 2.7).
const busiest = 0.9

// TooBusy says that a job that has so many of the site's processors would hardly ever run.
func (o *Owner) TooBusy(taken, processors int32) bool { return o.Of(taken, processors).Rho > busiest }

// Left is the share of the time that is left to such a job, from 0.1 to 1: a site that leaves
// less takes none.
func (o *Owner) Left(taken, processors int32) float64 {
	return 1 - min(busiest, o.Of(taken, processors).Rho)
}

// What a site may say of its owner.
const (
	mostLambda = 1e3 // 1/s
	mostSigma  = 1e9 // s
)

// possible is [Digest.Possible] of an owner.
func (o *Owner) possible() error {
	if o == nil {
		return nil
	}
	for i := range o.Loads {
		switch l := &o.Loads[i]; {
		case !within(l.Rho, 0, 1):
			return impossible(ownerField(i, "rho"), l.Rho, "0 to 1")
		case !within(l.Lambda, 0, mostLambda):
			return impossible(ownerField(i, "lambda"), l.Lambda, "0 to 1000 a second")
		case !within(l.Sigma, 0, mostSigma):
			return impossible(ownerField(i, "sigma"), l.Sigma, "0 to 10^9 seconds")
		case l.Lambda == 0 && l.Rho > 0:
			return impossible(ownerField(i, "lambda"), l.Lambda, "above 0 where rho is")
		}
	}
	return nil
}

func ownerField(i int, name string) string { return fmt.Sprintf("owner_loads[%d].%s", i, name) }

// NewOwner makes an Owner of the loads of all widths. The error wraps [ErrImpossible].
func NewOwner(loads []harvest.Load) (*Owner, error) {
	if len(loads) != harvest.Widths {
		return nil, impossible("owner_loads", len(loads), fmt.Sprintf("%d loads, or none", harvest.Widths))
	}
	o := &Owner{Loads: [harvest.Widths]harvest.Load(loads)}
	return o, o.possible()
}
