package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/peer"
	"kith/meta/trust"
	kithv1 "kith/proto/gen/kith/v1"
)

// federated starts two sites that know each other and are connected; alpha has one
// processor, so that wider jobs of it run at beta.
func federated(t *testing.T) (alpha, beta *testSite) {
	t.Helper()
	ca, alphaKeys := secureConfig(t, "alpha")
	cb, betaKeys := secureConfig(t, "beta")
	ca.Scheduler.Processors, ca.Placement.Copies = 1, 2
	alpha = startSecure(t, ca, knowing(betaKeys, ""))
	beta = startSecure(t, cb, knowing(alphaKeys, alpha.d.Address()))
	for _, s := range []*testSite{alpha, beta} {
		s.confirmed()
	}
	return alpha, beta
}

// confirmed waits until all other sites have confirmed the site's bundle.
func (s *testSite) confirmed() {
	s.t.Helper()
	s.eventually("its bundle is confirmed", func() bool { return len(s.d.unconfirmed()) == 0 })
}

// connected reports whether a stream to a site is up whose certificates count.
func (s *testSite) connected(site job.SiteID) bool {
	ctx, up := s.d.links.Connection(site)
	return up && s.d.proves(ctx)
}

// Leafs and CAs of both sites are replaced while a job of one runs at the other: it does
// not notice. A copy of the keys of before is of no use then.
func TestRotatingLeavesJobsAlone(t *testing.T) {
	t.Parallel()
	alpha, beta := federated(t)
	flag := filepath.Join(t.TempDir(), "go-on")
	j := shell(fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done; echo through", flag))
	j.Processors = 2 // alpha has one
	id := alpha.submit(j)
	alpha.waitState(id, kithv1.JobStatus_STATE_RUNNING)

	stolen := filepath.Join(t.TempDir(), "keys")
	if err := os.CopyFS(stolen, os.DirFS(beta.cfg.KeysPath())); err != nil {
		t.Fatal(err)
	}
	thief := func(when string, want bool) {
		t.Helper()
		if err := errors.Join(os.Chmod(stolen, 0o700), chmodAll(stolen)); err != nil {
			t.Fatal(err)
		}
		k, err := trust.Open(stolen, "beta", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		e := &trust.Endpoint{Keys: k, Trusted: alphaAsKnown(t, alpha), Now: time.Now}
		conn, err := alpha.dialTLS(e.ClientTLS("alpha", trust.ALPNPeer))
		if err != nil {
			t.Fatal(err)
		}
		// In TLS 1.3 the client hears of a refusal when it reads; gRPC speaks first.
		_, err = conn.Read(make([]byte, 1))
		if (err == nil) != want {
			t.Errorf("%s: a copy of beta's keys gets in: %v", when, err)
		}
	}
	thief("before", true)

	old := beta.d.identity.keys.Leaf()
	r, err := beta.trustClient().RotateKeys(beta.ctx(), &kithv1.RotateKeysRequest{Now: true})
	if err != nil || r.GetBundleSequence() != 2 {
		t.Fatalf("bundle %d, %v", r.GetBundleSequence(), err)
	}
	if _, err := beta.trustClient().RotateKeys(beta.ctx(), &kithv1.RotateKeysRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("rotating nothing: %v", err)
	}
	beta.confirmed()
	beta.eventually("connected by the new leaf", func() bool { return alpha.connected("beta") && beta.connected("alpha") })
	if _, err := alpha.d.identity.trusted.Verify(old.Certificate, time.Now()); !errors.Is(err, trust.ErrBelowFloor) {
		t.Errorf("alpha of beta's old leaf: %v", err)
	}
	thief("after rotate --now", false)

	for _, s := range []*testSite{alpha, beta} {
		first := s.d.identity.keys.CA()
		if _, err := s.trustClient().RotateKeys(s.ctx(), &kithv1.RotateKeysRequest{Ca: true}); err != nil {
			t.Fatal(err)
		}
		s.eventually("the new CA is the only one", func() bool {
			_, under := s.d.identity.keys.Rotating()
			return !under && !s.d.identity.keys.CA().Equal(first)
		})
		s.confirmed()
	}
	alpha.eventually("connected by the new CAs", func() bool { return alpha.connected("beta") && beta.connected("alpha") })
	for _, pair := range [][2]*testSite{{alpha, beta}, {beta, alpha}} {
		of := pair[1].d.identity.keys.Bundle()
		if known, _ := pair[0].d.identity.trusted.Get(of.Site); !bytes.Equal(known.Marshal(), of.Marshal()) || len(of.CAs) != 1 {
			t.Errorf("%s is known by bundle %d with %d CAs, its own is %d with %d", of.Site, known.Sequence, len(known.CAs), of.Sequence, len(of.CAs))
		}
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	alpha.waitState(id, completed)
	if st := alpha.get(id).GetStatus(); st.GetAttempt() != 1 || st.GetHostSiteId() != "beta" {
		t.Errorf("attempt %d at %s", st.GetAttempt(), st.GetHostSiteId())
	}
}

// A change of CA has ended when the old one is dropped, though that is not recorded: there
// is nothing to try again.
func TestFinishCAWithoutRecord(t *testing.T) {
	t.Parallel()
	c, _ := secureConfig(t, "alpha")
	s := startSecure(t, c, Options{})
	now := time.Now()
	if err := s.d.identity.keys.BeginCA(now); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.d.finishCA(gone, now); err != nil {
		t.Errorf("the end of the change: %v", err)
	}
	if _, under := s.d.identity.keys.Rotating(); under {
		t.Error("the old CA is not dropped")
	}
}

// A record that fails leaves no change half done: both were made, and the sequence is
// recorded later by itself. A repeated call says that the CA is under way.
func TestRotatingWithoutRecord(t *testing.T) {
	t.Parallel()
	alpha, beta := federated(t)
	old := beta.d.identity.keys.Leaf()
	gone, cancel := context.WithCancel(beta.ctx())
	cancel()
	if _, err := beta.d.rotateKeys(gone, true, true, "ada"); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "not recorded") {
		t.Errorf("without a record: %v", err)
	}
	own := beta.d.identity.keys.Bundle()
	if own.Sequence != 3 || len(own.CAs) != 2 || !own.Floor.After(old.Leaf.NotBefore) || beta.d.identity.keys.Leaf() == old {
		t.Errorf("bundle %d with %d CAs and floor %v", own.Sequence, len(own.CAs), own.Floor)
	}
	if _, err := beta.d.rotateKeys(beta.ctx(), true, true, "ada"); !errors.Is(err, trust.ErrRotating) {
		t.Errorf("again: %v", err)
	}
	beta.eventually("it is recorded", func() bool {
		var sequence uint64
		if err := beta.d.loop.Look(beta.ctx(), func(job.Time, meta.Views) { sequence = beta.d.state.Site().BundleSequence }); err != nil {
			t.Fatal(err)
		}
		return sequence >= own.Sequence
	})
	beta.eventually("the audit log tells of both", func() bool {
		text := beta.auditText()
		return strings.Contains(text, `"rotate-ca"`) && strings.Contains(text, `"rotate-now"`)
	})
	alpha.eventually("connected by the new leaf", func() bool {
		_, err := alpha.d.identity.trusted.Verify(old.Certificate, time.Now()) // it is below the floor, and later of a CA that was dropped
		return err != nil && alpha.connected("beta")
	})
}

// Nobody waits for a record: another change of keys is made meanwhile.
func TestRotatingWhileTheDiskHangs(t *testing.T) {
	t.Parallel()
	c, _ := secureConfig(t, "alpha")
	s := startSecure(t, c, Options{})
	entered, release := make(chan struct{}), make(chan struct{})
	go s.d.loop.Look(s.ctx(), func(job.Time, meta.Views) { close(entered); <-release }) //nolint:errcheck // it holds the loop
	<-entered
	done := make(chan error, 2)
	rotate := func() {
		_, err := s.d.rotateKeys(s.ctx(), true, false, "ada")
		done <- err
	}
	go rotate()
	s.eventually("the first is made", func() bool { return s.d.identity.keys.Bundle().Sequence == 2 })
	time.Sleep(1100 * time.Millisecond) // a floor is in whole seconds
	go rotate()
	s.eventually("the second is made while the first is not recorded", func() bool { return s.d.identity.keys.Bundle().Sequence == 3 })
	close(release)
	if err := errors.Join(<-done, <-done); err != nil {
		t.Error(err)
	}
}

// What an acceptance tells of an address that failed is text, wherever it is cut.
func TestConnectingTellsText(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 600} {
		var told string
		a := &acceptance{tell: func(r *kithv1.AcceptInvitationResponse) error {
			told = r.GetConnecting().GetError()
			return nil
		}}
		if err := a.connecting("192.0.2.1:1", errors.New("x"+strings.Repeat("ö", n))); err != nil {
			t.Fatal(err)
		}
		if !utf8.ValidString(told) || told == "" || len(told) > 1024 {
			t.Errorf("%d bytes were told: %q", len(told), told)
		}
	}
}

func chmodAll(dir string) error {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		err = errors.Join(err, os.Chmod(filepath.Join(dir, f.Name()), 0o600))
	}
	return err
}

func alphaAsKnown(t *testing.T, s *testSite) *trust.Set {
	t.Helper()
	set := new(trust.Set)
	if err := set.Put(s.d.identity.keys.Bundle()); err != nil {
		t.Fatal(err)
	}
	return set
}

// What a site may not send as its bundle: garbage, that of another, and one that is not
// signed by a CA by which it is known.
func TestReadBundle(t *testing.T) {
	t.Parallel()
	c, _ := secureConfig(t, "alpha")
	_, betaKeys := secureConfig(t, "beta")
	_, gammaKeys := secureConfig(t, "gamma")
	alpha := startSecure(t, c, knowing(betaKeys, ""))
	first, _ := betaKeys.SignedBundle()
	if err := betaKeys.RotateLeaf(time.Now()); err != nil {
		t.Fatal(err)
	}
	later, sig := betaKeys.SignedBundle()
	gamma, gammaSig := gammaKeys.SignedBundle()
	taken := later
	taken.CAs = append(taken.CAs[:1:1], gamma.CAs...) // a CA of another name is not one of beta
	for name, c := range map[string]struct {
		from job.SiteID
		raw  []byte
		sig  []byte
		want error
	}{
		"the known one": {"beta", first.Marshal(), nil, nil}, "a later one": {"beta", later.Marshal(), sig, nil},
		"not signed": {"beta", later.Marshal(), nil, peer.ErrUnprovenBundle}, "of another CA": {"beta", later.Marshal(), gammaSig, peer.ErrUnprovenBundle},
		"of another site": {"beta", gamma.Marshal(), gammaSig, peer.ErrForeignBundle}, "of an unknown site": {"gamma", gamma.Marshal(), gammaSig, peer.ErrUnprovenBundle},
		"empty": {"beta", nil, nil, peer.ErrBundle}, "with a foreign CA": {"beta", taken.Marshal(), sig, peer.ErrBundle},
	} {
		_, err := alpha.d.readBundle(c.from, &kithv1.SiteBundle{Bundle: c.raw, Signature: c.sig})
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// withOffline starts two sites that know each other and are connected. The key of beta's CA
// is kept in a file elsewhere.
func withOffline(t *testing.T) (alpha, beta *testSite, caKey string) {
	t.Helper()
	ca, alphaKeys := secureConfig(t, "alpha")
	cb := testConfig(t, "beta")
	cb.Listen.InsecureLoopback, cb.Listen.AllowOwnUID = false, true
	cb.Listen.Socket = filepath.Join(t.TempDir(), "s")
	caKey = filepath.Join(t.TempDir(), "ca.key")
	if err := os.MkdirAll(cb.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	betaKeys, err := trust.Init(cb.KeysPath(), "beta", trust.Options{CAOffline: true, CAKeyPath: caKey}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	alpha = startSecure(t, ca, knowing(betaKeys, ""))
	beta = startSecure(t, cb, knowing(alphaKeys, alpha.d.Address()))
	beta.confirmed()
	return alpha, beta, caKey
}

// A site whose CA's key is kept elsewhere replaces its CA: the operator makes the next one,
// other sites hear of it at the reload, and when they have confirmed it the site ends the
// change by itself, without either key.
func TestOfflineSiteReplacesItsCA(t *testing.T) {
	t.Parallel()
	alpha, beta, caKey := withOffline(t)
	if _, err := beta.trustClient().RotateKeys(beta.ctx(), &kithv1.RotateKeysRequest{Ca: true}); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "--next-ca-key") {
		t.Errorf("rotate --ca without the CA's key: %v", err)
	}
	first := beta.d.identity.keys.CA()
	made, err := trust.OpenToRenew(beta.cfg.KeysPath(), "beta")
	if err == nil {
		err = made.ReplaceWith(caKey, caKey+".next", false, time.Now()) // as kithd renew does
	}
	if err == nil {
		err = errors.Join(os.Remove(caKey), os.Remove(caKey+".next"))
	}
	if err != nil {
		t.Fatal(err)
	}
	beta.d.reloadKeys()
	beta.eventually("the new CA is the only one", func() bool {
		_, under := beta.d.identity.keys.Rotating()
		return !under && !beta.d.identity.keys.CA().Equal(first)
	})
	beta.confirmed()
	alpha.eventually("connected by the new CA", func() bool { return alpha.connected("beta") && beta.connected("alpha") })
	own := beta.d.identity.keys.Bundle()
	if known, _ := alpha.d.identity.trusted.Get("beta"); !bytes.Equal(known.Marshal(), own.Marshal()) || len(own.CAs) != 1 {
		t.Errorf("beta is known by bundle %d with %d CAs, its own is %d with %d", known.Sequence, len(known.CAs), own.Sequence, len(own.CAs))
	}
	beta.eventually("it is in the audit log", func() bool {
		text := beta.auditText()
		return strings.Contains(text, `"rotate-ca"`) && strings.Contains(text, `"rotate-ca-end"`) && !strings.Contains(text, "rotate-now")
	})
	alpha.eventually("it had both for a while", func() bool {
		text := alpha.auditText()
		return strings.Contains(text, "sequence 2, 2 CAs") && strings.Contains(text, "sequence 3, 1 CAs")
	})
}

// A site whose CA's key is kept elsewhere voids its certificates: the operator makes the next
// one, and other sites hear of it at the reload.
func TestOfflineSiteVoidsItsCertificates(t *testing.T) {
	t.Parallel()
	alpha, beta, caKey := withOffline(t)
	if _, err := beta.trustClient().RotateKeys(beta.ctx(), &kithv1.RotateKeysRequest{Now: true}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("rotate --now without the CA's key: %v", err)
	}
	old := beta.d.identity.keys.Leaf()
	made, err := trust.OpenToRenew(beta.cfg.KeysPath(), "beta") // as kithd renew does
	if err != nil {
		t.Fatal(err)
	}
	if err := made.VoidWith(caKey, time.Now()); err != nil {
		t.Fatal(err)
	}
	beta.d.reloadKeys()
	beta.eventually("connected by the new leaf", func() bool {
		_, err := alpha.d.identity.trusted.Verify(old.Certificate, time.Now())
		return errors.Is(err, trust.ErrBelowFloor) && len(beta.d.unconfirmed()) == 0 && alpha.connected("beta") && beta.connected("alpha")
	})
	beta.eventually("it is in the audit log", func() bool { return strings.Contains(beta.auditText(), "rotate-now") })
}
