package chaos

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/pause"
	"kith/meta/trust"
	"kith/meta/trust/audit"
	kithv1 "kith/proto/gen/kith/v1"
)

// Faults of trust: what operators do to the keys of their sites and to whom these trust.

// trusts reports whether a fault is of sites with keys.
func (k Kind) trusts() bool {
	switch k {
	case RotateLeaf, RotateCA, RevokeSite, UseToken:
		return true
	}
	return false
}

// severed is a time during which a site did not trust another one, or gave it up, and until that
// was heard of again.
type severed struct {
	window
	by, other string
	gaveUp    bool
}

// rotate replaces a site's certificate, or begins to replace its CA.
func (in *injector) rotate(ctx context.Context, f *Fault, s *site) (missed string) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	err := retry(ctx, func(ctx context.Context) error {
		_, err := s.Trust.RotateKeys(ctx, &kithv1.RotateKeysRequest{Now: f.Kind == RotateLeaf, Ca: f.Kind == RotateCA})
		return err
	})
	if err != nil {
		return err.Error()
	}
	return ""
}

// revoke ends a site's trust in another one, and has the two join anew after a while.
func (in *injector) revoke(ctx context.Context, f *Fault, s, other *site) (target, missed string) {
	target = s.Name + " revokes " + other.Name
	letRun := f.Pick%2 == 0
	if letRun {
		target += ", lets run"
	}
	from := time.Now()
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	err := retry(limited, func(ctx context.Context) error {
		_, err := s.Trust.RevokeSite(ctx, &kithv1.RevokeSiteRequest{SiteId: other.Name, LetRun: letRun, Reason: "chaos"})
		return err
	})
	if err == nil {
		pause.For(ctx, f.For)
	}
	// An answer that did not come may have been yes.
	in.joinAnew(context.WithoutCancel(ctx), s, other)
	in.mu.Lock()
	in.severed = append(in.severed, severed{window{from, time.Now().Add(antiEntropy)}, s.Name, other.Name, false})
	in.mu.Unlock()
	if err != nil {
		return target, err.Error()
	}
	return target, ""
}

// joinAnew has two sites join until they have: other faults may end any try of it. The
// one that was revoked may have another CA now than the other one still knows, or the
// other way round; then it has to be revoked there, too.
func (in *injector) joinAnew(ctx context.Context, by, other *site) {
	var err error
	for stop := time.Now().Add(3 * longest); time.Now().Before(stop); pause.For(ctx, joinPause) {
		one, cancel := context.WithTimeout(ctx, longest/2)
		if err = in.fed.Join(one, by.Node, other.Node); err == nil {
			cancel()
			return
		}
		other.Trust.RevokeSite(one, &kithv1.RevokeSiteRequest{SiteId: by.Name, Reason: "chaos"}) //nolint:errcheck // tried again with the join
		cancel()
	}
	in.logs.problem("sites %s and %s do not join anew: %v", by.Name, other.Name, err)
}

// joinPause is the time between two tries to join: a site remembers invitations.
const joinPause = 2 * time.Second

// useToken makes a token, calls a site with it, revokes it, and calls again.
func (in *injector) useToken(ctx context.Context, f *Fault, s *site) (missed string) {
	limited, cancel := context.WithTimeout(ctx, 2*longest)
	defer cancel()
	var made *kithv1.CreateTokenResponse
	err := retry(limited, func(ctx context.Context) (err error) {
		made, err = s.Trust.CreateToken(ctx, &kithv1.CreateTokenRequest{User: "chaos", Lifetime: durationpb.New(time.Hour)})
		return err
	})
	if err != nil {
		return err.Error()
	}
	conn, err := in.port(s)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	call := func() codes.Code {
		err := retry(limited, func(ctx context.Context) error {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+made.GetToken())
			_, err := kithv1.NewSiteServiceClient(conn).GetSite(ctx, &kithv1.GetSiteRequest{})
			return err
		})
		return status.Code(err)
	}
	if code := call(); code != codes.OK && limited.Err() == nil {
		in.logs.problem("site %s: a good token gets %v", s.Name, code)
	}
	err = retry(limited, func(ctx context.Context) error {
		_, err := s.Trust.RevokeToken(ctx, &kithv1.RevokeTokenRequest{TokenId: made.GetTokenId()})
		return err
	})
	if err != nil {
		return err.Error()
	}
	for _, wait := range []time.Duration{0, f.For} {
		pause.For(ctx, wait)
		if code := call(); code != codes.Unauthenticated && limited.Err() == nil {
			in.logs.problem("site %s: a revoked token gets %v", s.Name, code)
		}
	}
	return ""
}

// port returns a connection to a site as users from elsewhere have it. Its CA may be a
// new one soon, so that a site must be known by one of those it has now.
func (in *injector) port(s *site) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+s.Config.Listen.Address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: s.Name, InsecureSkipVerify: true, //nolint:gosec // it is verified below
		VerifyConnection: func(c tls.ConnectionState) error {
			b, err := trust.OwnBundle(s.Config.KeysPath())
			if err != nil {
				return err
			}
			roots := x509.NewCertPool()
			for _, ca := range b.CAs {
				roots.AddCert(ca)
			}
			_, err = c.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: s.Name})
			return err
		},
	})))
}

// verifyAudits looks whether the audit log of each site is whole, and returns how many
// lines there are.
func (c *campaign) verifyAudits() (lines uint64) {
	for _, s := range c.sites {
		r, err := c.auditOf(s)
		if err != nil {
			c.logs.problem("site %s: audit log: %v", s.Name, err)
			continue
		}
		for _, f := range r.Faults {
			c.logs.problem("site %s: audit log: %s", s.Name, f)
		}
		lines += r.Lines
	}
	return lines
}

// auditOf reads a site's audit log. Signatures are not checked where an earlier version
// ran: it may have replaced its CA and kept no copy of the one before.
func (c *campaign) auditOf(s *site) (audit.Report, error) {
	var opt audit.VerifyOptions
	if c.opt.UpgradeFrom == "" {
		var err error
		if opt.Check, err = audit.CheckedByFolder(s.Config.KeysPath()); err != nil && !errors.Is(err, trust.ErrNoKeys) {
			return audit.Report{}, err
		}
	}
	return audit.Verify(filepath.Join(s.Config.Data, "audit"), opt)
}

// cut returns when trust between two sites was not whole, if that was at a time.
func (c *checker) cut(a, b string, from, to time.Time) bool {
	for _, s := range c.severed {
		if (s.by == a && s.other == b || s.by == b && s.other == a) && s.meets(from, to) {
			return true
		}
	}
	return false
}

// gaveUp reports whether an origin gave a host up at a time, so that jobs which that held were
// lost, whatever they had chosen.
func (c *checker) gaveUp(origin, host string, from, to time.Time) bool {
	for _, s := range c.severed {
		if s.gaveUp && s.by == origin && s.other == host && s.meets(from, to) {
			return true
		}
	}
	return false
}
