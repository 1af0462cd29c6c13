package token

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"kith/internal/identity"
)

func TestCaller(t *testing.T) {
	s := newSite(t)
	good, made := s.create(t, "ann", time.Hour)
	gone, revoked := s.create(t, "ann", time.Hour)
	if err := s.revoked.Revoke(Revocation{revoked.ID, revoked.Expires}, noon); err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"Bearer ", "bearer ", "BEARER "} {
		c, got, err := s.Caller(metadata.Pairs("authorization", scheme+good), noon)
		if err != nil || got != made || c != (identity.Caller{Actor: "ann", Proof: identity.Token}) {
			t.Errorf("%s: %+v, %+v, %v", scheme, c, got, err)
		}
	}
	for name, c := range map[string]struct {
		md     metadata.MD
		at     time.Time
		want   error
		reason string
	}{
		"no metadata":      {nil, noon, ErrMissing, ReasonMissing},
		"no authorization": {metadata.Pairs("user", "ann"), noon, ErrMissing, ReasonMissing},
		"empty":            {metadata.Pairs("authorization", ""), noon, ErrNotBearer, ReasonRefused},
		"no scheme":        {metadata.Pairs("authorization", good), noon, ErrNotBearer, ReasonRefused},
		"basic":            {metadata.Pairs("authorization", "Basic YW5uOnB3"), noon, ErrNotBearer, ReasonRefused},
		"no token":         {metadata.Pairs("authorization", "Bearer "), noon, ErrNotBearer, ReasonRefused},
		"two blanks":       {metadata.Pairs("authorization", "Bearer  "+good), noon, ErrMalformed, ReasonRefused},
		"two of them":      {metadata.Pairs("authorization", "Bearer "+good, "authorization", "Bearer "+good), noon, ErrNotBearer, ReasonRefused},
		"1 MiB":            {metadata.Pairs("authorization", "Bearer "+strings.Repeat("A", 1<<20)), noon, ErrMalformed, ReasonRefused},
		"revoked":          {metadata.Pairs("authorization", "Bearer "+gone), noon, ErrRevoked, ReasonRevoked},
		"expired":          {metadata.Pairs("authorization", "Bearer "+good), made.Expires, ErrExpired, ReasonExpired},
	} {
		caller, _, err := s.Caller(c.md, c.at)
		if !errors.Is(err, c.want) || caller != (identity.Caller{}) {
			t.Errorf("%s: %+v, %v", name, caller, err)
			continue
		}
		st, ok := status.FromError(err)
		if c.reason == ReasonMissing && !strings.Contains(st.Message(), "--token FILE") {
			t.Errorf("%s: %q does not say how kith sends one", name, st.Message())
		}
		if !ok || st.Code() != codes.Unauthenticated || len(st.Message()) > 600 || len(st.Details()) != 1 {
			t.Errorf("%s: status %v", name, st)
			continue
		}
		if info, ok := st.Details()[0].(*errdetails.ErrorInfo); !ok || info.GetReason() != c.reason || info.GetDomain() != "kith" {
			t.Errorf("%s: details %v, want %s", name, st.Details(), c.reason)
		}
		if strings.Contains(st.Message(), good[:40]) {
			t.Errorf("%s: the status shows the token", name)
		}
	}
}
