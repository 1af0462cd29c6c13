package local

import (
	"fmt"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta/trust"
)

// Endpoint returns what a program needs to speak in place of the site's kithd: the keys of
// the site, and what the other sites prove themselves with. It is for tests and
// measures; the kithd must not run meanwhile. Sites without keys have none: nil.
func (n *Node) Endpoint() (*trust.Endpoint, error) {
	if n.f.cfg.Insecure {
		return nil, nil
	}
	keys, err := trust.Open(n.Config.KeysPath(), job.SiteID(n.Name), time.Now())
	if err != nil {
		return nil, fmt.Errorf("site %s: %w", n.Name, err)
	}
	trusted := new(trust.Set)
	others := slices.Clone(n.f.nodes)
	for _, m := range n.f.members {
		others = append(others, m.Nodes[0]) // all have the same keys
	}
	for _, other := range others {
		if other == n {
			continue
		}
		b, err := trust.OwnBundle(other.Config.KeysPath())
		if err == nil {
			err = trusted.Put(b)
		}
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", other.Name, err)
		}
	}
	return &trust.Endpoint{Keys: keys, Trusted: trusted, Now: time.Now}, nil
}
