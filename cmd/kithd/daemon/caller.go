package daemon

import (
	"context"
	"fmt"
	"net"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"

	"kith/internal/identity"
)

// localCredentials reads who is at the other end of a local socket from the
// kernel. Other connections are as they are without: nothing is known of them.
type localCredentials struct {
	credentials.TransportCredentials
}

func newLocalCredentials() credentials.TransportCredentials {
	return localCredentials{insecure.NewCredentials()}
}

// ServerHandshake implements credentials.TransportCredentials.
func (c localCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	local, ok := conn.(*net.UnixConn)
	if !ok {
		return c.TransportCredentials.ServerHandshake(conn)
	}
	raw, err := local.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return nil, nil, err
	}
	if failed != nil {
		return nil, nil, fmt.Errorf("peer credential: %w", failed)
	}
	return conn, peerCredential{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}, cred.Uid}, nil
}

// Clone implements credentials.TransportCredentials.
func (c localCredentials) Clone() credentials.TransportCredentials {
	return localCredentials{c.TransportCredentials.Clone()}
}

// peerCredential is what the kernel says of a process that called.
type peerCredential struct {
	credentials.CommonAuthInfo
	uid uint32
}

// AuthType implements credentials.AuthInfo.
func (peerCredential) AuthType() string { return "peer-credential" }

// callerOf says who makes the call of ctx.
func callerOf(ctx context.Context) identity.Caller {
	c := identity.Caller{Actor: identity.Anonymous}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return c
	}
	if p.Addr != nil {
		c.Address = p.Addr.String()
	}
	if cred, ok := p.AuthInfo.(peerCredential); ok {
		c.Actor, c.Proof = identity.MakeActor(accountName(cred.uid)), identity.PeerCredential
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
