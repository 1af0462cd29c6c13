package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"kith/internal/job"
	"kith/meta/trust"
	"kith/meta/trust/audit"
	kithv1 "kith/proto/gen/kith/v1"
)

// signedLog makes the data folder of a site with keys and a log of three lines with one head.
func signedLog(t *testing.T, site job.SiteID) (data string) {
	t.Helper()
	data = t.TempDir()
	k, err := trust.Init(filepath.Join(data, "keys"), site, trust.Options{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l, err := audit.Open(audit.Config{Dir: filepath.Join(data, "audit"), Site: string(site), Signer: audit.SignedBy(k, time.Now)})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return data
}

// Signatures are checked against the keys beside the log or the CA that is named.
func TestAuditVerifyChecksSignatures(t *testing.T) {
	data, other := signedLog(t, "alpha"), signedLog(t, "alpha")
	ca := func(data string) string { return filepath.Join(data, "keys", trust.CAFile) }
	alone := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(filepath.Join(alone, "audit"), os.DirFS(filepath.Join(data, "audit"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KITH_CA", ca(other)) // is for sites that are asked
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"its keys":                {[]string{data}, 0, "checked against " + filepath.Join(data, "keys")},
		"its keys, by the folder": {[]string{filepath.Join(data, "audit")}, 0, "checked against"},
		"its CA":                  {[]string{"--ca", ca(data), alone}, 0, "checked against " + ca(data)},
		"another CA":              {[]string{"--ca", ca(other), data}, 1, "the signature of the head in line"},
		"no CA":                   {[]string{alone}, 0, "not checked: no CA of the site is here"},
		"no CA in the file":       {[]string{"--ca", filepath.Join(alone, "audit", "audit-000000000001.jsonl"), data}, 2, "give the file ca.crt of the site"},
	} {
		code, stdout, stderr := kith(t.Context(), append([]string{"audit", "verify"}, c.args...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: code %d, %s%s", name, code, stdout, stderr)
		}
	}
}

// keeper is a site that tells what another one told of its audit log.
type keeper struct {
	kithv1.UnimplementedTrustServiceServer
	site *kithv1.TrustedSite
}

func (k *keeper) GetTrustedSite(context.Context, *kithv1.GetTrustedSiteRequest) (*kithv1.GetTrustedSiteResponse, error) {
	return &kithv1.GetTrustedSiteResponse{Site: k.site}, nil
}

// A copy of another site's log is compared with what that site has told this one.
func TestAuditVerifyAgainstWhatAPeerTold(t *testing.T) {
	data := signedLog(t, "beta")
	var last *audit.Line
	if _, err := audit.Read(filepath.Join(data, "audit"), func(l *audit.Line) bool {
		if l.Head != nil {
			last = l
		}
		return true
	}); err != nil || last == nil {
		t.Fatalf("no head in the log: %v", err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	k, g := &keeper{}, grpc.NewServer()
	kithv1.RegisterTrustServiceServer(g, k)
	go g.Serve(listener) //nolint:errcheck // it ends with the test
	t.Cleanup(g.Stop)
	head := func(number uint64, change byte) *kithv1.AuditHead {
		hash := last.Head.Hash
		hash[0] += change
		return &kithv1.AuditHead{Number: number, Hash: hash[:], TimeNs: time.Now().UnixNano()}
	}
	good := head(last.Head.Number, 0)
	text := fmt.Sprintf("%d:%x", good.GetNumber(), good.GetHash())
	for name, c := range map[string]struct {
		site *kithv1.TrustedSite
		args []string
		code int
		want string
	}{
		"as it told":         {&kithv1.TrustedSite{AuditHead: good}, []string{"audit", "verify", "--peer", "beta", data}, 0, "whole"},
		"lines are missing":  {&kithv1.TrustedSite{AuditHead: head(99, 0)}, []string{"audit", "verify", "--peer", "beta", data}, 1, "lines are missing at its end"},
		"another line":       {&kithv1.TrustedSite{AuditHead: head(last.Head.Number, 1)}, []string{"audit", "verify", "--peer", "beta", data}, 1, "the log was changed here or before"},
		"what it told first": {&kithv1.TrustedSite{AuditHead: good, AuditHeadBroken: head(99, 0)}, []string{"audit", "verify", "--peer", "beta", data}, 1, "lines are missing at its end"},
		"nothing yet":        {&kithv1.TrustedSite{}, []string{"audit", "verify", "--peer", "beta", data}, 1, "has told nothing"},
		"no copy":            {&kithv1.TrustedSite{}, []string{"audit", "verify", "--peer", "beta"}, 2, "name the copy of its log"},
		"shown":              {&kithv1.TrustedSite{AuditHead: good}, []string{"site", "show", "beta"}, 0, "audit head " + text + " of "},
		"shown as a holder":  {&kithv1.TrustedSite{SiteId: "beta", HeldJobs: 3, OverdueJobs: 2, GivenUpJobs: 7, CopiesHere: 1}, []string{"site", "show", "beta"}, 0, "holds 3 jobs of this site OVERDUE 2 of these should have ended; they are given up after timing.overdue, or now: kith site forget beta, or revoke while it is connected GIVEN UP 7 jobs that it did not end in time, since kithd was started"},
		"shown its bundle":   {&kithv1.TrustedSite{SiteId: "beta", BundleSequence: 4}, []string{"site", "show", "beta"}, 0, " bundle 4 "},
		"shown as rewritten": {&kithv1.TrustedSite{AuditHead: head(1, 0), AuditHeadBroken: good}, []string{"site", "show", "beta"}, 0, "AUDIT LOG rewritten or lost: what it told later cannot have come after " + text},
	} {
		k.site = c.site
		code, stdout, stderr := kith(t.Context(), append(c.args, "--site", "unix:"+socket)...)
		if code != c.code || !strings.Contains(strings.Join(strings.Fields(stdout+stderr), " "), c.want) {
			t.Errorf("%s: code %d, %s%s", name, code, stdout, stderr)
		}
	}
}
