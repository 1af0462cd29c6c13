package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"kith/meta/trust"
	kithv1 "kith/proto/gen/kith/v1"
)

// serveOn serves a fake site on a listener. The token of each call goes to shown.
func serveOn(t *testing.T, l net.Listener, options ...grpc.ServerOption) (shown chan string) {
	t.Helper()
	f, err := startFake()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.down)
	shown = make(chan string, 10)
	server := grpc.NewServer(append(options, grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		shown <- strings.Join(md.Get("authorization"), ",")
		return next(ctx, req)
	}))...)
	kithv1.RegisterJobServiceServer(server, f)
	go server.Serve(l) //nolint:errcheck // ends with Stop
	t.Cleanup(server.Stop)
	return shown
}

func listenOn(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	serveOn(t, listenOn(t, "unix", path))
	if code, _, problems := kith(t.Context(), "--site", "unix:"+path, "queue"); code != 0 {
		t.Errorf("code %d: %s", code, problems)
	}
}

// Over TCP the site proves its name by its CA, and the user theirs by a token.
func TestSiteWithKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := func(name string) (*trust.Keys, string) {
		folder := filepath.Join(dir, name)
		k, err := trust.Init(folder, "alpha", trust.Options{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return k, filepath.Join(folder, trust.CAFile)
	}
	alpha, ca := keys("alpha")
	_, other := keys("other")
	l := listenOn(t, "tcp", "127.0.0.1:0")
	endpoint := &trust.Endpoint{Keys: alpha, Trusted: new(trust.Set), Now: time.Now}
	shown := serveOn(t, l, grpc.Creds(credentials.NewTLS(endpoint.ServerTLS())))
	token := filepath.Join(dir, "token")
	write := func(text string) {
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("abc.def\n")
	ask := func(args ...string) (int, string) {
		code, _, problems := kith(t.Context(), append([]string{"--site", l.Addr().String(), "--timeout", "10s", "queue"}, args...)...)
		return code, problems
	}
	if code, problems := ask("--ca", ca, "--token", token); code != 0 {
		t.Fatalf("code %d: %s", code, problems)
	}
	if got := <-shown; got != "Bearer abc.def" {
		t.Errorf("the site was shown %q", got)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"another CA":           {[]string{"--ca", other, "--token", token}, exitUnreachable, "did not prove"},
		"no CA, but a token":   {[]string{"--token", token}, exitUnreachable, "give its ca.crt with --ca"},
		"plaintext":            {nil, exitUnreachable, "--ca and --token"},
		"a token as CA":        {[]string{"--ca", token}, 2, "holds no certificate"},
		"a folder as token":    {[]string{"--ca", ca, "--token", dir}, 2, "--token"},
		"a token as its file":  {[]string{"--ca", ca, "--token", "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2VjcmV0"}, 2, "holds a token itself"},
		"no such file":         {[]string{"--ca", ca, "--token", "none"}, 2, "--token none: no such file"},
		"a token that is none": {[]string{"--ca", ca, "--token", ca}, 2, "one token"},
	} {
		if code, problems := ask(c.args...); code != c.code || !strings.Contains(problems, c.want) || strings.Contains(problems, "c2VjcmV0") {
			t.Errorf("%s: code %d: %s", name, code, problems)
		}
	}
	select {
	case got := <-shown:
		t.Errorf("a site that proved nothing was shown %q", got)
	default:
	}
}
