package api

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"kith/internal/identity"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// pages reads all that is past.
func pages(t *testing.T, s *Server, size int32) (all []*kithv1.PastAttempt, n int) {
	t.Helper()
	r := &kithv1.ListHistoryRequest{PageSize: size}
	for {
		got, err := s.ListHistory(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.GetAttempts()) > int(size) || proto.Size(got) > pageBytes+1<<12 {
			t.Fatalf("a page of %d attempts and %d bytes", len(got.GetAttempts()), proto.Size(got))
		}
		all, n = append(all, got.GetAttempts()...), n+1
		if r.PageToken = got.GetNextPageToken(); r.PageToken == "" {
			return all, n
		}
	}
}

// What has ended is told page by page, each attempt once; the same user and the same name are
// the same number, and no text says whose it was.
func TestHistoryPages(t *testing.T) {
	s, m := serve(t)
	for i := range 5 {
		submit(t, s, func(j *kithv1.Job) { j.Name = fmt.Sprint("assay-", i/2) })
		m.end()
	}
	all, n := pages(t, s, 2)
	if len(all) != 5 || n != 3 {
		t.Fatalf("%d attempts on %d pages", len(all), n)
	}
	for i, a := range all {
		if a.GetUserNumber() != all[0].GetUserNumber() || a.GetOriginSiteId() != "alpha" || a.GetHostSiteId() != "alpha" || a.GetProcessors() != 1 ||
			a.GetState() != kithv1.JobStatus_STATE_COMPLETED || a.GetWalltime().AsDuration() == 0 || a.GetEndTime() == nil {
			t.Errorf("attempt %d: %v", i, a)
		}
		if same := a.GetNameNumber() == all[0].GetNameNumber(); same != (i < 2) || a.GetNameNumber() == 0 {
			t.Errorf("attempt %d of %d has the number of the first's name: %v", i, len(all), same)
		}
		if text := a.String(); strings.Contains(text, "ada") || strings.Contains(text, "assay") {
			t.Errorf("attempt %d tells of %s", i, text)
		}
	}
	if again, _ := pages(t, s, 1000); !slices.EqualFunc(all, again, func(a, b *kithv1.PastAttempt) bool { return proto.Equal(a, b) }) {
		t.Error("the same past, told again, is another")
	}
}

// pastNode has a past, a salt, or trouble with it.
type pastNode struct {
	untouched
	past []store.Past
	salt string
	err  error
}

func (n pastNode) Salt() ([]byte, error) { return []byte(n.salt), n.err }

func (n pastNode) Past(from uint64) ([]store.Past, error) {
	first, _ := slices.BinarySearchFunc(n.past, from, func(p store.Past, from uint64) int { return int(p.Number) - int(from) }) //nolint:gosec // small
	return n.past[first:min(first+store.PastStretch, len(n.past))], nil
}

// A page is bounded in bytes whatever is in the store, a full stretch is not taken for the
// end, and the loop is not asked.
func TestHistoryIsBounded(t *testing.T) {
	long := job.SiteID(strings.Repeat("x", 4000))
	n := pastNode{untouched: untouched{t: t}, salt: "s"}
	for i := range 2 * store.PastStretch {
		n.past = append(n.past, store.Past{Number: uint64(7 + 3*i), Origin: long, User: "ada", Kind: job.Success}) //nolint:gosec // small
	}
	s := testServer()
	s.Node = n
	if all, pages := pages(t, s, 1000); len(all) != len(n.past) || pages < 8 {
		t.Errorf("%d of %d attempts on %d pages", len(all), len(n.past), pages)
	}
	for i := range n.past {
		n.past[i].Origin = "alpha"
	}
	if all, pages := pages(t, s, 1000); len(all) != len(n.past) || pages != 3 {
		t.Errorf("%d of %d attempts on %d pages", len(all), len(n.past), pages)
	}
}

// Numbers hang on the salt and on the origin, and users are apart from names.
func TestPseudonyms(t *testing.T) {
	ours, theirs := newPseudonyms([]byte("ours")), newPseudonyms([]byte("theirs"))
	ada := ours.number(userNumber, "alpha", []byte("ada"))
	for what, other := range map[string]int64{
		"another salt": theirs.number(userNumber, "alpha", []byte("ada")), "another origin": ours.number(userNumber, "beta", []byte("ada")),
		"another user": ours.number(userNumber, "alpha", []byte("bob")), "a name": ours.number(nameNumber, "alpha", []byte("ada")),
		"the rest of an origin": ours.number(userNumber, "alph", []byte("aada")),
	} {
		if other == ada || other < 1 || other >= 1<<53 {
			t.Errorf("%s: %d, and ada has %d", what, other, ada)
		}
	}
	if again := ours.number(userNumber, "alpha", []byte("ada")); again != ada || ada != 183075714168068 {
		t.Errorf("ada has %d and %d: numbers are the same over versions", ada, again)
	}
}

// A user with a token learns nothing, and nobody does while there is no salt.
func TestHistoryIsForOperators(t *testing.T) {
	s := testServer()
	s.Node = pastNode{untouched: untouched{t: t}, err: errors.New("no salt"), past: []store.Past{{Number: 1}}}
	ctx := identity.With(t.Context(), identity.Caller{Proof: identity.Token})
	if _, err := s.ListHistory(ctx, &kithv1.ListHistoryRequest{}); !errors.Is(err, ErrNotOperator) {
		t.Errorf("a user with a token: %v", err)
	}
	if r, err := s.ListHistory(t.Context(), &kithv1.ListHistoryRequest{}); err == nil || r != nil {
		t.Errorf("without a salt: %v, %v", r, err)
	}
}
