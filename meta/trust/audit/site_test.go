package audit

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta/trust"
)

func keysOf(t *testing.T, site job.SiteID, now time.Time) *trust.Keys {
	t.Helper()
	k, err := trust.Init(filepath.Join(t.TempDir(), "keys"), site, trust.Options{}, now)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func checkedBy(t *testing.T, k *trust.Keys) func(*Head) error {
	t.Helper()
	check, err := CheckedBy(k.Bundle())
	if err != nil {
		t.Fatal(err)
	}
	return check
}

// What a site has signed stays provable by its folder of keys when its CA has been
// replaced, twice here, and is not by its present CA alone.
func TestHeadsOutliveTheirCA(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	k, err := trust.Init(keys, "alpha", trust.Options{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for range 3 {
		l := open(t, Config{Dir: dir, Site: "alpha", Signer: SignedBy(k, time.Now)})
		if err := l.Sync(context.Background(), Entry{Kind: "drain"}); err != nil {
			t.Fatal(err)
		}
		closeLog(t, l)
		if err := errors.Join(k.BeginCA(time.Now()), k.FinishCA(time.Now())); err != nil {
			t.Fatal(err)
		}
	}
	check, err := CheckedByFolder(keys)
	if err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir, VerifyOptions{Check: check}); r.Signed == 0 || len(r.Faults) > 0 {
		t.Errorf("by the folder: %+v", r)
	}
	if r := verify(t, dir, VerifyOptions{Check: checkedBy(t, k)}); len(r.Faults) == 0 {
		t.Errorf("by the last CA alone: %+v", r)
	}
}

// The heads of a site are proved by its CA and no other, also when the leaf that signed
// them has long ended; another site with the same name is found out.
func TestHeadsAreSignedByTheSite(t *testing.T) {
	long := time.Now().AddDate(-1, 0, 0)
	now := func() time.Time { return long }
	k := keysOf(t, "alpha", long)
	dir := t.TempDir()
	l := open(t, Config{Dir: dir, Site: "alpha", Signer: SignedBy(k, now), Now: now})
	if err := l.Sync(context.Background(), Entry{Kind: "drain"}); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	if r := verify(t, dir, VerifyOptions{Check: checkedBy(t, k)}); r.Signed != 2 || len(r.Faults) > 0 {
		t.Errorf("its own CA: %+v", r)
	}
	floored := k.Bundle()
	floored.Floor = time.Now()
	check, err := CheckedBy(floored)
	if err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir, VerifyOptions{Check: check}); len(r.Faults) > 0 {
		t.Errorf("leafs from before a floor were good then: %+v", r)
	}
	for name, other := range map[string]*trust.Keys{"another site": keysOf(t, "beta", long), "the same name": keysOf(t, "alpha", long)} {
		if r := verify(t, dir, VerifyOptions{Check: checkedBy(t, other)}); len(r.Faults) != 2 {
			t.Errorf("the CA of %s: %+v", name, r)
		}
	}
	// A head is bound to what it says.
	h, _ := l.Head()
	check = checkedBy(t, k)
	for name, change := range map[string]func(*Head){
		"number": func(h *Head) { h.Number++ }, "hash": func(h *Head) { h.Hash[0]++ }, "site": func(h *Head) { h.Site = "alpha2" },
		"time": func(h *Head) { h.Time = h.Time.Add(time.Nanosecond) }, "signature": func(h *Head) { h.Signature = nil },
		"chain": func(h *Head) { h.Chain = nil },
	} {
		changed := h
		if err := check(&changed); err != nil {
			t.Fatal(err)
		}
		if change(&changed); check(&changed) == nil {
			t.Errorf("a head with another %s is taken", name)
		}
	}
}

// A head of a site whose name is not the CA's is none of its heads, also if its key signed.
func TestHeadOfAnotherName(t *testing.T) {
	k := keysOf(t, "alpha", time.Now())
	h, err := sign(SignedBy(k, time.Now), Head{Site: "beta", Number: 1, Time: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := checkedBy(t, k)(h); err == nil || !strings.Contains(err.Error(), `"beta"`) {
		t.Errorf("got %v", err)
	}
}

// With a certificate that has ended there is no head, as none would be proved by it.
func TestEndedCertificateSignsNothing(t *testing.T) {
	k := keysOf(t, "alpha", time.Now())
	later := func() time.Time { return time.Now().AddDate(1, 0, 0) }
	dir := t.TempDir()
	closeLog(t, open(t, Config{Dir: dir, Site: "alpha", Signer: SignedBy(k, later)}))
	if got := linesOf(t, dir, KindHead); len(got) != 0 {
		t.Errorf("%d heads", len(got))
	}
}
