package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"syscall"
	"time"

	"google.golang.org/grpc"
	channelz "google.golang.org/grpc/channelz/service"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"kith/meta/api"
	"kith/meta/peer"
	kithv1 "kith/proto/gen/kith/v1"
)

// maxMessage bounds a gRPC message in either direction.
const maxMessage = 4 << 20

// maxStreams bounds the calls that one client makes at a time over a
// connection; more wait at the client's.
const maxStreams = 1024

// maxPeerStreams bounds them on a connection of another site, which has one for good. What
// is begun and taken back at once holds a place until its handler has ended, and what comes
// half its window of memory.
const maxPeerStreams = 8

// listen opens the daemon's port.
func listen(key, address string) (net.Listener, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // it takes no filter, see [border.shut]
	l, err := lc.Listen(context.Background(), "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s %q: the port is in use: stop what uses it or choose another: %w", key, address, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", key, address, err)
	}
	return l, nil
}

// maxHeaderList bounds the headers of a call, in bytes.
const maxHeaderList = 16 << 10

// A connection must say what it speaks within handshakeWait, and is closed when no call
// was made on it for idleWait: a client dials again by itself.
const (
	handshakeWait = 5 * time.Second
	idleWait      = 5 * time.Minute
)

// streamWorkers is how many goroutines the server of users keeps for calls. A call finds one of them
// whose stack has grown to what calls need. It gets a goroutine of its own while all are taken,
// by calls that last for instance.
const streamWorkers = 32

// serverOptions are what all gRPC servers of a site have in common.
func serverOptions(tap tap.ServerInHandle, pace *framePace) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaderList), grpc.ConnectionTimeout(handshakeWait), grpc.InTapHandle(tap),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 20 * time.Second, MaxConnectionIdle: idleWait}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.Creds(newServerCredentials(pace)),
		trimmedRequests(),
	}
}

// newServer makes the gRPC server of users.
func newServer(users *api.Server, door *door, rates *userRates, pace *framePace, log *slog.Logger) (*grpc.Server, *health.Server) {
	g := grpc.NewServer(append(serverOptions(door.tap, pace), grpc.NumStreamWorkers(streamWorkers),
		grpc.ChainUnaryInterceptor(recoverUnary(log), wholeUnary, identifyUnary, rates.unary, newGates().unary, users.Unary),
		grpc.ChainStreamInterceptor(recoverStream(log), wholeStream, identifyStream, rates.stream, users.Stream),
	)...)
	kithv1.RegisterJobServiceServer(g, users)
	kithv1.RegisterBagServiceServer(g, users)
	kithv1.RegisterSiteServiceServer(g, users)
	kithv1.RegisterFileServiceServer(g, users)
	kithv1.RegisterTrustServiceServer(g, users)
	h := health.NewServer()
	healthv1.RegisterHealthServer(g, h)
	reflection.Register(g)
	channelz.RegisterChannelzServiceToServer(g) // at the socket alone, see door
	return g, h
}

// peerWindow is how many bytes may be under way on a stream between sites, and on its
// connection: as many as pieces of files are asked for at a time. gRPC would find out what
// the network holds, by a ping for each message that comes, which is another two records of
// TLS to write and to read.
const peerWindow = 4 << 20

// newPeerServer makes the gRPC server of other sites: it serves nothing else.
func newPeerServer(links *peer.Links, border *border, pace *framePace, log *slog.Logger) *grpc.Server {
	g := grpc.NewServer(append(serverOptions(border.tap, pace),
		grpc.StaticStreamWindowSize(peerWindow), grpc.StaticConnWindowSize(peerWindow),
		grpc.MaxConcurrentStreams(maxPeerStreams), grpc.ChainStreamInterceptor(recoverStream(log), wholeStream, identifyStream))...)
	kithv1.RegisterPeerServiceServer(g, links)
	return g
}

// dialOptions are those of streams to peers.
func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 20 * time.Second, PermitWithoutStream: true}),
		grpc.WithMaxHeaderListSize(maxHeaderList),
		grpc.WithStaticStreamWindowSize(peerWindow), grpc.WithStaticConnWindowSize(peerWindow),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 5 * time.Second}),
	}
}

// A panic in a handler is a bug, but one request's: it is logged with its
// stack, and the caller is told no more than that.
func recovered(log *slog.Logger, method string, p any) error {
	log.Error("handler panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return status.Error(codes.Internal, "internal error; the site's log tells more")
}

func recoverUnary(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = recovered(log, info.FullMethod, p)
			}
		}()
		return next(ctx, req)
	}
}

func recoverStream(log *slog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = recovered(log, info.FullMethod, p)
			}
		}()
		return next(srv, stream)
	}
}
