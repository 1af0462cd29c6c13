package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"kith/internal/cli"
)

// unixPrefix begins a --site that is a unix socket.
const unixPrefix = "unix:"

// usualSockets are where the socket of this machine's site is, the first that is there.
var usualSockets = []string{"/run/kith/kith.sock", "/var/lib/kith/kith.sock"}

// defaultSite returns the site that is asked when no one says which.
func defaultSite() string {
	for _, path := range usualSockets {
		if _, err := os.Stat(path); err == nil {
			return unixPrefix + path
		}
	}
	return unixPrefix + usualSockets[0]
}

// reach returns the network and the address of --site, and how the connection is
// secured.
func (c *client) reach() (network, address string, options []grpc.DialOption, err error) {
	if path, ok := strings.CutPrefix(c.address, unixPrefix); ok {
		if !filepath.IsAbs(path) {
			return "", "", nil, cli.Usagef("--site %s: write unix: and an absolute path, for example %s", c.address, defaultSite())
		}
		// The kernel says who calls. gRPC wants a name for the other end.
		return "unix", path, []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost")}, nil
	}
	host, _, err := net.SplitHostPort(c.address)
	if err != nil {
		return "", "", nil, cli.Usagef("--site %s: write HOST:PORT or unix:PATH, for example %s", c.address, defaultSite())
	}
	if c.caFile == "" && c.tokenFile == "" {
		return "tcp", c.address, []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, nil
	}
	secure, err := siteTLS(c.caFile, host)
	if err != nil {
		return "", "", nil, err
	}
	options = append(options, grpc.WithTransportCredentials(credentials.NewTLS(secure)))
	if c.tokenFile != "" {
		token, err := readToken(c.tokenFile)
		if err != nil {
			return "", "", nil, err
		}
		options = append(options, grpc.WithPerRPCCredentials(bearer(token)))
	}
	return "tcp", c.address, options, nil
}

// siteTLS returns how the site at host proves itself: by a certificate of the CA in a
// file. Where that is the CA of a site, the site's name counts and not the host's; without
// a file it is any CA of this machine.
func siteTLS(caFile, host string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: host}
	if caFile == "" {
		return c, nil
	}
	text, err := readBounded("--ca", caFile, 64<<10)
	if err != nil {
		return nil, err
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, cli.Usagef("--ca %s: it holds no certificate; give the file ca.crt of the site", caFile)
	}
	if site := siteOfCA(text); site != "" {
		c.ServerName = site
	}
	return c, nil
}

// readToken reads the token in a file.
func readToken(file string) (string, error) {
	if strings.HasPrefix(file, "eyJ") && strings.Count(file, ".") == 2 { // it is not said again: it is a secret
		return "", cli.Usagef("--token, or KITH_TOKEN, holds a token itself: write it to a file that you alone can read, and give the name of that")
	}
	text, err := readBounded("--token", file, 8<<10)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", cli.Usagef("--token %s: it does not hold one token and nothing else", file)
	}
	return token, nil
}

func readBounded(flag, file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, cli.Usagef("%s %s: %v", flag, file, cli.Bare(err))
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, cli.Usagef("%s %s: %v", flag, file, cli.Bare(err))
	case int64(len(text)) > most:
		return nil, cli.Usagef("%s %s: it has more than %d bytes", flag, file, most)
	}
	return text, nil
}

// bearer is a token that goes with each call, over TLS only.
type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": fmt.Sprint("Bearer ", string(b))}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (bearer) RequireTransportSecurity() bool { return true }

// siteOfCA returns the site whose CA the first certificate of a file is, "" if it is
// that of no site.
func siteOfCA(text []byte) string {
	block, _ := pem.Decode(text)
	if block == nil {
		return ""
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil || len(ca.URIs) != 1 || ca.URIs[0].Scheme != "spiffe" {
		return ""
	}
	return ca.URIs[0].Host
}
