package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"

	"kith/cmd/kithd/frames"
	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta/trust"
)

// serverCredentials says what is known of who is at the other end of a connection: of
// a local socket what the kernel says, of a connection of the port what its handshake
// proved. Of others nothing is known.
type serverCredentials struct {
	credentials.TransportCredentials
	pace *framePace // of connections of the port
}

func newServerCredentials(pace *framePace) credentials.TransportCredentials {
	return serverCredentials{insecure.NewCredentials(), pace}
}

var secured = credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}

// ServerHandshake implements credentials.TransportCredentials. The handshake of a
// connection of the port is over.
func (c serverCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	switch conn := conn.(type) {
	case *net.UnixConn:
		cred, err := credentialOf(conn)
		return conn, cred, err
	case *carriedSocket:
		return conn, conn.who, nil
	case *tls.Conn:
		state := conn.ConnectionState()
		if state.NegotiatedProtocol == trust.ALPNUsers {
			paced := c.pace.conn(conn, "", false)
			return paced, userConnection{secured, paced}, nil
		}
		site, err := trust.PeerSite(state)
		if err != nil {
			return nil, nil, err
		}
		paced := c.pace.conn(conn, site, false)
		return paced, peerConnection{secured, site, chainOf(state), paced}, nil
	}
	return c.TransportCredentials.ServerHandshake(conn)
}

// Clone implements credentials.TransportCredentials.
func (c serverCredentials) Clone() credentials.TransportCredentials {
	return serverCredentials{c.TransportCredentials.Clone(), c.pace}
}

func credentialOf(local *net.UnixConn) (credentials.AuthInfo, error) {
	raw, err := local.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, fmt.Errorf("peer credential: %w", failed)
	}
	return ofAccount(cred.Uid), nil
}

// peerCredential is what the kernel says of a process that called.
type peerCredential struct {
	credentials.CommonAuthInfo
	uid   uint32
	actor identity.Actor // its account, looked up once a connection
}

func ofAccount(uid uint32) peerCredential {
	return peerCredential{secured, uid, identity.MakeActor(accountName(uid))}
}

// AuthType implements credentials.AuthInfo.
func (peerCredential) AuthType() string { return "peer-credential" }

// userConnection is one of a user over TLS; each call brings a token.
type userConnection struct {
	credentials.CommonAuthInfo
	paced *frames.Conn
}

// AuthType implements credentials.AuthInfo.
func (userConnection) AuthType() string { return "tls" }

// peerConnection is one of a site that has proved its name.
type peerConnection struct {
	credentials.CommonAuthInfo
	site job.SiteID
	// chain is what proved it.
	chain [][]byte
	// paced is the connection; nil for one that this site dialled.
	paced *frames.Conn
}

// pacedOf returns the connection that a call came over, nil if nothing paces it.
func pacedOf(proof credentials.AuthInfo) *frames.Conn {
	switch proof := proof.(type) {
	case userConnection:
		return proof.paced
	case peerConnection:
		return proof.paced
	}
	return nil
}

func chainOf(s tls.ConnectionState) (chain [][]byte) {
	for _, c := range s.PeerCertificates {
		chain = append(chain, c.Raw)
	}
	return chain
}

// AuthType implements credentials.AuthInfo.
func (peerConnection) AuthType() string { return "mtls" }

// provenSite returns the site that the connection of a call has proved.
func provenSite(ctx context.Context) (job.SiteID, bool) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return "", false
	}
	c, ok := p.AuthInfo.(peerConnection)
	return c.site, ok
}

// siteCredentials are those of a connection to one site, which must prove its name.
type siteCredentials struct {
	endpoint *trust.Endpoint
	site     job.SiteID
	pace     *framePace // of what the site sends; nil for none
}

func (d *Daemon) siteCredentials(site job.SiteID) credentials.TransportCredentials {
	return siteCredentials{d.identity.endpoint, site, d.pace}
}

// ClientHandshake implements credentials.TransportCredentials.
func (c siteCredentials) ClientHandshake(ctx context.Context, _ string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn := tls.Client(raw, c.endpoint.ClientTLS(c.site, trust.ALPNPeer))
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, nil, err
	}
	proof := peerConnection{secured, c.site, chainOf(conn.ConnectionState()), nil}
	if c.pace == nil {
		return conn, proof, nil
	}
	return c.pace.conn(conn, c.site, true), proof, nil
}

// ServerHandshake implements credentials.TransportCredentials.
func (siteCredentials) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("credentials of a client")
}

// Info implements credentials.TransportCredentials.
func (c siteCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (c siteCredentials) Clone() credentials.TransportCredentials { return c }

// OverrideServerName implements credentials.TransportCredentials.
func (siteCredentials) OverrideServerName(string) error { return nil }
