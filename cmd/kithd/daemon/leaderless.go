package daemon

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// leaderless answers the clients of a member while no leader can be reached: it shows jobs, and says how old
// that is; any other call is refused, and says when to come back. A connection does not last, so that its client finds the
// leader when there is one.
type leaderless struct {
	server *grpc.Server
	in     *handoff
	config *tls.Config // for users
}

// leaderlessAge is how long a connection to a member lasts that cannot bring it to the leader.
const leaderlessAge = 500 * time.Millisecond

// newLeaderless makes one.
func newLeaderless(at net.Addr, config *tls.Config, pace *framePace, r *reading) *leaderless {
	refuse := func(any, grpc.ServerStream) error { return r.refusal() }
	l := &leaderless{
		server: grpc.NewServer(grpc.ChainUnaryInterceptor(r.unary, r.users.Unary), grpc.StreamInterceptor(r.stream), grpc.Creds(newServerCredentials(pace)), grpc.UnknownServiceHandler(refuse),
			grpc.MaxRecvMsgSize(maxMessage), grpc.MaxHeaderListSize(maxHeaderList), grpc.ConnectionTimeout(handshakeWait), grpc.MaxConcurrentStreams(maxStreams),
			grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: leaderlessAge, MaxConnectionAgeGrace: leaderlessAge})),
		in: newHandoff(at), config: config,
	}
	r.serve(l.server)
	return l
}

// take answers a connection; one of the port begins with TLS.
func (l *leaderless) take(ctx context.Context, conn net.Conn, port bool) {
	if !port {
		l.in.put(conn)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tlsWait)
	defer cancel()
	secured := tls.Server(conn, l.config)
	if secured.HandshakeContext(ctx) != nil || secured.ConnectionState().NegotiatedProtocol != l.config.NextProtos[0] {
		conn.Close() //nolint:errcheck // it is no user
		return
	}
	l.in.put(secured)
}
