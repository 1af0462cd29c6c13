package mutants

import "slices"

// Guards lists the guards of trust, by the rows of "Attacks as tests".
func Guards() []Guard {
	return slices.Concat(guardsOfNames(), guardsOfTrust(), guardsOfWork(), guardsOfFloods())
}

// Packages of tests.
const (
	inTrust    = "meta/trust"
	inInvite   = "meta/trust/invite"
	inToken    = "meta/trust/token"
	inAudit    = "meta/trust/audit"
	inDaemon   = "cmd/kithd/daemon"
	inFrames   = "cmd/kithd/frames"
	inPeer     = "meta/peer"
	inGossip   = "cluster/gossip"
	inMeta     = "meta"
	inStore    = "store"
	inTransfer = "meta/transfer"
)

func cut(file, text string) []Cut { return []Cut{{file, text}} }

// guardsOfNames keep out who does not prove a name: rows 1, 3, 4 and 12.
func guardsOfNames() []Guard {
	return []Guard{
		{1, "certificate-verified", cut("meta/trust/tls.go", "			_, err := e.Trusted.verify(s.PeerCertificates, e.Now())\n			return ⟦nil|err⟧"), inTrust, "TestHandshakeRefusesCertificates"},
		{1, "certificate-of-the-bundle", cut("meta/trust/verify.go", "	_, _, err := x509svid.Verify(certs, e.authorities, x509svid.WithTime(now))\n	if «err != nil» {"), inTrust, "TestVerify"},
		{1, "certificate-at-this-time", cut("meta/trust/verify.go", "x509svid.WithTime(⟦leaf.NotBefore.Add(1)|now⟧)"), inDaemon, "TestHostileCertificates"},
		{1, "key-on-p256", cut("meta/trust/verify.go", "case «!isP256(leaf)»:"), inTrust, "TestVerify"},
		{1, "key-that-may-sign", cut("meta/trust/verify.go", "case «leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0»:"), inTrust, "TestVerify"},
		{1, "use-at-both-ends", cut("meta/trust/verify.go", "case «!slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth) || !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth)»:"), inDaemon, "TestHostileCertificates"},
		{1, "floor", cut("meta/trust/verify.go", "case «leaf.NotBefore.Before(e.bundle.Floor)»:"), inDaemon, "TestHostileCertificates"},
		{1, "path-of-the-name", cut("meta/trust/verify.go", "if «id.Path() != idPath» {"), inTrust, "TestVerify"},
		{1, "chain-bounded", cut("meta/trust/verify.go", "case «len(chain) > maxChain || total > MaxBundleBytes»:"), inTrust, "TestVerifyBounds"},
		{1, "site-that-was-called", cut("meta/trust/tls.go", "if err == nil && «got != site» {"), inTrust, "TestOtherSiteAtTheAddress"},
		{1, "tls-1.3", cut("meta/trust/tls.go", "MinVersion: ⟦uint16(tls.VersionTLS12)|tls.VersionTLS13⟧"), inTrust, "TestOnlyTLS13"},

		{3, "secret-of-the-joiner", cut("meta/trust/invite/proof.go", "return ‹hmac.Equal(sum[:], v.Joiner[:])›"), inInvite, "TestGuessedSecret"},
		{3, "secret-of-the-inviter", cut("meta/trust/invite/proof.go", "return ‹hmac.Equal(proof, v.inviterProof(b))›"), inInvite, "TestInviterWithoutTheSecret"},
		{3, "end-of-an-invitation", cut("meta/trust/invite/offer.go", "if «(o.State == Open || o.State == Came) && !now.Before(o.Expires)» {"), inInvite, "TestExpiredInvitation"},
		{3, "invitation-used-once", cut("meta/trust/invite/offer.go", "case ‹o.Joiner.CA == ca›:"), inInvite, "TestSecondUse"},
		{3, "name-that-is-invited", cut("meta/trust/invite/offer.go", "case «site != o.For»:"), inInvite, "TestOtherName"},
		{3, "five-wrong-proofs", cut("meta/trust/invite/offer.go", "if o.Wrong++; «o.Wrong >= MaxWrong» {"), inInvite, "TestFiveWrongProofsBurn"},
		{3, "proof-for-one-connection", cut("meta/trust/invite/proof.go", "[]byte(role), ⟦[]byte(nil)|b.exporter⟧,"), inInvite, "TestReplayedHello"},
		{3, "proof-for-one-joiner", cut("meta/trust/invite/proof.go", "⟦[]byte(nil)|b.joinerCA.RawSubjectPublicKeyInfo⟧,"), inInvite, "TestProofsHoldForOneBinding"},
		{3, "connection-of-joining", cut("meta/trust/invite/proof.go", "if «s.Version != tls.VersionTLS13 || s.NegotiatedProtocol != trust.ALPNJoin || s.DidResume» {"), inInvite, "TestOtherConnections"},
		{3, "pin-of-the-inviter", cut("meta/trust/invite/redeem.go", "if «site != i.Site || PinOf(ca) != i.CA» {"), inInvite, "TestManInTheMiddle"},
		{3, "bundle-with-the-proved-ca", cut("meta/trust/invite/serve.go", "case «!b.Holds(ca)»:"), inInvite, "TestBadDetails"},
		{3, "frames-of-joining-bounded", cut("meta/trust/invite/frame.go", "if «length > most» {"), inInvite, "TestHugeFrame"},
		{3, "protocol-of-joining", cut("meta/trust/invite/serve.go", "if «hello.GetProtocol() != protocol» {"), inInvite, "TestHellosThatProveNothing"},

		{4, "hello-of-the-certificate", cut("meta/peer/links.go", "case «want != \"\" && site != want»:"), inDaemon, "TestHostileHello"},
		{4, "hello-for-this-site", cut("meta/peer/links.go", "case «h.GetPeerSiteId() != \"\" && h.GetPeerSiteId() != string(l.cfg.Site)»:"), inDaemon, "TestHostileHello"},
		{4, "hello-of-this-protocol", cut("meta/peer/links.go", "case «h.GetProtocol() != Protocol»:"), inDaemon, "TestHostileHello"},
		{4, "hello-within-bounds", cut("meta/peer/links.go", "if broken := wire.Check(h); «len(broken) > 0» {"), inDaemon, "TestHostileHello"},
		{4, "hello-of-a-known-site", cut("meta/peer/links.go", "case «l.cfg.Admit != nil && !l.cfg.Admit(site)»:"), inPeer, "TestRefusedPeers"},
		{4, "streams-without-hello", cut("meta/peer/links.go", "MostOne: ⟦1<<20|mostWaitingOne⟧}"), inPeer, "TestStreamsWithoutHelloAreBounded"},
		{4, "server-of-peers-apart", cut("cmd/kithd/daemon/port.go", "	case trust.ALPNPeer:\n		take = ⟦p.users.give|p.peers.give⟧"), inDaemon, "TestProtocolsServeTheirServices"},
		{4, "joining-while-invited", cut("meta/trust/tls.go", "return ‹e.JoinOpen != nil && e.JoinOpen()›"), inTrust, "TestProtocols"},
		{4, "protocol-that-was-asked-for", cut("meta/trust/tls.go", "if «s.NegotiatedProtocol != alpn» {"), inTrust, "TestServerWithoutALPN"},
		{4, "channelz-at-the-socket", cut("cmd/kithd/daemon/door.go", "«!local && strings.HasPrefix(info.FullMethodName, channelzPrefix)»"), inDaemon, "TestServicesOfGRPCAtEachListener"},
		{4, "own-account-at-the-socket", cut("cmd/kithd/daemon/door.go", "if «proof.uid == d.ownUID && !d.allow» {"), inDaemon, "TestOwnAccountIsRefused"},

		{12, "call-needs-a-token", cut("cmd/kithd/daemon/door.go", "		c, err := d.bearer(info.Header, p.Addr.String())\n		if «err != nil» {"), inDaemon, "TestHostileProtocols"},
		{12, "signature-of-a-token", cut("meta/trust/token/verify.go", "if err := ⟦parsed.UnsafeClaimsWithoutVerification(&c)|parsed.Claims(key, &c)⟧; errors.Is(err, jose.ErrCryptoFailure) {"), inToken, "TestAttacks"},
		{12, "shape-of-a-token", cut("meta/trust/token/verify.go", "	if err := checkShape(text); «err != nil» {"), inToken, "TestAttacks"},
		{12, "header-of-a-token", cut("meta/trust/token/verify.go", "	if err := checkHeader(header); «err != nil» {"), inToken, "TestAttacks"},
		{12, "issuer", cut("meta/trust/token/verify.go", "if «c.Issuer != Issuer(v.site)» {"), inToken, "TestAttacks"},
		{12, "audience", cut("meta/trust/token/verify.go", "if «len(c.Audience) != 1 || c.Audience[0] != string(v.site)» {"), inToken, "TestAttacks"},
		{12, "user-of-a-token", cut("meta/trust/token/verify.go", "if err := CheckUser(c.Subject); «err != nil» {"), inToken, "TestAttacks"},
		{12, "id-of-a-token", cut("meta/trust/token/verify.go", "if «c.ID == \"\" || len(c.ID) > maxID» {"), inToken, "TestAttacks"},
		{12, "life-of-a-token", cut("meta/trust/token/verify.go", "«lifetime <= 0 || lifetime > int64(MaxLifetime/time.Second)»"), inToken, "TestAttacks"},
		{12, "token-of-the-future", cut("meta/trust/token/verify.go", "if «issued.After(now.Add(clockSlack))» {"), inToken, "TestAttacks"},
		{12, "token-not-yet-valid", cut("meta/trust/token/verify.go", "if «c.NotBefore != nil && c.NotBefore.Time().After(now.Add(clockSlack))» {"), inToken, "TestAttacks"},
		{12, "end-of-a-token", cut("meta/trust/token/verify.go", "if «!now.Before(expires)» {"), inToken, "TestAttacks"},
		{12, "revoked-token", cut("meta/trust/token/verify.go", "if «v.revoked.Revoked(c.ID)» {"), inToken, "TestRevokedUntilItsEnd"},
		{12, "one-bearer", cut("meta/trust/token/bearer.go", "if «len(values) > 1» || !ok"), inToken, "TestCaller"},
	}
}
