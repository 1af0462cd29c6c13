package daemon

import (
	"context"
	"os/user"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"kith/internal/identity"
)

// callerOf says who makes the call of ctx.
func callerOf(ctx context.Context) identity.Caller {
	c := identity.From(ctx)
	if c.Proof != identity.NoProof {
		return c // by its token, see door
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return c
	}
	if p.Addr != nil {
		c.Address = p.Addr.String()
	}
	switch proof := p.AuthInfo.(type) {
	case peerCredential:
		c.Actor, c.Proof = proof.actor, identity.PeerCredential
	case peerConnection:
		c.Actor, c.Proof = identity.MakeActor("spiffe://"+string(proof.site)+"/kithd"), identity.Certificate
	}
	return c
}

// accountName returns the name of an account of this machine, "uid-7" if it has none.
func accountName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "uid-" + id
}

// identifyUnary and identifyStream put the caller into the context of each RPC.
func identifyUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	return next(identity.With(ctx, callerOf(ctx)), req)
}

func identifyStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return next(srv, identified{stream, identity.With(stream.Context(), callerOf(stream.Context()))})
}

// identified is a stream whose context carries the caller.
type identified struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s identified) Context() context.Context { return s.ctx }
