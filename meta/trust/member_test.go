package trust

import (
	"crypto/tls"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// member returns a member of a site of a test.
func member(t testing.TB, k *Keys, name string) *Member {
	t.Helper()
	m, err := k.Member(name, at(noon))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMembersMeet(t *testing.T) {
	t.Parallel()
	a, _ := twoSites(t)
	for _, alpn := range []string{ALPNRaft, ALPNMember} {
		state, serverErr, clientErr := handshake(t, member(t, a, "one").ServerTLS(), member(t, a, "two").ClientTLS(alpn))
		if serverErr != nil || clientErr != nil {
			t.Fatalf("%s: server %v, client %v", alpn, serverErr, clientErr)
		}
		if name := MemberName(state); name != "two" || state.NegotiatedProtocol != alpn || state.Version != tls.VersionTLS13 {
			t.Errorf("%s: member %q, protocol %q, version %x", alpn, name, state.NegotiatedProtocol, state.Version)
		}
	}
}

// Only a member of the same site is one: not another site's, not the site itself, not a user;
// and a member is no site.
func TestWhoIsNoMember(t *testing.T) {
	t.Parallel()
	a, b := twoSites(t)
	one := member(t, a, "one")
	alpha, beta := endpoint(a, known(t, b)), endpoint(b, known(t, a))
	plain := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{ALPNRaft}} //nolint:gosec // it checks nothing
	trusting := func(c *tls.Config) *tls.Config {                                  // who is called is not what is looked at here
		c.VerifyConnection = nil
		return c
	}
	for what, c := range map[string]struct {
		server, client *tls.Config
		want           error
	}{
		"member of another site":      {one.ServerTLS(), trusting(member(t, b, "two").ClientTLS(ALPNRaft)), ErrOtherSite},
		"site that is the same":       {one.ServerTLS(), trusting(alpha.ClientTLS("alpha", ALPNRaft)), ErrCertificate},
		"nobody":                      {one.ServerTLS(), plain, nil},
		"member as a site":            {beta.ServerTLS(), trusting(one.ClientTLS(ALPNPeer)), ErrCertificate},
		"member who dials a stranger": {member(t, b, "two").ServerTLS(), one.ClientTLS(ALPNRaft), nil},
	} {
		_, serverErr, clientErr := handshake(t, c.server, c.client)
		if serverErr == nil && clientErr == nil {
			t.Errorf("%s: let in", what)
		}
		if c.want != nil && !errors.Is(serverErr, c.want) {
			t.Errorf("%s: %v, expected %v", what, serverErr, c.want)
		}
	}
	if _, _, err := handshake(t, member(t, b, "two").ServerTLS(), one.ClientTLS(ALPNRaft)); !errors.Is(err, ErrOtherSite) {
		t.Errorf("who dials takes another site's member: %v", err)
	}
}

// Members whose clocks are a day apart know each other all the same: nothing of what they keep together rests on
// the time.
func TestMembersWhoseClocksDiffer(t *testing.T) {
	t.Parallel()
	a, _ := twoSites(t)
	ahead, err := a.Member("two", at(noon.Add(24*time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	one := member(t, a, "one")
	for what, c := range map[string][2]*tls.Config{
		"who is ahead dials": {one.ServerTLS(), ahead.ClientTLS(ALPNRaft)}, "who is behind dials": {ahead.ServerTLS(), one.ClientTLS(ALPNRaft)},
	} {
		if _, serverErr, clientErr := handshake(t, c[0], c[1]); serverErr != nil || clientErr != nil {
			t.Errorf("%s: server %v, client %v", what, serverErr, clientErr)
		}
	}
}

// A member's certificate is renewed in time, and void below the floor of its site.
func TestCertificatesOfMembersAge(t *testing.T) {
	t.Parallel()
	a, err := Init(filepath.Join(t.TempDir(), "keys"), "alpha", Options{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	now := noon
	m, err := a.Member("one", func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	first, _ := m.certificate()
	now = noon.Add(leafLife / 4)
	if again, _ := m.certificate(); again != first {
		t.Error("made anew long before its half life")
	}
	now = noon.Add(leafLife * 3 / 4)
	if later, err := m.certificate(); err != nil || later == first || !later.Leaf.NotAfter.After(first.Leaf.NotAfter) {
		t.Errorf("not renewed: %v", err)
	}
	two := member(t, a, "two") // at noon
	if err := a.RotateLeaf(noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	old := &tls.Config{
		InsecureSkipVerify: true, NextProtos: []string{ALPNRaft}, MinVersion: tls.VersionTLS13, //nolint:gosec // it checks nothing
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return two.own, nil },
	}
	if _, err, _ := handshake(t, m.ServerTLS(), old); !errors.Is(err, ErrBelowFloor) {
		t.Errorf("a certificate of before: %v", err)
	}
}
