// Package standin lets a test or a measure speak as a site of a federation in place of its
// kithd, which does not run then: with the keys of the site where it has some.
package standin

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"kith/internal/job"
	"kith/meta/trust"
	"kith/testbed/local"
)

// Credentials are those of a connection from a site to another one, by the protocol of
// peers.
func Credentials(from, to *local.Node) (credentials.TransportCredentials, error) {
	endpoint, err := from.Endpoint()
	switch {
	case err != nil:
		return nil, err
	case endpoint == nil:
		return insecure.NewCredentials(), nil
	}
	return credentials.NewTLS(endpoint.ClientTLS(job.SiteID(to.Name), trust.ALPNPeer)), nil
}

// Dial returns a connection from a site to another one. The caller closes it.
func Dial(from, to *local.Node) (*grpc.ClientConn, error) {
	creds, err := Credentials(from, to)
	if err != nil {
		return nil, err
	}
	return grpc.NewClient("passthrough:///"+to.Address, grpc.WithTransportCredentials(creds))
}
