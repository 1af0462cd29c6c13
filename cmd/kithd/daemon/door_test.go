package daemon

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"kith/internal/identity"
	"kith/meta/trust"
	"kith/meta/trust/token"
)

// Whatever headers and method a call has: at the socket the caller is the account that
// the kernel names, and the account of kithd is refused; from elsewhere nobody comes in
// without a token; nothing that a caller says of itself counts.
func FuzzCallHeaders(f *testing.F) {
	keys, err := trust.Init(f.TempDir()+"/keys", "alpha", trust.Options{}, time.Now())
	if err != nil {
		f.Fatal(err)
	}
	tokens, err := token.NewVerifier("alpha", new(token.List), &keys.TokenKey().PublicKey)
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"authorization", "Authorization", "x-forwarded-user", "peer-credential"} {
		f.Add(name, "Bearer a.b.c", "/kith.v1.JobService/SubmitJob", uint32(0))
		f.Add(name, "Basic cm9vdDo=\x00\xff", "/grpc.channelz.v1.Channelz/GetServers", uint32(7))
	}
	const own = 12345
	refused := 0
	d := &door{ownUID: own, tokens: tokens, refused: func(string, error) { refused++ }}
	tcp := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 7}
	f.Fuzz(func(t *testing.T, name, value, method string, uid uint32) {
		info := &tap.Info{FullMethodName: method, Header: metadata.MD{name: {value}}}
		from := func(p *peer.Peer) context.Context {
			return metadata.NewIncomingContext(peer.NewContext(context.Background(), p), info.Header)
		}
		ctx, err := d.admit(from(&peer.Peer{Addr: &net.UnixAddr{Net: "unix"}, AuthInfo: ofAccount(uid)}), info)
		if uid == own {
			if status.Code(err) != codes.PermissionDenied {
				t.Errorf("the own account: %v", err)
			}
		} else if c := callerOf(ctx); err != nil || c.Proof != identity.PeerCredential || c.Actor != identity.MakeActor(accountName(uid)) {
			t.Errorf("account %d: %+v, %v", uid, c, err)
		}
		before := refused
		ctx, err = d.admit(from(&peer.Peer{Addr: tcp, AuthInfo: userConnection{secured, nil}}), info)
		if code := status.Code(err); code != codes.Unauthenticated && code != codes.PermissionDenied || code == codes.Unauthenticated && refused != before+1 {
			t.Errorf("from elsewhere with %q: %q: %v, told %d times", name, value, err, refused-before)
		}
		if c := callerOf(ctx); c.Proof == identity.Token {
			t.Errorf("from elsewhere the caller is %+v", c)
		}
		ctx, err = d.admit(from(&peer.Peer{Addr: tcp}), info)
		if c := callerOf(ctx); c.Proof != identity.NoProof || c.Actor != "" && c.Actor != identity.Anonymous || err != nil && status.Code(err) != codes.PermissionDenied {
			t.Errorf("a site without keys: %+v, %v", c, err)
		}
	})
}

// Who is refused as the account of kithd is told whom to call as, and not that account.
func TestOwnAccountIsTold(t *testing.T) {
	for _, uid := range []uint32{0, 12345} {
		d := &door{ownUID: uid}
		p := &peer.Peer{Addr: &net.UnixAddr{Net: "unix"}, AuthInfo: ofAccount(uid)}
		_, err := d.admit(peer.NewContext(t.Context(), p), &tap.Info{FullMethodName: "/kith.v1.JobService/SubmitJob"})
		if err == nil || strings.Contains(err.Error(), "such as root") == (uid == 0) {
			t.Errorf("account %d is told: %v", uid, err)
		}
	}
}
