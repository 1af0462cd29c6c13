package store

import (
	"bytes"
	"fmt"
	"slices"

	"kith/internal/job"
)

// check returns an error for a bundle that no site can be known by.
func (b *Bundle) check() error {
	switch {
	case len(b.Data) == 0 || len(b.Keys) == 0:
		return fmt.Errorf("bundle without a CA: %w; a site cannot be known by nothing", ErrBounds)
	case len(b.Data) > MaxBundle:
		return fmt.Errorf("bundle of %d bytes, at most %d: %w; leave out CAs that are used no more", len(b.Data), MaxBundle, ErrBounds)
	case len(b.Keys) > MaxBundleKeys:
		return fmt.Errorf("bundle of %d CAs, at most %d: %w; leave out CAs that are used no more", len(b.Keys), MaxBundleKeys, ErrBounds)
	case b.Sequence == 0:
		return fmt.Errorf("bundle with sequence 0: %w; count from 1", ErrBounds)
	}
	return nil
}

// follows returns an error if b cannot take the place of an earlier bundle of the same site.
func (b *Bundle) follows(old *Bundle) error {
	switch {
	case b.Sequence < old.Sequence:
		return fmt.Errorf("bundle with sequence %d, known is %d: %w", b.Sequence, old.Sequence, ErrOldBundle)
	case b.Sequence == old.Sequence && !bytes.Equal(b.Data, old.Data):
		return fmt.Errorf("another bundle with sequence %d, which is known: %w", b.Sequence, ErrOldBundle)
	case b.Floor < old.Floor:
		return fmt.Errorf("bundle whose floor is %v earlier than the known one: %w", old.Floor.Sub(b.Floor), ErrOldBundle)
	}
	return nil
}

func checkAbout(addresses []string, version string) error {
	if len(addresses) > MaxAddresses {
		return fmt.Errorf("%d addresses, at most %d: %w; name those that others reach", len(addresses), MaxAddresses, ErrBounds)
	}
	for _, a := range addresses {
		if a == "" || len(a) > MaxAddress || !printable(a) {
			return fmt.Errorf("address %.64q: %w; give host:port of at most %d printable characters", a, ErrBounds, MaxAddress)
		}
	}
	if len(version) > MaxTrustText || !printable(version) {
		return fmt.Errorf("version %.64q: %w; give at most %d printable characters", version, ErrBounds, MaxTrustText)
	}
	return nil
}

// printable reports whether a text has visible ASCII and blanks only.
func printable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

func checkID(what, id string) error {
	bad := id == "" || len(id) > MaxTrustID
	for i := 0; i < len(id) && !bad; i++ {
		c := id[i]
		bad = (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.'
	}
	if bad {
		return fmt.Errorf("%s id %.64q: %w; use 1 to %d letters, digits and \"-_.\"", what, id, ErrBounds, MaxTrustID)
	}
	return nil
}

func (c AdmitSite) apply(s *State) error {
	if err := s.mayAdmit(c.Site, &c.Bundle); err != nil {
		return err
	}
	if err := checkAbout(c.Addresses, c.Version); err != nil {
		return fmt.Errorf("site %s: %w", c.Site, err)
	}
	if err := checkAbout(c.Told, ""); err != nil {
		return fmt.Errorf("site %s: %w", c.Site, err)
	}
	steps := c.Steps
	if t := s.trust.sites[c.Site]; t != nil && t.State == SiteKnown {
		steps = t.Steps
	}
	s.putSite(&TrustedSite{
		Site: c.Site, State: SiteKnown, Bundle: c.Bundle, Addresses: c.Addresses, Told: Told{Addresses: c.Told}, Version: c.Version, Since: c.Time, Actor: c.Actor,
		Steps: steps,
	})
	return nil
}

// mayAdmit returns why a site cannot be admitted with a bundle. A name belongs to the
// bundle that it was admitted with, and to those that have a CA in common with it, until
// it is revoked.
func (s *State) mayAdmit(site job.SiteID, b *Bundle) error {
	if _, err := job.ParseSiteID(string(site)); err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return fmt.Errorf("site %s: %w", site, err)
	}
	switch t := s.trust.sites[site]; {
	case site == s.site.ID:
		return fmt.Errorf("site %s is this site: %w", site, ErrNameTaken)
	case t == nil:
		if len(s.trust.sites) >= MaxTrustedSites {
			return fmt.Errorf("site %s: %d sites are in the trust table, at most %d: %w; forget one that was revoked: kith site forget SITE --revoked", site, len(s.trust.sites), MaxTrustedSites, ErrTrustFull)
		}
	case b.shares(&t.Bundle):
		if err := b.follows(&t.Bundle); err != nil {
			return fmt.Errorf("site %s: %w", site, err)
		}
	case t.State == SiteKnown:
		return fmt.Errorf("site %s is known here by another CA: %w; if the new CA is the right one, revoke %s first and invite it again", site, ErrNameTaken, site)
	}
	return nil
}

func (c TakeBundle) apply(s *State) error {
	t, err := s.knownSite(c.Site)
	if err != nil {
		return err
	}
	if err := c.Bundle.check(); err != nil {
		return fmt.Errorf("site %s: %w", c.Site, err)
	}
	if err := c.Bundle.follows(&t.Bundle); err != nil {
		return fmt.Errorf("site %s: %w", c.Site, err)
	}
	if c.Bundle.Sequence == t.Bundle.Sequence {
		return nil
	}
	next := *t
	next.Bundle = c.Bundle
	// A thief of a certificate may have named addresses as of any start.
	next.Told.Incarnation = 0
	s.putSite(&next)
	return nil
}

func (c TakeAddresses) apply(s *State) error {
	t, err := s.knownSite(c.Site)
	if err != nil {
		return err
	}
	if err := checkAbout(c.Told.Addresses, ""); err != nil {
		return fmt.Errorf("site %s: %w", c.Site, err)
	}
	same := slices.Equal(c.Told.Addresses, t.Told.Addresses)
	switch {
	case c.Told.Incarnation < t.Told.Incarnation:
		return fmt.Errorf("site %s: addresses as of start %d, known are those of start %d: %w", c.Site, c.Told.Incarnation, t.Told.Incarnation, ErrOldAddresses)
	case c.Told.Incarnation == t.Told.Incarnation && same:
		return nil
	case c.Told.Incarnation == t.Told.Incarnation && c.Told.Incarnation != 0:
		return fmt.Errorf("site %s: other addresses of the same start %d: %w", c.Site, c.Told.Incarnation, ErrOldAddresses)
	}
	next := *t
	next.Told = c.Told
	if !same {
		// What was its own word before holds no more.
		next.Addresses = slices.DeleteFunc(slices.Clone(t.Addresses), func(a string) bool { return slices.Contains(t.Told.Addresses, a) })
	}
	s.putSite(&next)
	return nil
}

func (c SetAddresses) apply(s *State) error {
	t, err := s.knownSite(c.Site)
	if err != nil {
		return err
	}
	if len(c.Addresses) == 0 {
		return fmt.Errorf("site %s: no address: %w; give 1 to %d", c.Site, ErrBounds, MaxAddresses)
	}
	if err := checkAbout(c.Addresses, ""); err != nil {
		return fmt.Errorf("site %s: %w", c.Site, err)
	}
	next := *t
	next.Addresses, next.Told = c.Addresses, Told{}
	s.putSite(&next)
	return nil
}

// knownSite returns the record of a site that has not been revoked.
func (s *State) knownSite(site job.SiteID) (*TrustedSite, error) {
	switch t := s.trust.sites[site]; {
	case t == nil:
		return nil, fmt.Errorf("site %.40q in the trust table: %w", site, ErrUnknown)
	case t.State != SiteKnown:
		return nil, fmt.Errorf("site %s: %w; invite it again", site, ErrRevoked)
	default:
		return t, nil
	}
}

func (c RevokeSite) apply(s *State) error {
	t := s.trust.sites[c.Site]
	if t == nil {
		return fmt.Errorf("site %.40q in the trust table: %w", c.Site, ErrUnknown)
	}
	if t.State == SiteRevoked && (c.LetRun || !t.LetRun) {
		return nil // what was stopped stays so
	}
	next := *t
	next.State, next.LetRun, next.Since, next.Actor = SiteRevoked, c.LetRun, c.Time, c.Actor
	s.putSite(&next)
	return nil
}

func (c ForgetTrust) apply(s *State) error {
	switch t := s.trust.sites[c.Site]; {
	case t == nil:
		return fmt.Errorf("site %.40q in the trust table: %w", c.Site, ErrUnknown)
	case t.State == SiteKnown:
		return fmt.Errorf("site %s is trusted: %w; revoke it first", c.Site, ErrState)
	}
	s.removeSite(c.Site)
	return nil
}

func (c SetBundleSequence) apply(s *State) error {
	if c.Sequence < s.site.BundleSequence {
		return fmt.Errorf("own bundle with sequence %d, the latest is %d: %w", c.Sequence, s.site.BundleSequence, ErrOldBundle)
	}
	if c.Sequence > s.site.BundleSequence {
		s.site.BundleSequence = c.Sequence
		s.changes.Site = true
	}
	return nil
}

// checkTrust returns what in the table cannot have come from Apply.
func (s *State) checkTrust() error {
	for _, t := range s.trust.sites {
		if t.State != SiteKnown && t.State != SiteRevoked || t.Site == s.site.ID {
			return fmt.Errorf("trusted site %s in state %d: %w", t.Site, t.State, ErrCorrupt)
		}
		if err := t.Bundle.check(); err != nil {
			return fmt.Errorf("trusted site %s: %w: %w", t.Site, err, ErrCorrupt)
		}
	}
	for _, i := range s.trust.invitations {
		if i.State < InvitationOpen || i.State > InvitationBurnt || (i.State == InvitationCame) && i.Joiner.Site == "" {
			return fmt.Errorf("invitation %s in state %d: %w", i.ID, i.State, ErrCorrupt)
		}
	}
	return nil
}

// RestoreTrusted, RestoreInvitation and RestoreToken put what a back end has read into a
// new state, after the site.

// RestoreTrusted adds a site of the trust table.
func (s *State) RestoreTrusted(t TrustedSite) {
	s.putSite(&t)
	s.changes.Trusted = nil
}

// RestoreInvitation adds an invitation.
func (s *State) RestoreInvitation(i Invitation) {
	s.putInvitation(&i)
	s.changes.Invitations = nil
}

// RestoreToken adds a token.
func (s *State) RestoreToken(t Token) {
	s.putToken(&t)
	s.changes.Tokens = nil
}
