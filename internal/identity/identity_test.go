package identity

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCallerGoesWithTheContext(t *testing.T) {
	ctx := context.Background()
	if c := From(ctx); c.Actor != Anonymous || c.Proof != NoProof {
		t.Errorf("without a caller: %+v", c)
	}
	want := Caller{Actor: "ada", Proof: PeerCredential, Address: "@"}
	if c := From(With(ctx, want)); c != want {
		t.Errorf("got %+v, want %+v", c, want)
	}
	if c := From(With(ctx, Caller{Address: "[::1]:7"})); c.Actor != Anonymous || c.Address != "[::1]:7" {
		t.Errorf("a caller without a name: %+v", c)
	}
}

func TestActors(t *testing.T) {
	for text, want := range map[string]string{"": "anonymous", "ada": "ada", "a\xffb": "a\uFFFDb"} {
		if got := MakeActor(text); got.String() != want {
			t.Errorf("MakeActor(%q) = %q, want %q", text, got, want)
		}
	}
	long := string(MakeActor(strings.Repeat("é", MaxLength)))
	if len(long) > MaxLength || !utf8.ValidString(long) {
		t.Errorf("a long name became %d bytes, valid %v", len(long), utf8.ValidString(long))
	}
	if got := Actor("").String(); got != "unknown" {
		t.Errorf("an actor of an old record is %q", got)
	}
}
