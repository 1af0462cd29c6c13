// Package invite joins two sites by one invitation.
//
// An [Invitation] is one line of text that the operator of one site, the inviter, gives
// to the operator of another one, the joiner. It has the inviter's name, addresses and
// the [Pin] of its CA, and a secret. The joiner dials, and over one TLS connection
//
//	joiner                                      inviter
//	       <- certificate with the pinned CA
//	       -> any certificate of a site
//	       -> hello: invitation, proof             Desk.Serve
//	       <- proof
//	       -> details: bundle, addresses
//	       <- waiting, every 5 s                   the operator is asked
//	       <- admitted: bundle, addresses          the operator said yes
//
// It promises:
//
//   - I1: nothing is told to a site whose CA is not the pinned one.
//   - I2: a proof is worth nothing but for this connection, these two CAs and names. The
//     secret itself is never sent, and the inviter keeps a [Verifier] of it only.
//   - I3: five wrong proofs, or a second CA with the secret before the decision, end an
//     invitation; it admits one CA at most, of the invited name.
//   - I4: the same joiner may come again and gets the same answer, for at least 10
//     minutes after the decision. Its latest connection counts.
//   - I5: what the other side sends is bounded before it is read, in bytes and time.
//
// [Offer] is the life of an invitation at the inviter, without I/O and clock; [Desk]
// holds offers and leads the exchange; [Redeem] is the joiner's side. The connection is
// of package trust. Source: docs/adr/0036-one-invitation.md.
package invite
