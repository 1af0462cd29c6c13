package token

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRevokedUntilItsEnd(t *testing.T) {
	s := newSite(t)
	text, made := s.create(t, "ann", time.Hour)
	other, _ := s.create(t, "ann", time.Hour)
	for range 2 {
		if err := s.revoked.Revoke(Revocation{made.ID, made.Expires}, noon); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Verify(text, noon); !errors.Is(err, ErrRevoked) {
		t.Errorf("revoked: %v", err)
	}
	if _, err := s.Verify(other, noon); err != nil {
		t.Errorf("the user's other token: %v", err)
	}
	s.revoked.prune(made.Expires.Add(-time.Second))
	if !s.revoked.Revoked(made.ID) {
		t.Error("forgotten before the token ended")
	}
	s.revoked.prune(made.Expires)
	if len(s.revoked.until) != 0 {
		t.Error("remembered after the token ended")
	}
	if _, err := s.Verify(text, made.Expires); !errors.Is(err, ErrExpired) {
		t.Errorf("after its end: %v", err)
	}
}

func TestListIsBounded(t *testing.T) {
	var l List
	for n := range MaxRevoked {
		if err := l.Revoke(Revocation{fmt.Sprint(n), noon.Add(time.Minute)}, noon); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Revoke(Revocation{"one more", noon.Add(time.Hour)}, noon); !errors.Is(err, ErrListFull) {
		t.Errorf("a full list: %v", err)
	}
	if err := l.Revoke(Revocation{"7", noon.Add(time.Minute)}, noon); err != nil {
		t.Errorf("again in a full list: %v", err)
	}
	if err := l.Revoke(Revocation{"one more", noon.Add(time.Hour)}, noon.Add(time.Minute)); err != nil {
		t.Errorf("after the others ended: %v", err)
	}
	if len(l.until) != 1 || !l.Revoked("one more") {
		t.Errorf("%d are left", len(l.until))
	}
}

func TestRevocationsThatAreNone(t *testing.T) {
	var l List
	for _, id := range []string{"", strings.Repeat("x", maxID+1)} {
		if err := l.Revoke(Revocation{id, noon.Add(time.Hour)}, noon); err == nil {
			t.Errorf("id %.10q is taken", id)
		}
	}
	if err := l.Revoke(Revocation{"ended", noon}, noon); err != nil || l.Revoked("ended") {
		t.Errorf("a token that ended: %v", err)
	}
	if err := l.Revoke(Revocation{"late", noon.AddDate(100, 0, 0)}, noon); err != nil {
		t.Fatal(err)
	}
	l.prune(noon.Add(MaxLifetime))
	if l.Revoked("late") {
		t.Error("an end that no token has keeps its place for a hundred years")
	}
}

func TestListIsSafeForManyAtATime(t *testing.T) {
	var l List
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for k := range 200 {
				if err := l.Revoke(Revocation{fmt.Sprint(n, k), noon.Add(time.Duration(k) * time.Second)}, noon); err != nil {
					t.Error(err)
				}
				l.Revoked(fmt.Sprint(n, k))
			}
		})
	}
	wg.Wait()
	if n := len(l.until); n != 8*199 {
		t.Errorf("%d revocations, want %d", n, 8*199)
	}
}
