package daemon

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kithv1 "kith/proto/gen/kith/v1"
)

// Two sites that move one after the other meet again, as each has told the other where it
// is; when both move at once their operators say it.
func TestSitesThatMoveMeetAgain(t *testing.T) {
	t.Parallel()
	ca, alphaKeys := secureConfig(t, "alpha")
	cb, betaKeys := secureConfig(t, "beta")
	alpha, closeAlpha := openSecure(t, ca, knowing(betaKeys, ""))
	beta, closeBeta := openSecure(t, cb, knowing(alphaKeys, alpha.d.Address()))
	t.Cleanup(func() { closeAlpha(); closeBeta() })
	known := func(at, of *testSite) *kithv1.TrustedSite {
		t.Helper()
		r, err := at.trustClient().GetTrustedSite(at.ctx(), &kithv1.GetTrustedSiteRequest{SiteId: of.cfg.Site})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetSite()
	}
	meet := func(when string) {
		t.Helper()
		for _, pair := range [][2]*testSite{{alpha, beta}, {beta, alpha}} {
			pair[0].eventually(when+": connected, and told where the other is", func() bool {
				s := known(pair[0], pair[1])
				return s.GetConnected() && s.GetCertificateExpireTime().AsTime().Equal(pair[1].d.identity.keys.Leaf().Leaf.NotAfter) && slices.Equal(s.GetToldAddresses(), []string{pair[1].d.Address()})
			})
		}
	}
	meet("at first")

	closeBeta()
	beta, closeBeta = openSecure(t, cb, Options{}) // on another port
	meet("beta has moved")
	closeAlpha()
	alpha, closeAlpha = openSecure(t, ca, Options{})
	meet("alpha has moved")
	if got := known(beta, alpha).GetAddresses(); len(got) != 0 { // it was what alpha said itself, before
		t.Errorf("alpha is still dialled at %v", got)
	}
	// The log is written behind what it tells of.
	beta.eventually("the audit log has told-address", func() bool { return strings.Contains(beta.auditText(), "told-address") })

	left := []string{alpha.d.Address(), beta.d.Address()}
	closeAlpha()
	closeBeta()
	for _, address := range left {
		keepEmpty(t, address)
	}
	alpha, closeAlpha = openSecure(t, ca, Options{})
	beta, closeBeta = openSecure(t, cb, Options{})
	for _, s := range []struct{ at, of *testSite }{{alpha, beta}, {beta, alpha}} {
		s.at.eventually("it says what to do", func() bool {
			return strings.Contains(known(s.at, s.of).GetConnectionError(), "kith site address "+s.of.cfg.Site+" HOST:PORT")
		})
	}
	set := func(site string, addresses ...string) error {
		_, err := alpha.trustClient().SetSiteAddresses(alpha.ctx(), &kithv1.SetSiteAddressesRequest{SiteId: site, Addresses: addresses})
		return err
	}
	for want, err := range map[codes.Code]error{
		codes.InvalidArgument: set("beta"), codes.NotFound: set("gamma", "g:1"),
	} {
		if status.Code(err) != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if err := set("beta", "nowhere"); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("an address that is none: %v", err)
	}
	if err := set("beta", beta.d.Address()); err != nil {
		t.Fatal(err)
	}
	meet("told by the operator")
	alpha.eventually("the audit log has the operator's word", func() bool {
		text := alpha.auditText()
		return strings.Contains(text, `"kind":"address"`) && strings.Contains(text, beta.d.Address())
	})
}

// A site that nothing can connect to says that it has no address.
func TestOutboundOnlySiteHasNoAddress(t *testing.T) {
	t.Parallel()
	ca, alphaKeys := secureConfig(t, "alpha")
	cb, betaKeys := secureConfig(t, "beta")
	cb.Listen.Advertise = "none"
	alpha := startSecure(t, ca, knowing(betaKeys, ""))
	beta := startSecure(t, cb, knowing(alphaKeys, alpha.d.Address()))
	beta.confirmed()
	r, err := alpha.trustClient().GetTrustedSite(alpha.ctx(), &kithv1.GetTrustedSiteRequest{SiteId: "beta"})
	if err != nil || len(r.GetSite().GetToldAddresses()) != 0 || len(alpha.d.links.Addresses("beta")) != 0 {
		t.Errorf("%v, %v", r, err)
	}
}

// keepEmpty has nothing listen at an address of this machine: not the site of another test.
func keepEmpty(t *testing.T, address string) {
	t.Helper()
	at := netip.MustParseAddrPort(address)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) }) //nolint:errcheck // a socket of this test
	if err := errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.Bind(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()})); err != nil {
		t.Logf("%s is taken already: %v", address, err)
	}
}
