// Package trust holds what a site proves itself with and what it believes of others.
//
// A site has a certificate authority of its own and a leaf certificate with the
// SPIFFE ID spiffe://SITE/kithd; both are in [Keys], a folder. What a site knows of
// another one is a [Bundle]: the CAs that may speak for that one name. Bundles are
// kept per site in a [Set] and never merged, so that no CA can speak for another name.
//
// [Endpoint] makes the TLS configurations of the one port. The application protocol
// that the client names (ALPN) decides before anything is read who may come in: "h2"
// takes users, who show no certificate; "kith-peer/1" and "kith-gossip/1" take known
// sites; "kith-join/1" takes any well-formed site while an invitation is open. Machines that keep
// one site's facts together speak "kith-raft/1" and "kith-member/1" there, see [Member]. It is
// TLS 1.3 only and without session tickets: a resumed session would not prove anew
// that its site is still known.
//
// Start reading at verify.go, which has the whole rule for a certificate. Time comes
// in as a function or an argument. Keys leave this package only as a
// [crypto/tls.Certificate] and to sign tokens; a Keys that is printed or logged shows its site only.
//
// See docs/adr/0034-identity-and-one-port.md.
package trust
