// Package token makes and checks the tokens by which a site knows its own users from
// afar. A token is a JWT (RFC 7519), signed with ES256 by a key of the site:
//
//	iss  spiffe://SITE            the site that made it
//	aud  SITE                     the site it is for, the same one
//	sub  the user, see [CheckUser]
//	iat, exp                      seconds since 1970; exp is never left out
//	jti  128 random bits: what a revocation names
//
// and in the header alg ES256, typ JWT, kid the thumbprint of the key (RFC 7638).
//
// It promises:
//
//   - T1: a token is taken only if a key of this site signed it with ES256; what the
//     token says of its own key or algorithm chooses among our keys, nothing else.
//   - T2: a token of another site, for another site, without an end, past its end or
//     before its beginning, or revoked is refused.
//   - T3: a text of more than [MaxLength] bytes is refused before it is parsed.
//   - T4: a refusal names what is wrong and the remedy, and never shows the token.
//
// Parsing and signatures are go-jose's. Nothing here reads a clock: the time is an
// argument. Everything is safe for concurrent use. Begin with [Signer] and [Verifier];
// [Verifier.Caller] is for gRPC. Source: RFC 8725,
// docs/adr/0036-one-invitation.md.
package token
