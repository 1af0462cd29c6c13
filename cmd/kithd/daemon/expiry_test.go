package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/meta/trust"
	kithv1 "kith/proto/gen/kith/v1"
)

// When certificates end is shown to people, with what to do once that is near, whether the
// site renews them by itself or not.
func TestExpiryIsShown(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		age     time.Duration
		offline bool
		want    []string // in the trouble; none: there is no trouble
		logged  string
	}{
		"young":                       {age: time.Hour},
		"renewed at the start":        {age: 6 * day},
		"a CA near its end":           {age: 9 * 365 * day, want: []string{"its CA ends on", "kith site rotate --ca"}, logged: "certificate ends soon"},
		"kept elsewhere, young":       {age: day, offline: true},
		"kept elsewhere, CA near":     {age: 9 * 365 * day, offline: true, want: []string{"its CA ends on", "--next-ca-key FILE"}, logged: "certificate ends soon"},
		"kept elsewhere, near":        {age: 70 * day, offline: true, want: []string{"its certificate ends on", "kithd renew --ca-key FILE"}, logged: "certificate ends soon"},
		"kept elsewhere, it is over":  {age: 91 * day, offline: true, want: []string{"its certificate ended on", "kithd renew --ca-key FILE"}, logged: "certificate has ended"},
		"kept elsewhere, both at end": {age: 3660 * day, offline: true, want: []string{"its certificate ended on", "its CA ended on", "join the other sites anew"}, logged: "certificate has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, "alpha")
			cfg.Listen.InsecureLoopback, cfg.Listen.AllowOwnUID = false, true
			cfg.Listen.Socket = filepath.Join(t.TempDir(), "s")
			if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
				t.Fatal(err)
			}
			o := trust.Options{}
			if c.offline {
				o = trust.Options{CAOffline: true, CAKeyPath: filepath.Join(t.TempDir(), "ca.key")}
			}
			if _, err := trust.Init(cfg.KeysPath(), "alpha", o, time.Now().Add(-c.age)); err != nil {
				t.Fatal(err)
			}
			s := startSecure(t, cfg, Options{})
			r, err := s.sites.GetSite(s.ctx(), &kithv1.GetSiteRequest{})
			if err != nil {
				t.Fatal(err)
			}
			site, keys := r.GetSite(), s.d.identity.keys
			if !site.GetCertificateExpireTime().AsTime().Equal(keys.Leaf().Leaf.NotAfter) || !site.GetCaExpireTime().AsTime().Equal(keys.CA().NotAfter) {
				t.Errorf("%v", site)
			}
			if got, want := site.GetFingerprints(), trust.Fingerprint(keys.CA()); len(got) != 1 || got[0] != want || site.GetBundleSequence() < 1 {
				t.Errorf("fingerprints %q of bundle %d, want %q", got, site.GetBundleSequence(), want)
			}
			for _, want := range c.want {
				if !strings.Contains(site.GetKeyTrouble(), want) {
					t.Errorf("trouble %q, want %q", site.GetKeyTrouble(), want)
				}
			}
			if len(c.want) == 0 && site.GetKeyTrouble() != "" {
				t.Errorf("trouble %q", site.GetKeyTrouble())
			}
			if c.logged != "" {
				s.eventually("it is in the log", func() bool { return s.logged(c.logged) })
			}
			all, err := s.sites.ListSites(s.ctx(), &kithv1.ListSitesRequest{})
			if err != nil || all.GetSites()[0].GetKeyTrouble() != site.GetKeyTrouble() {
				t.Errorf("kith sites: %v, %v", all, err)
			}
		})
	}
}
