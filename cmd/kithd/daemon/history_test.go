package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/status"

	kithv1 "kith/proto/gen/kith/v1"
)

// past is what a site tells of an only job that has ended.
func (s *testSite) past() *kithv1.PastAttempt {
	s.t.Helper()
	var list []*kithv1.PastAttempt
	s.eventually("a job is past", func() bool {
		r, err := s.sites.ListHistory(s.ctx(), &kithv1.ListHistoryRequest{})
		if err != nil {
			s.t.Fatal(err)
		}
		list = r.GetAttempts()
		return len(list) > 0
	})
	if len(list) != 1 || list[0].GetUserNumber() == 0 {
		s.t.Fatalf("%d attempts: %v", len(list), list)
	}
	return list[0]
}

// A job that has ended is past, at its origin and at its host; users are the same numbers
// after a restart, as long as the salt is there, and no two sites have the same.
func TestHistory(t *testing.T) {
	t.Parallel()
	sites := federation(t, nil, "alpha", "beta")
	alpha, beta := sites[0], sites[1]
	alpha.eventually("alpha sees beta", func() bool { return alpha.reaches("beta") })
	release := alpha.busy()
	j := shell("exit 3")
	j.Name = "assay"
	id := alpha.submit(j)
	if st := alpha.waitState(id, failed).GetStatus(); st.GetHostSiteId() != "beta" {
		t.Fatalf("it ran at %s", st.GetHostSiteId())
	}
	at, there := alpha.past(), beta.past()
	defer release()
	for site, a := range map[string]*kithv1.PastAttempt{"alpha": at, "beta": there} {
		if a.GetOriginSiteId() != "alpha" || a.GetHostSiteId() != "beta" || a.GetState() != kithv1.JobStatus_STATE_FAILED || a.GetRunTime().AsDuration() <= 0 || a.GetNameNumber() == 0 {
			t.Errorf("%s: %v", site, a)
		}
	}
	if at.GetUserNumber() == there.GetUserNumber() {
		t.Errorf("both sites have %d for the user", at.GetUserNumber())
	}
	salt := filepath.Join(beta.cfg.Data, saltName)
	if info, err := os.Stat(salt); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the salt is %v, %v", info, err)
	}
	beta.restart()
	if again := beta.past(); again.String() != there.String() {
		t.Errorf("before a restart %v, then %v", there, again)
	}
	if err := os.WriteFile(salt, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	beta.restart()
	if r, err := beta.sites.ListHistory(beta.ctx(), &kithv1.ListHistoryRequest{}); err == nil {
		t.Errorf("with a salt that is cut off: %v", r)
	} else {
		t.Log(status.Convert(err).Message())
	}
	if err := os.Remove(salt); err != nil {
		t.Fatal(err)
	}
	if other := beta.past(); other.GetUserNumber() == there.GetUserNumber() {
		t.Error("a salt that was removed is still used")
	}
}
