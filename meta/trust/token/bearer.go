package token

import (
	"errors"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"kith/internal/identity"
)

// Refusals of a call's metadata.
var (
	// ErrMissing is returned when a call carries no token.
	ErrMissing = errors.New("the call carries no token that kith token create printed; give kith --token FILE, others the metadata \"authorization: Bearer TOKEN\"")
	// ErrNotBearer is returned when a call's authorization is not one bearer token.
	ErrNotBearer = errors.New("the metadata authorization has to be \"Bearer TOKEN\", once")
)

// The reasons of refused calls, which are API: see docs/protocol.md.
const (
	ReasonMissing = "TOKEN_MISSING"
	ReasonRefused = "TOKEN_REFUSED"
	ReasonExpired = "TOKEN_EXPIRED"
	ReasonRevoked = "TOKEN_REVOKED"
)

// Bearer returns the token in a call's metadata, unchecked. The error is [ErrMissing] or
// [ErrNotBearer]; neither shows what was sent.
func Bearer(md metadata.MD) (string, error) {
	values := md.Get("authorization")
	if len(values) == 0 {
		return "", ErrMissing
	}
	scheme, text, ok := strings.Cut(values[0], " ")
	if len(values) > 1 || !ok || !strings.EqualFold(scheme, "bearer") || text == "" {
		return "", ErrNotBearer
	}
	return text, nil
}

// Caller returns who makes a call by the token in its metadata. It needs nothing of the
// call but its header, so it can be asked in grpc.InTapHandle, before the body is read.
// The caller's Address is left empty. The error is a gRPC status, UNAUTHENTICATED with
// one of the reasons above; what it wraps, [ErrMissing] and the refusals of [Verifier.Verify], is
// for the log.
func (v *Verifier) Caller(md metadata.MD, now time.Time) (identity.Caller, Token, error) {
	text, err := Bearer(md)
	if err != nil {
		return identity.Caller{}, Token{}, refusal(err)
	}
	t, err := v.Verify(text, now)
	if err != nil {
		return identity.Caller{}, Token{}, refusal(err)
	}
	return identity.Caller{Actor: identity.MakeActor(t.User), Proof: identity.Token}, t, nil
}

// Rule names, in a word, what is wrong with the token of a call that was refused: for the
// audit log.
func Rule(err error) string {
	for _, r := range []struct {
		err  error
		word string
	}{
		{ErrMissing, "missing"}, {ErrNotBearer, "not-bearer"}, {ErrMalformed, "malformed"}, {ErrUnknownKey, "unknown-key"},
		{ErrBadSignature, "signature"}, {ErrBadClaims, "claims"}, {ErrExpired, "expired"}, {ErrRevoked, "revoked"},
	} {
		if errors.Is(err, r.err) {
			return r.word
		}
	}
	return "token"
}

// A refused call is a status for the caller and an error for the log.
type refused struct {
	error
	status *status.Status
}

func (r refused) GRPCStatus() *status.Status { return r.status }
func (r refused) Unwrap() error              { return r.error }

func refusal(err error) error {
	reason := ReasonRefused
	switch {
	case errors.Is(err, ErrMissing):
		reason = ReasonMissing
	case errors.Is(err, ErrExpired):
		reason = ReasonExpired
	case errors.Is(err, ErrRevoked):
		reason = ReasonRevoked
	}
	s := status.New(codes.Unauthenticated, "authorization: "+err.Error())
	if with, e := s.WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: "kith"}); e == nil {
		s = with
	}
	return refused{err, s}
}
