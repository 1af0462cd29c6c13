package meta_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// The words that transcripts have for the trust table.

// bundle reads keys=1,2 sequence=N.
func (s *stage) bundle(a arguments) store.Bundle {
	b := store.Bundle{Sequence: uint64(s.number(a, "sequence", 1))}
	for text := range strings.SplitSeq(a.named["keys"], ",") {
		if k, err := strconv.ParseUint(text, 10, 8); err == nil {
			b.Keys, b.Data = append(b.Keys, store.KeyID{byte(k)}), append(b.Data, byte(k))
		}
	}
	b.Floor = job.Time(s.number(a, "floor", 0))
	return b
}

func (s *stage) doTrust(a arguments) {
	s.token++
	word, token := a.words[0], s.token
	var id string
	if len(a.words) > 1 {
		id = a.words[1]
	}
	site := job.SiteID(id)
	switch word {
	case "admit":
		if a.named["invitation"] != "" {
			s.feed(meta.AdmitSite{Token: token, Invitation: a.named["invitation"], Actor: "ada"})
			return
		}
		s.feed(meta.AdmitSite{Token: token, Site: site, Bundle: s.bundle(a), Actor: "ada"})
	case "bundle":
		s.feed(meta.Receive{From: site, Message: meta.SiteBundle{Site: site, Bundle: s.bundle(a)}})
	case "address":
		s.feed(meta.SetAddresses{Token: token, Site: site, Addresses: a.words[2:], Actor: "ada"})
	case "revoke":
		s.feed(meta.RevokeSite{Token: token, Site: site, LetRun: a.has("let-run"), Actor: "ada"})
	case "forget-trust":
		s.feed(meta.ForgetTrust{Token: token, Site: site})
	case "leave":
		s.feed(meta.Leave{Token: token, LetRun: a.has("let-run"), Actor: "ada"})
	case "invite":
		s.feed(meta.OpenInvitation{Token: token, ID: id, Name: job.SiteID(a.words[2]), Verifier: []byte("v"), Expires: s.now.Add(30 * time.Minute), Actor: "ada"})
	case "try":
		s.feed(meta.TryInvitation{Token: token, ID: id})
	case "come":
		s.feed(meta.ComeByInvitation{Token: token, ID: id, Joiner: store.Joiner{Site: job.SiteID(a.words[2]), Bundle: s.bundle(a)}})
	case "refuse":
		s.feed(meta.CloseInvitation{Token: token, ID: id, Actor: "ada"})
	case "token":
		s.feed(meta.RevokeToken{Token: token, ID: id, Unlisted: a.has("unlisted"), Expires: s.now.Add(time.Hour), Actor: "ada"})
	case "trust":
		for _, t := range s.state.TrustedSites() {
			s.say("%s %v bundle=%d let-run=%v", t.Site, t.State, t.Bundle.Sequence, t.LetRun)
			if at := t.Dialled(); len(at) > 0 {
				s.say("%s at %s", t.Site, strings.Join(at, " "))
			}
		}
		for _, i := range s.state.Invitations() {
			s.say("invitation %s for %s %v", i.ID, i.Name, i.State)
		}
		for _, r := range s.state.Tokens() {
			s.say("token %s", r.ID)
		}
	case "dealings":
		all := s.engine.Views().Dealings(s.now)
		for _, site := range slices.Sorted(maps.Keys(all)) {
			d := all[site]
			s.say("%s holds %d, %d overdue, %d copies of it are here", site, d.Held, d.Overdue, d.Copies)
		}
	default:
		s.doBag(a)
	}
}

// sayTrust tells of a reply about the trust table, and reports whether it is one.
func (s *stage) sayTrust(f *meta.Reply) bool {
	switch {
	case f.Revoked != nil:
		s.say("reply: %+v", *f.Revoked)
	case f.Invitation != nil:
		s.say("reply: invitation %s is %v, tries %d", f.Invitation.ID, f.Invitation.State, f.Invitation.Tries)
	default:
		return false
	}
	return true
}
