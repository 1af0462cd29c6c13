package daemon

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"google.golang.org/grpc"
	channelzv1 "google.golang.org/grpc/channelz/grpc_channelz_v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"kith/meta/trust"
	"kith/meta/trust/token"
)

// Who gets an answer from the services that gRPC brings, at each listener of a site with
// keys and of one without: health and reflection are for callers who are known, channelz
// for those at the socket.
func TestServicesOfGRPCAtEachListener(t *testing.T) {
	t.Parallel()
	a := attack(t, nil)
	strict, _ := secureConfig(t, "delta")
	strict.Listen.AllowOwnUID = false
	openSite := startSite(t, testConfig(t, "epsilon"))
	signer, err := token.NewSigner("alpha", a.own.TokenKey())
	if err != nil {
		t.Fatal(err)
	}
	bearer, _, err := signer.Create("ann", time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	tls13 := credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13})
	port := func(alpn string, c *tls.Certificate) *grpc.ClientConn {
		return a.connect("passthrough:///"+a.d.Address(), anyCredentials{tls13, crude(c, alpn)})
	}
	beta := a.beta.keys.Leaf()
	services := map[string]func(context.Context, *grpc.ClientConn) error{
		"health": func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := healthv1.NewHealthClient(c).Check(ctx, &healthv1.HealthCheckRequest{})
			return err
		},
		"health, watched": func(ctx context.Context, c *grpc.ClientConn) error {
			s, err := healthv1.NewHealthClient(c).Watch(ctx, &healthv1.HealthCheckRequest{})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		},
		"reflection": func(ctx context.Context, c *grpc.ClientConn) error {
			s, err := reflectionv1.NewServerReflectionClient(c).ServerReflectionInfo(ctx)
			if err != nil {
				return err
			}
			s.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}) //nolint:errcheck // Recv says why
			_, err = s.Recv()
			return err
		},
		"channelz": func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := channelzv1.NewChannelzClient(c).GetServers(ctx, &channelzv1.GetServersRequest{})
			return err
		},
	}
	all := func(code codes.Code) map[string]codes.Code {
		return map[string]codes.Code{"health": code, "health, watched": code, "reflection": code, "channelz": code}
	}
	noChannelz := func(others codes.Code) map[string]codes.Code {
		m := all(others)
		m["channelz"] = codes.PermissionDenied
		return m
	}
	for name, c := range map[string]struct {
		conn  *grpc.ClientConn
		token string
		want  map[string]codes.Code
	}{
		"the socket":                  {a.connect("unix:"+a.cfg.SocketPath(), insecure.NewCredentials()), "", all(codes.OK)},
		"the socket, as a job":        {startSecure(t, strict, Options{}).connect("unix:"+strict.SocketPath(), insecure.NewCredentials()), "", all(codes.PermissionDenied)},
		"h2":                          {port(trust.ALPNUsers, nil), "", noChannelz(codes.Unauthenticated)},
		"h2 with a site's proof":      {port(trust.ALPNUsers, beta), "", noChannelz(codes.Unauthenticated)},
		"h2 with a bad token":         {port(trust.ALPNUsers, nil), bearer + "x", noChannelz(codes.Unauthenticated)},
		"h2 with a token":             {port(trust.ALPNUsers, nil), bearer, noChannelz(codes.OK)},
		"kith-peer/1":                 {port(trust.ALPNPeer, beta), "", all(codes.Unimplemented)},
		"kith-peer/1 with a token":    {port(trust.ALPNPeer, beta), bearer, all(codes.Unimplemented)},
		"kith-peer/1 without proof":   {port(trust.ALPNPeer, nil), bearer, all(codes.Unavailable)},
		"kith-gossip/1":               {port(trust.ALPNGossip, beta), bearer, all(codes.Unavailable)},
		"kith-join/1, nobody invited": {port(trust.ALPNJoin, beta), bearer, all(codes.Unavailable)},
		"a site without keys":         {openSite.connect(openSite.d.Address(), insecure.NewCredentials()), "", noChannelz(codes.OK)},
	} {
		for service, call := range services {
			ctx := a.ctx()
			if c.token != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
			}
			if err := call(ctx, c.conn); status.Code(err) != c.want[service] {
				t.Errorf("%s, %s: %v, want %v", name, service, err, c.want[service])
			}
		}
	}
}
