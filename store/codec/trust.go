package codec

import (
	"fmt"

	"kith/internal/identity"
	"kith/internal/job"
	statev1 "kith/proto/gen/kith/state/v1"
	"kith/store"
)

// trustWrites encodes what has changed in the trust table.
func trustWrites(s *store.State, c *store.Changes) []Write {
	w := make([]Write, 0, len(c.Trusted)+len(c.Invitations)+len(c.Tokens))
	for _, site := range c.Trusted {
		if t := s.TrustedSite(site); t != nil {
			w = append(w, Write{Table: Trusted, Key: []byte(site), Value: seal(trustMessage(t))})
		} else {
			w = append(w, Write{Table: Trusted, Key: []byte(site), Value: nil})
		}
	}
	for _, id := range c.Invitations {
		if i := s.Invitation(id); i != nil {
			w = append(w, Write{Table: Invitations, Key: []byte(id), Value: seal(invitationMessage(i))})
		} else {
			w = append(w, Write{Table: Invitations, Key: []byte(id), Value: nil})
		}
	}
	for _, id := range c.Tokens {
		if t := s.Token(id); t != nil {
			w = append(w, Write{Table: Tokens, Key: []byte(id), Value: seal(tokenMessage(t))})
		} else {
			w = append(w, Write{Table: Tokens, Key: []byte(id), Value: nil})
		}
	}
	return w
}

func bundleMessage(b *store.Bundle) *statev1.BundleRecord {
	m := &statev1.BundleRecord{Data: b.Data, Sequence: b.Sequence, FloorNs: int64(b.Floor)}
	for i := range b.Keys {
		m.Keys = append(m.Keys, b.Keys[i][:])
	}
	return m
}

func bundle(m *statev1.BundleRecord) (store.Bundle, error) {
	b := store.Bundle{Data: m.GetData(), Sequence: m.GetSequence(), Floor: job.Time(m.GetFloorNs())}
	for _, k := range m.GetKeys() {
		var id store.KeyID
		if len(k) != len(id) {
			return store.Bundle{}, fmt.Errorf("key of %d bytes", len(k))
		}
		copy(id[:], k)
		b.Keys = append(b.Keys, id)
	}
	return b, nil
}

func trustMessage(t *store.TrustedSite) *statev1.TrustRecord {
	return &statev1.TrustRecord{
		SiteId: string(t.Site), State: uint32(t.State), Bundle: bundleMessage(&t.Bundle), Addresses: t.Addresses, Version: t.Version,
		SinceNs: int64(t.Since), Actor: string(t.Actor), LetRun: t.LetRun, ToldAddresses: t.Told.Addresses, ToldIncarnation: t.Told.Incarnation,
		Steps: t.Steps,
	}
}

func invitationMessage(i *store.Invitation) *statev1.InvitationRecord {
	m := &statev1.InvitationRecord{
		Id: i.ID, SiteId: string(i.Name), Verifier: i.Verifier, State: uint32(i.State), Tries: i.Tries, OpenTimeNs: int64(i.Opened),
		ExpireTimeNs: int64(i.Expires), Actor: string(i.Actor), CloseTimeNs: int64(i.Closed), ClosedBy: string(i.ClosedBy),
	}
	if j := &i.Joiner; j.Site != "" {
		m.Joiner = &statev1.JoinerRecord{
			SiteId: string(j.Site), Bundle: bundleMessage(&j.Bundle), Addresses: j.Addresses, Version: j.Version, CameTimeNs: int64(j.Came),
		}
	}
	return m
}

func tokenMessage(t *store.Token) *statev1.TokenRecord {
	return &statev1.TokenRecord{Id: t.ID, ExpireTimeNs: int64(t.Expires), RevokeTimeNs: int64(t.Revoked), Actor: string(t.Actor), User: t.User, MakeTimeNs: int64(t.Made), Maker: string(t.Maker)}
}

// Trusted reads one site of the trust table.
func (r *Reader) Trusted(value []byte) error {
	var m statev1.TrustRecord
	if err := open(value, &m); err != nil {
		return fmt.Errorf("trust record: %w", err)
	}
	site, err := job.ParseSiteID(m.GetSiteId())
	if err != nil {
		return fmt.Errorf("trust record: %w: %w", err, store.ErrCorrupt)
	}
	b, err := bundle(m.GetBundle())
	if err != nil {
		return fmt.Errorf("trust record of %s: %w: %w", site, err, store.ErrCorrupt)
	}
	r.state.RestoreTrusted(store.TrustedSite{
		Site: site, State: store.TrustState(min(m.GetState(), 255)), Bundle: b, Addresses: m.GetAddresses(), Version: m.GetVersion(),
		Since: job.Time(m.GetSinceNs()), Actor: identity.Actor(m.GetActor()), LetRun: m.GetLetRun(),
		Told: store.Told{Addresses: m.GetToldAddresses(), Incarnation: m.GetToldIncarnation()}, Steps: m.GetSteps(),
	})
	return nil
}

// Invitation reads one invitation.
func (r *Reader) Invitation(value []byte) error {
	var m statev1.InvitationRecord
	if err := open(value, &m); err != nil {
		return fmt.Errorf("invitation record: %w", err)
	}
	i := store.Invitation{
		ID: m.GetId(), Name: job.SiteID(m.GetSiteId()), Verifier: m.GetVerifier(), State: store.InvitationState(min(m.GetState(), 255)),
		Tries: m.GetTries(), Opened: job.Time(m.GetOpenTimeNs()), Expires: job.Time(m.GetExpireTimeNs()), Actor: identity.Actor(m.GetActor()),
		Closed: job.Time(m.GetCloseTimeNs()), ClosedBy: identity.Actor(m.GetClosedBy()),
	}
	if j := m.GetJoiner(); j != nil {
		b, err := bundle(j.GetBundle())
		if err != nil {
			return fmt.Errorf("invitation record %.64q: %w: %w", i.ID, err, store.ErrCorrupt)
		}
		i.Joiner = store.Joiner{
			Site: job.SiteID(j.GetSiteId()), Bundle: b, Addresses: j.GetAddresses(), Version: j.GetVersion(), Came: job.Time(j.GetCameTimeNs()),
		}
	}
	r.state.RestoreInvitation(i)
	return nil
}

// Token reads one revoked token.
func (r *Reader) Token(value []byte) error {
	var m statev1.TokenRecord
	if err := open(value, &m); err != nil {
		return fmt.Errorf("token record: %w", err)
	}
	r.state.RestoreToken(store.Token{
		ID: m.GetId(), Expires: job.Time(m.GetExpireTimeNs()), Revoked: job.Time(m.GetRevokeTimeNs()), Actor: identity.Actor(m.GetActor()),
		User: m.GetUser(), Made: job.Time(m.GetMakeTimeNs()), Maker: identity.Actor(m.GetMaker()),
	})
	return nil
}

// TrustReaders returns what reads each of [TrustTables].
func (r *Reader) TrustReaders() map[Table]func(value []byte) error {
	return map[Table]func([]byte) error{Trusted: r.Trusted, Invitations: r.Invitation, Tokens: r.Token}
}
