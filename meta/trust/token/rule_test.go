package token

import (
	"errors"
	"fmt"
	"testing"
)

func TestRuleIsAWord(t *testing.T) {
	for err, want := range map[error]string{
		ErrMissing: "missing", ErrNotBearer: "not-bearer", ErrMalformed: "malformed", ErrUnknownKey: "unknown-key",
		ErrBadSignature: "signature", ErrBadClaims: "claims", ErrExpired: "expired", ErrRevoked: "revoked", errors.New("another"): "token",
	} {
		if got := Rule(refusal(fmt.Errorf("of ann: %w", err))); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
