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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"kith/meta/api"
	"kith/meta/peer"
	kithv1 "kith/proto/gen/kith/v1"
)

// maxMessage bounds a gRPC message in either direction.
const maxMessage = 4 << 20

// maxStreams bounds the calls that one client makes at a time over a
// connection; more wait at the client's.
const maxStreams = 1024

// listen opens the daemon's port.
func listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen.address %q: the port is in use: stop what uses it or choose another: %w", address, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen.address %q: %w", address, err)
	}
	return l, nil
}

// maxHeaderList bounds the headers of a call, in bytes.
const maxHeaderList = 16 << 10

// A connection must say what it speaks within handshakeWait, and is closed when no call
// was made on it for idleWait: a client dials again by itself.
const (
	handshakeWait = 10 * time.Second
	idleWait      = 5 * time.Minute
)

// newServer registers all services on a gRPC server.
func newServer(users *api.Server, links *peer.Links, border *border, log *slog.Logger) (*grpc.Server, *health.Server) {
	g := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaderList), grpc.ConnectionTimeout(handshakeWait), grpc.InTapHandle(border.tap),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 20 * time.Second, MaxConnectionIdle: idleWait}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.Creds(newLocalCredentials()),
		grpc.ChainUnaryInterceptor(recoverUnary(log), wholeUnary, identifyUnary, newGates().unary, users.Unary),
		grpc.ChainStreamInterceptor(recoverStream(log), wholeStream, identifyStream, users.Stream),
	)
	kithv1.RegisterJobServiceServer(g, users)
	kithv1.RegisterSiteServiceServer(g, users)
	kithv1.RegisterFileServiceServer(g, users)
	kithv1.RegisterPeerServiceServer(g, links)
	h := health.NewServer()
	healthv1.RegisterHealthServer(g, h)
	reflection.Register(g)
	return g, h
}

// dialOptions are those of streams to peers.
func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 20 * time.Second, PermitWithoutStream: true}),
		grpc.WithMaxHeaderListSize(maxHeaderList),
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
