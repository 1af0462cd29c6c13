package daemon

import (
	"context"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"kith/internal/identity"
	"kith/meta/trust/token"
)

// Tokens verifies what users from elsewhere bring with each call, see [token.Verifier].
type Tokens interface {
	Caller(md metadata.MD, now time.Time) (identity.Caller, token.Token, error)
}

// door says who may call. It sees a call when its headers have come and nothing else.
type door struct {
	// ownUID is refused at the socket: jobs run under it, and a job is no user.
	ownUID uint32
	allow  bool // ownUID is let in all the same
	tokens Tokens
	border *border
	// refused is told of calls without a good token.
	refused func(address string, err error)
}

func newDoor(allowOwn bool, tokens Tokens, b *border, refused func(string, error)) *door {
	return &door{ownUID: uint32(os.Geteuid()), allow: allowOwn, tokens: tokens, border: b, refused: refused} //nolint:gosec // a uid fits
}

// tap is an in-tap handle. A call that is refused has cost nothing but its headers.
func (d *door) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	ctx, err := d.admit(ctx, info)
	if err != nil {
		return ctx, err
	}
	return d.border.tap(ctx, info)
}

// admit returns a context that carries the caller, if its proof is of a call.
func (d *door) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	p, ok := peer.FromContext(ctx)
	if _, local := proofOf(p).(peerCredential); !local && strings.HasPrefix(info.FullMethodName, channelzPrefix) {
		return ctx, status.Error(codes.PermissionDenied, "channelz tells of all connections: it is served at the site's unix socket alone")
	}
	if !ok {
		return ctx, nil
	}
	switch proof := p.AuthInfo.(type) {
	case peerCredential:
		if proof.uid == d.ownUID && !d.allow {
			another := ", such as root,"
			if proof.uid == 0 {
				another = ""
			}
			return ctx, status.Errorf(codes.PermissionDenied,
				"account %s runs kithd and its jobs, and a job is not a user: call from another account%s or set listen.allow_own_uid = true to try things out",
				accountName(proof.uid), another)
		}
	case userConnection:
		c, err := d.bearer(info.Header, p.Addr.String())
		if err != nil {
			return ctx, err
		}
		return identity.With(ctx, c), nil
	}
	return ctx, nil
}

// channelzPrefix begins the methods of gRPC's service for looking at its connections.
const channelzPrefix = "/grpc.channelz."

func proofOf(p *peer.Peer) credentials.AuthInfo {
	if p == nil {
		return nil
	}
	return p.AuthInfo
}

// bearer returns whom the token in the headers of a call names.
func (d *door) bearer(header metadata.MD, address string) (identity.Caller, error) {
	if d.tokens == nil {
		return identity.Caller{}, status.Error(codes.Unauthenticated, "this site takes no tokens: call over its unix socket")
	}
	c, _, err := d.tokens.Caller(header, time.Now())
	if err != nil {
		d.refused(address, err)
		return c, err
	}
	c.Address = address
	return c, nil
}
