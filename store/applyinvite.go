package store

import (
	"fmt"
	"time"

	"kith/internal/job"
)

// RememberedFor is how long it is remembered what became of an invitation that a site used,
// or that expired.
const RememberedFor = 7 * 24 * time.Hour

func (c OpenInvitation) apply(s *State) error {
	if err := checkID("invitation", c.ID); err != nil {
		return err
	}
	if _, err := job.ParseSiteID(string(c.Name)); err != nil {
		return err
	}
	switch {
	case c.Name == s.site.ID:
		return fmt.Errorf("invitation for %s, which is this site: %w", c.Name, ErrNameTaken)
	case len(c.Verifier) == 0 || len(c.Verifier) > MaxVerifier:
		return fmt.Errorf("verifier of %d bytes: %w; give 1 to %d", len(c.Verifier), ErrBounds, MaxVerifier)
	case c.Expires <= c.Time:
		return fmt.Errorf("invitation that expires when it is made: %w; give it some minutes", ErrBounds)
	case s.trust.invitations[c.ID] != nil:
		return fmt.Errorf("invitation %s: %w", c.ID, ErrExists)
	}
	open := 0
	for _, i := range s.trust.invitations {
		if !i.State.Over() {
			open++
		}
	}
	if open >= MaxInvitations {
		return fmt.Errorf("%d invitations are open, at most %d: %w; refuse some or wait until they expire", open, MaxInvitations, ErrTrustFull)
	}
	s.putInvitation(&Invitation{
		ID: c.ID, Name: c.Name, Verifier: c.Verifier, State: InvitationOpen, Opened: c.Time, Expires: c.Expires, Actor: c.Actor,
	})
	return nil
}

// usable returns an invitation that is not over.
func (s *State) usable(id string, now job.Time) (*Invitation, error) {
	i := s.trust.invitations[id]
	switch {
	case i == nil:
		return nil, fmt.Errorf("invitation %.40q: %w", id, ErrUnknown)
	case i.State.Over():
		return nil, fmt.Errorf("invitation %s is %v: %w; ask for another one", id, i.State, ErrInvitationOver)
	case i.Expires <= now:
		return nil, fmt.Errorf("invitation %s is %v: %w; ask for another one", id, InvitationExpired, ErrInvitationOver)
	}
	return i, nil
}

// finish ends an invitation, and forgets the one that was over first if too many are remembered.
func (s *State) finish(i *Invitation, c CloseInvitation) {
	next := *i
	next.State, next.Closed, next.ClosedBy = c.State, c.Time, c.Actor
	if i.State == InvitationCame {
		next.Expires = c.Time.Add(RememberedFor)
	}
	if c.State != InvitationAdmitted {
		next.Verifier = nil // a site that was admitted may prove its secret again to be told so
	}
	s.putInvitation(&next)
	var first *Invitation
	over := 0
	for _, i := range s.trust.invitations {
		if !i.State.Over() {
			continue
		}
		over++
		if first == nil || i.Closed < first.Closed || i.Closed == first.Closed && i.ID < first.ID {
			first = i
		}
	}
	if over > MaxInvitations {
		s.removeInvitation(first.ID)
	}
}

func (c TryInvitation) apply(s *State) error {
	i, err := s.usable(c.ID, c.Time)
	if err != nil {
		return err
	}
	next := *i
	next.Tries++
	if next.Tries >= MaxTries {
		s.finish(&next, CloseInvitation{State: InvitationBurnt, Time: c.Time})
		return nil
	}
	s.putInvitation(&next)
	return nil
}

func (c ComeByInvitation) apply(s *State) error {
	i, err := s.usable(c.ID, c.Time)
	if err != nil {
		return err
	}
	j := &c.Joiner
	if j.Site != i.Name {
		return fmt.Errorf("invitation %s is for site %s, not for %.40q: %w; ask for one of your own name", c.ID, i.Name, j.Site, ErrNameTaken)
	}
	if err := s.mayAdmit(j.Site, &j.Bundle); err != nil {
		return err
	}
	if err := checkAbout(j.Addresses, j.Version); err != nil {
		return fmt.Errorf("site %s: %w", j.Site, err)
	}
	if i.State == InvitationCame {
		if j.Bundle.shares(&i.Joiner.Bundle) {
			return nil // the same site, whose answer was lost
		}
		s.finish(i, CloseInvitation{State: InvitationBurnt, Time: c.Time})
		return nil
	}
	next := *i
	next.State, next.Joiner = InvitationCame, *j
	next.Joiner.Came = c.Time
	s.putInvitation(&next)
	return nil
}

func (c CloseInvitation) apply(s *State) error {
	i := s.trust.invitations[c.ID]
	switch {
	case i == nil:
		return fmt.Errorf("invitation %.40q: %w", c.ID, ErrUnknown)
	case !c.State.Over() || c.State > InvitationBurnt:
		return fmt.Errorf("invitation %s cannot end as %v: %w", c.ID, c.State, ErrState)
	case i.State == c.State:
		return nil
	case i.State.Over():
		return fmt.Errorf("invitation %s is %v: %w", c.ID, i.State, ErrInvitationOver)
	case c.State == InvitationAdmitted && i.State != InvitationCame:
		return fmt.Errorf("invitation %s, by which none has come: %w", c.ID, ErrState)
	}
	s.finish(i, c)
	return nil
}

func (c MakeToken) apply(s *State) error {
	if err := checkID("token", c.ID); err != nil {
		return err
	}
	switch {
	case len(c.User) > MaxTrustText || c.User == "":
		return fmt.Errorf("token %s: user %.64q: %w; give 1 to %d bytes", c.ID, c.User, ErrBounds, MaxTrustText)
	case c.Expires <= c.Time:
		return fmt.Errorf("token %s ends before it is made: %w; give it some time", c.ID, ErrBounds)
	case s.trust.tokens[c.ID] != nil:
		return fmt.Errorf("token %s: %w", c.ID, ErrExists)
	}
	if s.tokensThat(false) >= MaxTokens {
		s.pruneTokens(c.Time)
	}
	if n := s.tokensThat(false); n >= MaxTokens {
		return fmt.Errorf("token %s: %d tokens have not expired, at most %d: %w; revoke some, and make them for a shorter time", c.ID, n, MaxTokens, ErrTrustFull)
	}
	s.putToken(&Token{ID: c.ID, User: c.User, Expires: c.Expires, Made: c.Time, Maker: c.Actor})
	return nil
}

// tokensThat counts those that were revoked, or those that were not.
func (s *State) tokensThat(revoked bool) (n int) {
	if len(s.trust.tokens) < min(MaxTokens, MaxRevokedTokens) {
		return len(s.trust.tokens) // no bound is near
	}
	for _, t := range s.trust.tokens {
		if (t.Revoked != 0) == revoked {
			n++
		}
	}
	return n
}

func (c RevokeToken) apply(s *State) error {
	if err := checkID("token", c.ID); err != nil {
		return err
	}
	t := s.trust.tokens[c.ID]
	switch {
	case t == nil && !c.Unlisted:
		return fmt.Errorf("token_id %q: %w; kith token list has their ids. If it was made by a data folder that was lost: kith token revoke --unlisted", c.ID, ErrNoToken)
	case c.Expires <= c.Time || t != nil && t.Revoked != 0:
		return nil // it counts no more
	}
	if s.tokensThat(true) >= MaxRevokedTokens {
		s.pruneTokens(c.Time)
	}
	if n := s.tokensThat(true); n >= MaxRevokedTokens {
		return fmt.Errorf("token %s: %d revoked tokens have not expired, at most %d: %w; make a new token key, which ends all tokens", c.ID, n, MaxRevokedTokens, ErrTrustFull)
	}
	next := Token{ID: c.ID, Expires: c.Expires}
	if t != nil {
		next = *t
	}
	next.Revoked, next.Actor = max(c.Time, 1), c.Actor
	s.putToken(&next)
	return nil
}

func (s *State) pruneTokens(now job.Time) {
	for _, t := range s.Tokens() {
		if t.Expires <= now {
			s.removeToken(t.ID)
		}
	}
}

func (c PruneTrust) apply(s *State) error {
	s.pruneTokens(c.Time)
	for _, i := range s.Invitations() {
		switch {
		case i.Expires > c.Time:
		case i.State.Over():
			s.removeInvitation(i.ID)
		default:
			// Its text is of no use any more; for a while it is remembered what became of it.
			next := *i
			next.Expires = c.Time.Add(RememberedFor)
			s.finish(&next, CloseInvitation{State: InvitationExpired, Time: c.Time})
		}
	}
	s.trust.due = job.Never
	for _, t := range s.trust.tokens {
		s.expireAt(t.Expires)
	}
	for _, i := range s.trust.invitations {
		s.expireAt(i.Expires)
	}
	return nil
}
