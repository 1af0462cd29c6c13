package plain

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"kith/cluster/gossip"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// scripted is a call that brings messages and then ends.
type scripted struct {
	grpc.ServerStream
	ctx    context.Context
	come   []*kithv1.LaneRequest
	answer int
}

func (s *scripted) Context() context.Context        { return s.ctx }
func (s *scripted) Send(*kithv1.LaneResponse) error { s.answer++; return nil }
func (s *scripted) Recv() (*kithv1.LaneRequest, error) {
	if len(s.come) == 0 {
		return nil, io.EOF
	}
	m := s.come[0]
	s.come = s.come[1:]
	return m, nil
}

// Whatever comes first on a lane without keys, the lane is that of a site that is admitted and
// that looks for this one, or it is refused at once, unanswered, by one line within a bound.
// What comes in that message beside the names is not heard.
func FuzzFirstRequest(f *testing.F) {
	for _, m := range []*kithv1.LaneRequest{
		{SiteId: "beta", PeerSiteId: "alpha"},
		{SiteId: "beta", PeerSiteId: "alpha", Data: []byte("early")},
		{SiteId: "gamma", PeerSiteId: "alpha"},
		{SiteId: "alpha", PeerSiteId: "alpha"},
		{SiteId: "beta", PeerSiteId: "be\nta"},
		{SiteId: "be\x1b[2Jta", PeerSiteId: "alpha"},
		{SiteId: strings.Repeat("b", 4096), PeerSiteId: strings.Repeat("a", 4096)},
		{},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var first kithv1.LaneRequest
		if proto.Unmarshal(b, &first) != nil {
			return // gRPC refuses it
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var let []job.SiteID
		heard := ""
		l := New(Config{
			Site: "alpha", Admit: func(s job.SiteID) bool { return s == "beta" },
			Accept: func(s job.SiteID, c gossip.Conn) {
				let = append(let, s)
				all, _ := io.ReadAll(c)
				heard = string(all)
				c.Close() //nolint:errcheck // it has no error
			},
		})
		defer l.Close()
		s := &scripted{ctx: ctx, come: []*kithv1.LaneRequest{&first, {Data: []byte("later")}}}
		err := l.Lane(s)
		if ctx.Err() != nil || len(l.unnamed) > 0 {
			t.Errorf("%d places are taken, %v", len(l.unnamed), ctx.Err())
		}
		if len(let) > 0 {
			if let[0] != "beta" || first.GetSiteId() != "beta" || first.GetPeerSiteId() != "alpha" || heard != "later" || s.answer != 1 {
				t.Errorf("%v let in, and %q heard of it: %v", let, heard, &first)
			}
			return
		}
		text := status.Convert(err).Message()
		if err == nil || s.answer > 0 || len(text) > 500 || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("refused with %.600q, answered %d times", text, s.answer)
		}
	})
}
