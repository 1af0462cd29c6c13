package store

import (
	"maps"
	"slices"

	"kith/internal/identity"
	"kith/internal/job"
)

// Bounds of the trust table. A command that would break one fails with [ErrBounds],
// or [ErrTrustFull] where there is no room for one record more.
const (
	// MaxTrustedSites bounds the sites in the table, revoked ones included.
	MaxTrustedSites = 1024
	// MaxBundle bounds [Bundle].Data in bytes, MaxBundleKeys its CAs.
	MaxBundle     = 16 << 10
	MaxBundleKeys = 8
	// MaxAddresses bounds the addresses of a site that operators named, and those that it
	// named itself, MaxAddress one of them in bytes,
	// MaxTrustText its version in bytes.
	MaxAddresses = 8
	MaxAddress   = 300
	MaxTrustText = 256
	// MaxInvitations bounds the invitations that are not over. As many that are over
	// are remembered, so that a second use is told what became of the first.
	MaxInvitations = 64
	// MaxTrustID bounds the id of an invitation or a token, MaxVerifier what the secret
	// of an invitation is checked by, both in bytes.
	MaxTrustID  = 64
	MaxVerifier = 64
	// MaxTries is how many wrong tries burn an invitation.
	MaxTries = 5
	// MaxRevokedTokens bounds the tokens that are revoked and have not expired.
	MaxRevokedTokens = 10_000
	// MaxTokens bounds the tokens that count and have not expired.
	MaxTokens = 10_000
)

// KeyID names a CA: the SHA-256 of its public key, as in its certificate.
type KeyID [32]byte

// Bundle is the CAs by which a site is known. Data is opaque here and never changed in
// place; a command says in Keys which CAs are in it.
type Bundle struct {
	Data []byte
	Keys []KeyID
	// Sequence grows with each bundle of a site; at least 1.
	Sequence uint64
	// Floor is the oldest time at which a leaf may have been made; 0 for any. It never
	// goes back as long as the bundles of a site have a CA in common.
	Floor job.Time
}

// shares reports whether two bundles have a CA in common.
func (b *Bundle) shares(o *Bundle) bool {
	return slices.ContainsFunc(b.Keys, func(k KeyID) bool { return slices.Contains(o.Keys, k) })
}

// TrustState says what a site of the table is to this one. The numbers are stored and frozen.
type TrustState uint8

// The states of a site in the table.
const (
	SiteKnown   TrustState = 1 // it may do what a peer may
	SiteRevoked TrustState = 2 // nothing of it counts; its name is kept
)

// String returns the word for people.
func (s TrustState) String() string {
	switch s {
	case SiteKnown:
		return "known"
	case SiteRevoked:
		return "revoked"
	}
	return "unknown"
}

// TrustedSite is the record of another site in the trust table. It is replaced, never
// changed in place.
type TrustedSite struct {
	Site   job.SiteID
	State  TrustState
	Bundle Bundle
	// Addresses are where operators said that it is reached, in the order to try; none for
	// a site that dials. Told is what the site says of itself.
	Addresses []string
	Told      Told
	// Version is what it said when it was admitted, for people.
	Version string
	// Since is when it was admitted or revoked last, Actor who did that.
	Since job.Time
	Actor identity.Actor
	// LetRun says of a revoked site that attempts of its jobs go on here.
	LetRun bool
	// Steps is how many protocol steps this site had taken as a host when the other one was
	// admitted: what it had claimed of that before it has given up.
	Steps uint64
}

// Told is where a site says that it can be dialled: none if it only dials out.
type Told struct {
	Addresses []string
	// Incarnation is that of the daemon that said so last. An earlier one is not heard, until
	// the site has a later bundle; 0 for what it said when it joined.
	Incarnation uint64
}

// Dialled returns all addresses of a site, in the order to try.
func (t *TrustedSite) Dialled() []string {
	all := slices.Clone(t.Addresses)
	for _, a := range t.Told.Addresses {
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

// InvitationState says how far an invitation has come. The numbers are stored and frozen.
type InvitationState uint8

// The states of an invitation.
const (
	InvitationOpen     InvitationState = 1 // its text can be used
	InvitationCame     InvitationState = 2 // a site proved its secret; the operator decides
	InvitationAdmitted InvitationState = 3
	InvitationRefused  InvitationState = 4 // by the operator
	InvitationExpired  InvitationState = 5
	InvitationBurnt    InvitationState = 6 // wrong tries, or a second use
)

// Over reports whether nothing can come of it any more.
func (s InvitationState) Over() bool { return s > InvitationCame }

// String returns the word for people.
func (s InvitationState) String() string {
	words := [...]string{"unknown", "open", "came", "admitted", "refused", "expired", "burnt"}
	if int(s) < len(words) {
		return words[s]
	}
	return words[0]
}

// Invitation is the record of an invitation. It is replaced, never changed in place.
type Invitation struct {
	// ID is public and part of the text; letters, digits and "-_." only.
	ID string
	// Name is the site that is invited.
	Name job.SiteID
	// Verifier is what the secret is checked by, not the secret; nil once it is over, but
	// for one by which a site was admitted.
	Verifier []byte
	State    InvitationState
	// Tries counts the wrong ones.
	Tries uint32
	// Expires is when the text can be used no more, nor a site that came be admitted
	// by it; of one that is over, until when it is remembered.
	Opened, Expires job.Time
	Actor           identity.Actor // who opened it
	// Joiner is who came by it; zero before.
	Joiner Joiner
	// Closed is when it was over, 0 before; ClosedBy who ended it, empty if none did.
	Closed   job.Time
	ClosedBy identity.Actor
}

// Joiner is what a site that came by an invitation said of itself, its secret proved.
type Joiner struct {
	Site      job.SiteID
	Bundle    Bundle
	Addresses []string
	Version   string
	Came      job.Time
}

// Token is a token of this site, as it is remembered until it ends by itself: of those that
// were made here the id and never the secret. It is replaced, never changed in place.
type Token struct {
	ID      string
	Expires job.Time
	// User is whom it was made for, Made when, Maker by whom. Not known of a token that was
	// made before this was recorded and of which the operator revoked the id.
	User  string
	Made  job.Time
	Maker identity.Actor
	// Revoked is when it was revoked, 0 for one that counts; Actor who did that.
	Revoked job.Time
	Actor   identity.Actor
}

// trust is the part of the state that says who this site trusts. The zero trust is empty.
type trust struct {
	sites       map[job.SiteID]*TrustedSite
	invitations map[string]*Invitation
	tokens      map[string]*Token
	// due is no later than the next thing that expires, job.Never if none does; 0 for
	// an empty table.
	due job.Time
}

// TrustedSite returns the record of a site in the trust table, nil if there is none.
func (s *State) TrustedSite(site job.SiteID) *TrustedSite { return s.trust.sites[site] }

// TrustedSites returns all of them by name, revoked ones included.
func (s *State) TrustedSites() []*TrustedSite { return sorted(s.trust.sites) }

// TrustedSiteCount returns how many there are.
func (s *State) TrustedSiteCount() int { return len(s.trust.sites) }

// Invitation returns the record of an invitation, nil if there is none.
func (s *State) Invitation(id string) *Invitation { return s.trust.invitations[id] }

// Invitations returns all of them by id, those included that are over and remembered.
func (s *State) Invitations() []*Invitation { return sorted(s.trust.invitations) }

// Token returns the record of a token, nil if there is none.
func (s *State) Token(id string) *Token { return s.trust.tokens[id] }

// Tokens returns all of them by id, those that count and those that were revoked.
func (s *State) Tokens() []*Token { return sorted(s.trust.tokens) }

// TrustDue returns when [PruneTrust] has something to do, [job.Never] if it never has.
func (s *State) TrustDue() job.Time {
	if s.trust.due == 0 {
		return job.Never
	}
	return s.trust.due
}

func sorted[K ~string, V any](table map[K]*V) []*V {
	list := make([]*V, 0, len(table))
	for _, k := range slices.Sorted(maps.Keys(table)) {
		list = append(list, table[k])
	}
	return list
}

// put and remove change one record and note that it is to be written.

func (s *State) putSite(t *TrustedSite) {
	if s.trust.sites == nil {
		s.trust.sites = make(map[job.SiteID]*TrustedSite)
	}
	s.trust.sites[t.Site] = t
	s.changes.Trusted = append(s.changes.Trusted, t.Site)
}

func (s *State) removeSite(site job.SiteID) {
	delete(s.trust.sites, site)
	s.changes.Trusted = append(s.changes.Trusted, site)
}

func (s *State) putInvitation(i *Invitation) {
	if s.trust.invitations == nil {
		s.trust.invitations = make(map[string]*Invitation)
	}
	s.trust.invitations[i.ID] = i
	s.changes.Invitations = append(s.changes.Invitations, i.ID)
	s.expireAt(i.Expires)
}

func (s *State) removeInvitation(id string) {
	delete(s.trust.invitations, id)
	s.changes.Invitations = append(s.changes.Invitations, id)
}

func (s *State) putToken(t *Token) {
	if s.trust.tokens == nil {
		s.trust.tokens = make(map[string]*Token)
	}
	s.trust.tokens[t.ID] = t
	s.changes.Tokens = append(s.changes.Tokens, t.ID)
	s.expireAt(t.Expires)
}

func (s *State) removeToken(id string) {
	delete(s.trust.tokens, id)
	s.changes.Tokens = append(s.changes.Tokens, id)
}

func (s *State) expireAt(at job.Time) {
	if s.trust.due == 0 || at < s.trust.due {
		s.trust.due = at
	}
}
