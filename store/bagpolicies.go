package store

import (
	"fmt"

	"kith/internal/identity"
	"kith/internal/job"
)

// Bounds on the policies of a bag.
const (
	// MaxPolicyText is the longest text of a policy, in bytes.
	MaxPolicyText = 4096
	// PolicyCount is how many policies a bag may state.
	PolicyCount = 6
)

// BagPolicies are what the user of a bag says of hosts and order, as texts. What they
// mean is the business of the engine; here they are kept.
type BagPolicies struct {
	// Texts are in the order of [kith/meta/bags.Texts], "" for one that is not stated.
	Texts [PolicyCount]string
	// Version counts their changes: 0 is that of the submission.
	Version uint32
}

// Stated reports whether there is any text.
func (p *BagPolicies) Stated() bool { return p.Texts != [PolicyCount]string{} }

func (p *BagPolicies) check() error {
	for i, text := range p.Texts {
		if len(text) > MaxPolicyText {
			return fmt.Errorf("policy %d of %d bytes, it may have %d: %w", i, len(text), MaxPolicyText, ErrBounds)
		}
	}
	return nil
}

// SetPolicies replaces the policies of a bag. Version is that of those which it replaces.
// It fails with [ErrStale] if there are newer ones, with [ErrState] if the bag has ended or
// is being cancelled, and with [ErrBounds].
type SetPolicies struct {
	Bag     job.ID
	Texts   [PolicyCount]string
	Version uint32
	Actor   identity.Actor
	Time    job.Time
}

func (c SetPolicies) apply(s *State) error {
	b, err := s.knownBag(c.Bag)
	if err != nil {
		return err
	}
	p := BagPolicies{Texts: c.Texts, Version: c.Version + 1}
	switch err := p.check(); {
	case err != nil:
		return err
	case b.State.Terminal() || b.State == job.BagCancelling || b.CancelRequested:
		return fmt.Errorf("bag %v is %v: %w", b.ID, b.State, ErrState)
	case c.Version != b.Policies.Version:
		return fmt.Errorf("policies of bag %v: version %d, it has %d: %w", b.ID, c.Version, b.Policies.Version, ErrStale)
	}
	b.Policies = p
	b.Acts = withAct(b.Acts, Act{Time: c.Time, Kind: ActPolicies, Actor: c.Actor})
	s.touchBag(b)
	return nil
}
