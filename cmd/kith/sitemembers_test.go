package main

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	kithv1 "kith/proto/gen/kith/v1"
)

// leaver is a site whose leader takes itself out, and stops before it has answered.
type leaver struct {
	kithv1.UnimplementedSiteServiceServer
	asked atomic.Int32
	stop  func()
}

func (l *leaver) RemoveMember(ctx context.Context, _ *kithv1.RemoveMemberRequest) (*kithv1.RemoveMemberResponse, error) {
	if l.asked.Add(1) == 1 {
		go l.stop()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &kithv1.RemoveMemberResponse{}, nil
}

// A member that leads is taken out; its answer is lost with its lead, and the next leader gives one.
func TestLeaderIsTakenOut(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	fake := &leaver{}
	serve := func() (stop func()) {
		listener, err := net.Listen("unix", socket)
		if err != nil {
			t.Error(err)
			return func() {}
		}
		g := grpc.NewServer()
		kithv1.RegisterSiteServiceServer(g, fake)
		go g.Serve(listener) //nolint:errcheck // it ends with the test
		return g.Stop
	}
	stop := serve()
	next := make(chan func(), 1)
	fake.stop = func() {
		stop()
		next <- serve()
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"--site", "unix:" + socket, "site", "members", "remove", "one"}, strings.NewReader(""), &out, &errs)
	(<-next)()
	if code != 0 || fake.asked.Load() != 2 || !strings.Contains(out.String(), "one is no member of the site any more") {
		t.Errorf("code %d after %d calls:\n%s%s", code, fake.asked.Load(), errs.String(), out.String())
	}
}
