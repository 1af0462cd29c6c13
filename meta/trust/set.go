package trust

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"kith/internal/job"
)

// Set is the other sites that this one knows, each with its bundle. Bundles are never
// merged. It is safe for use by several goroutines; the zero Set knows no site.
type Set struct {
	mu    sync.RWMutex
	known map[job.SiteID]entry
}

type entry struct {
	bundle      Bundle
	authorities *x509bundle.Bundle
}

// Put makes b what is known of its site. Whether b may replace what was known is for
// the caller to say.
func (s *Set) Put(b Bundle) error {
	authorities, err := authoritiesOf(b)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = make(map[job.SiteID]entry)
	}
	s.known[b.Site] = entry{b, authorities}
	return nil
}

func authoritiesOf(b Bundle) (*x509bundle.Bundle, error) {
	domain, err := spiffeid.TrustDomainFromString(string(b.Site))
	if err != nil {
		return nil, fmt.Errorf("site %s: %w", b.Site, err)
	}
	return x509bundle.FromX509Authorities(domain, b.CAs), nil
}

// Remove forgets a site: its certificates are refused from now on. Connections that
// are open stay open; closing them is for the caller.
func (s *Set) Remove(site job.SiteID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, site)
}

// Get returns what is known of a site.
func (s *Set) Get(site job.SiteID) (Bundle, bool) {
	e, ok := s.entry(site)
	return e.bundle, ok
}

func (s *Set) entry(site job.SiteID) (entry, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, ok := s.known[site]
	return e, ok
}

// Sites returns the names that are known, in order.
func (s *Set) Sites() []job.SiteID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.known))
}
