package audit

import (
	"errors"
	"fmt"
	"time"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta/trust"
)

// errEnded is returned instead of a signature that would prove nothing.
var errEnded = errors.New("the certificate of the site has ended")

// siteSigner is the Signer of a site with keys.
type siteSigner struct {
	keys *trust.Keys
	now  func() time.Time
}

// SignedBy returns the signer of heads of a site; now is the time of the log's lines. It
// refuses to sign while the certificate of the site is not valid.
func SignedBy(keys *trust.Keys, now func() time.Time) Signer { return siteSigner{keys, now} }

// Sign implements [Signer].
func (s siteSigner) Sign(message []byte) (signature []byte, chain [][]byte, err error) {
	if leaf := s.keys.Leaf().Leaf; s.now().After(leaf.NotAfter) {
		return nil, nil, fmt.Errorf("%w at %s", errEnded, leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	signature, chain = s.keys.Sign(message)
	return signature, chain, nil
}

// CheckedBy returns a check for [VerifyOptions]: that the site of a bundle signed a head
// with a certificate that was valid at the time of the head. The floor of the bundle does
// not count: leafs from before it were good then. So a head proves no more about its time
// than that the key of a leaf of that time signed it. CAs that the site had earlier prove
// heads as its present ones do, see [trust.EarlierCAs].
func CheckedBy(b trust.Bundle, earlier ...trust.Bundle) (func(*Head) error, error) {
	sets := make([]trust.Set, 1+len(earlier))
	for i, one := range append([]trust.Bundle{b}, earlier...) {
		one.Floor = time.Time{}
		if err := sets[i].Put(one); err != nil {
			return nil, err
		}
	}
	return func(h *Head) error {
		if job.SiteID(h.Site) != b.Site {
			return fmt.Errorf("the head is of site %.32q, not of %s", h.Site, b.Site)
		}
		var first error
		for i := range sets {
			_, err := sets[i].VerifyMessage(h.Message(), h.Signature, h.Chain, h.Time)
			if err == nil {
				return nil
			}
			if i == 0 {
				first = err
			}
		}
		return first
	}, nil
}

// CheckedByFolder is [CheckedBy] for the site that has its keys in a folder. It returns
// [trust.ErrNoKeys] if none are there.
func CheckedByFolder(keys string) (func(*Head) error, error) {
	b, err := trust.OwnBundle(keys)
	if err != nil {
		return nil, err
	}
	earlier, err := trust.EarlierCAs(keys)
	if err != nil {
		return nil, err
	}
	return CheckedBy(b, earlier...)
}

// Sent returns the head as it goes with a digest.
func (h *Head) Sent() *cluster.AuditHead {
	return &cluster.AuditHead{Number: h.Number, Hash: h.Hash, Time: job.Instant(h.Time), Signature: h.Signature, Chain: h.Chain}
}

// Received returns the head that came with a digest of a site.
func Received(site job.SiteID, h *cluster.AuditHead) Head {
	return Head{Site: string(site), Number: h.Number, Hash: h.Hash, Time: h.Time.Wall().UTC(), Signature: h.Signature, Chain: h.Chain}
}
