// Package identity says who asks a site for something.
//
// A [Caller] comes with each RPC: an interceptor of the daemon puts it into the
// context, the services read it there. What a person causes is recorded with the
// caller's [Actor], in a job's record or the site's, and logged with it.
//
// How a caller is known is its [Proof]: the credential of its connection, a
// certificate or a token. Where nothing proves it, it is [Anonymous]. What may depend
// on who calls reads the Caller.
package identity

import (
	"context"
	"strings"
	"unicode/utf8"
)

// Actor names who caused something. It is valid UTF-8 of at most MaxLength bytes.
// The empty one is that of records from before actors were kept.
type Actor string

// Anonymous is an actor that a site knows nothing about.
const Anonymous Actor = "anonymous"

// MaxLength bounds an [Actor], in bytes.
const MaxLength = 256

// MakeActor makes an actor of any text: bytes that are not UTF-8 are replaced, what
// is too long is cut, and nothing becomes [Anonymous].
func MakeActor(name string) Actor {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if len(name) > MaxLength {
		cut := MaxLength
		for !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut]
	}
	if name == "" {
		return Anonymous
	}
	return Actor(name)
}

// String returns the name, "unknown" of the empty actor.
func (a Actor) String() string {
	if a == "" {
		return "unknown"
	}
	return string(a)
}

// Proof says how a site knows who a caller is.
type Proof uint8

// The proofs.
const (
	NoProof        Proof = iota // it does not: the caller is Anonymous
	PeerCredential              // the kernel vouches for the process at the other end of a local socket
	Certificate                 // a site has shown its certificate
	Token                       // the call has brought a token of this site
)

// String returns the proof in a word or two.
func (p Proof) String() string {
	switch p {
	case PeerCredential:
		return "peer credential"
	case Certificate:
		return "certificate"
	case Token:
		return "token"
	}
	return "none"
}

// Caller is who makes an RPC.
type Caller struct {
	Actor Actor
	Proof Proof
	// Address is where the call comes from, for the log; it proves nothing.
	Address string
}

type key struct{}

// With returns a context that carries a caller.
func With(ctx context.Context, c Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns the caller that ctx carries, [Anonymous] if it carries none.
func From(ctx context.Context) Caller {
	c, _ := ctx.Value(key{}).(Caller)
	if c.Actor == "" {
		c.Actor = Anonymous
	}
	return c
}
