package daemon

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"kith/meta/trust/audit"
)

// An operator removes the last lines of his site's audit log while kithd does not run, and
// writes all hashes anew. Nothing at his site shows it. The other site, which has a head of
// before, says so in both its logs and keeps the head, over a restart, too.
func TestPeerFindsRewrittenAuditLog(t *testing.T) {
	t.Parallel()
	ca, alphaKeys := secureConfig(t, "alpha")
	cb, betaKeys := secureConfig(t, "beta")
	alpha, closeAlpha := openSecure(t, ca, knowing(betaKeys, ""))
	alphaKnows := knowing(alphaKeys, alpha.d.Address())
	beta, closeBeta := openSecure(t, cb, alphaKnows)
	told := func(by *testSite, from uint64) (got audit.Told) {
		by.eventually("alpha has a head of beta", func() bool {
			var ok bool
			got, ok = by.d.audit.Told("beta")
			return ok && got.Head.Number >= from
		})
		return got
	}
	told(alpha, 1)
	for range 50 {
		beta.d.audit.Record(audit.Entry{Kind: "drain", User: "ann"})
	}
	beta.d.audit.SignSoon()
	first := told(alpha, 50).Head
	if lines := alpha.audited(audit.KindPeerHead); len(lines) != 1 || lines[0].Peer != "beta" || lines[0].PeerHead == nil {
		t.Errorf("lines about its heads: %+v", lines)
	}
	closeBeta()
	folder := filepath.Join(cb.Data, auditFolder)
	removeTail(t, folder, 5)
	if r, err := audit.Verify(folder, audit.VerifyOptions{}); err != nil || len(r.Faults) > 0 {
		t.Fatalf("the log that was rewritten shows it by itself: %+v, %v", r.Faults, err)
	}
	_, closeBeta = openSecure(t, cb, alphaKnows)
	alpha.eventually("the audit log of alpha tells of it", func() bool {
		lines := alpha.audited(audit.KindPeerHeadBack)
		return len(lines) == 1 && lines[0].Peer == "beta" && lines[0].PeerHead != nil
	})
	alpha.eventually("and its log", func() bool { return alpha.logged("level=WARN", "does not go on from what it told", "peer_id=beta") })
	closeBeta()
	closeAlpha()
	alpha, closeAlpha = openSecure(t, ca, knowing(betaKeys, ""))
	defer closeAlpha()
	got := told(alpha, 1)
	if got.Broken == nil || got.Broken.Number != first.Number || got.Broken.Hash != first.Hash {
		t.Fatalf("after a restart alpha has %+v, want %d", got, first.Number)
	}
	check, err := audit.CheckedBy(betaKeys.Bundle())
	if err != nil {
		t.Fatal(err)
	}
	if err := check(got.Broken); err != nil {
		t.Errorf("the head proves nothing: %v", err)
	}
	r, err := audit.Verify(folder, audit.VerifyOptions{Head: got.Broken, Check: check})
	if err != nil || len(r.Faults) != 1 {
		t.Errorf("compared with it the log has these faults: %+v, %v", r.Faults, err)
	}
}

// removeTail leaves so many lines of an audit log, with hashes that fit.
func removeTail(t *testing.T, folder string, keep int) {
	t.Helper()
	var text bytes.Buffer
	var prev audit.Hash
	if _, err := audit.Read(folder, func(l *audit.Line) bool {
		if l.Head != nil { // without its signature nobody misses it
			l.Head, l.Kind, l.Text = nil, "drain", "nothing to see here"
		}
		l.Prev = prev
		raw, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		prev = sha256.Sum256(raw)
		text.Write(append(raw, '\n'))
		keep--
		return keep > 0
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "audit-000000000001.jsonl"), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
