package main

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	kithv1 "kith/proto/gen/kith/v1"
)

// revoker is a site that has revoked beta.
type revoker struct {
	kithv1.UnimplementedTrustServiceServer
	state     kithv1.TrustedSite_State
	forgotten []string
}

func (r *revoker) site() *kithv1.TrustedSite {
	return &kithv1.TrustedSite{SiteId: "beta", State: r.state, Fingerprints: []string{"ABCD-EFGH"}}
}

func (r *revoker) GetTrustedSite(context.Context, *kithv1.GetTrustedSiteRequest) (*kithv1.GetTrustedSiteResponse, error) {
	return &kithv1.GetTrustedSiteResponse{Site: r.site()}, nil
}

func (r *revoker) ForgetTrustedSite(_ context.Context, q *kithv1.ForgetTrustedSiteRequest) (*kithv1.ForgetTrustedSiteResponse, error) {
	r.forgotten = append(r.forgotten, q.GetSiteId())
	return &kithv1.ForgetTrustedSiteResponse{Site: r.site()}, nil
}

// To forget a revoked site frees its name, which the question says; no answer is no.
func TestForgetRevokedSiteAsks(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	fake, g := &revoker{}, grpc.NewServer()
	kithv1.RegisterTrustServiceServer(g, fake)
	go g.Serve(listener) //nolint:errcheck // it ends with the test
	t.Cleanup(g.Stop)
	const question = "Forget site beta, which was bound to the CA ABCD-EFGH? Its name is free then: any CA can be admitted under it. [y/N] "
	for name, c := range map[string]struct {
		args  []string
		stdin string
		code  int
		want  []string
		calls int
	}{
		"yes":            {[]string{"--revoked"}, "y\n", 0, []string{question, "Site beta is forgotten: its name is free, and nothing binds it to the CA ABCD-EFGH.\n"}, 1},
		"no":             {[]string{"--revoked"}, "\n", 1, []string{question, "site beta is not forgotten"}, 0},
		"nobody there":   {[]string{"--revoked"}, "", 1, []string{"no answer was given", "--yes"}, 0},
		"not asked":      {[]string{"--revoked", "--yes"}, "", 0, []string{"is forgotten"}, 1},
		"both":           {[]string{"--revoked", "--requeue"}, "y\n", 2, []string{"requeue"}, 0},
		"yes to nothing": {[]string{"--yes"}, "", 2, []string{"--revoked"}, 0},
	} {
		fake.state, fake.forgotten = kithv1.TrustedSite_STATE_REVOKED, nil
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"--site", "unix:" + socket, "site", "forget", "beta"}, c.args...), strings.NewReader(c.stdin), &out, &errs)
		if code != c.code || len(fake.forgotten) != c.calls {
			t.Errorf("%s: code %d after %d calls, want %d after %d:\n%s%s", name, code, len(fake.forgotten), c.code, c.calls, errs.String(), out.String())
		}
		for _, w := range c.want {
			if !strings.Contains(errs.String()+out.String(), w) {
				t.Errorf("%s: no %q in\n%s%s", name, w, errs.String(), out.String())
			}
		}
	}
}
