package gossip

import (
	"errors"

	"kith/cluster"
	"kith/internal/job"
)

// Unsigned signs nothing and believes everything: for sites that speak without TLS, where
// a name is believed anyway.
type Unsigned struct{}

var (
	_ Signer   = Unsigned{}
	_ Verifier = Unsigned{}
)

// Sign implements Signer.
func (Unsigned) Sign([]byte) ([]byte, [][]byte) { return nil, nil }

// CheckKey implements Verifier: there are no keys.
func (Unsigned) CheckKey(job.SiteID, [][]byte) error {
	return errors.New("this site speaks without TLS and knows no keys")
}

// Verify implements Verifier.
func (Unsigned) Verify(_ job.SiteID, chain [][]byte, _, signature []byte) error {
	if len(chain) > 0 || len(signature) > 0 {
		return errors.New("the digest is signed, and this site speaks without TLS")
	}
	return nil
}

// VerifyHead implements Verifier.
func (Unsigned) VerifyHead(job.SiteID, *cluster.AuditHead) error {
	return errors.New("the digest has a signed head, and this site speaks without TLS")
}
