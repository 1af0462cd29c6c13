package whatif

import (
	"fmt"
	"path/filepath"
	"strings"

	"kith/internal/job"
	"kith/testbed/join"
	"kith/testbed/replay"
	"kith/testbed/workload"
)

// MaxJoined is the most sites that can be joined.
const MaxJoined = 16

// Join makes it a study of a federation of the site, as it would be, with the machines whose
// logs are named: each alone, and all together with K copies of a job. All that ran at the
// site counts as its own there. The error is a [join.Error], or wraps [ErrQuestion].
func (s *Study) Join(logs []string) (*join.Study, error) {
	if len(logs) > MaxJoined {
		return nil, wrong("join: %d logs; give at most %d", len(logs), MaxJoined)
	}
	cfg := s.q.changed()
	depth := cfg.GuaranteeDepth
	sites := []join.SiteConfig{{
		Name: string(s.q.Site), Processors: &cfg.Processors, Policy: replay.PolicyName(cfg.Backfill), Queues: cfg.Queues.String(), Guarantee: cfg.Scope.String(),
		GuaranteeDepth: &depth, Log: s.log(),
	}}
	taken := map[string]bool{string(s.q.Site): true}
	for _, path := range logs {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, wrong("join %s: %v", path, err)
		}
		sites = append(sites, join.SiteConfig{Name: siteName(path, taken), Trace: absolute})
	}
	c := join.New(sites...)
	others := make([]string, 0, len(logs))
	for _, x := range sites[1:] {
		others = append(others, x.Name)
	}
	c.Title = fmt.Sprintf("What if %s had been in a federation with %s?", s.q.Site, list(others))
	c.Asks, c.Seed, c.Maker = string(s.q.Site), s.q.Seed, "kith what-if site"
	c.Notes = []string{fmt.Sprintf("The jobs of %s are those that ran there from %s to %s, guests included: all of them count as its own, and may run elsewhere. "+
		"The other sites are their logs, at EASY with dual queues; processors are as fast everywhere.", s.q.Site, day(s.past.first), day(s.past.last))}
	if s.q.Changes.Any() {
		c.Title = fmt.Sprintf("What if %s, %s, had been in a federation with %s?", s.q.Site, s.q.Words(), list(others))
		c.Notes = append(c.Notes, fmt.Sprintf("%s is taken %s, alone as well as joined.", s.q.Site, s.q.Words()))
	}
	return join.Open(c)
}

// log is what runs at the site as it would be, as one workload.
func (s *Study) log() *workload.Workload {
	w := *s.then.w
	w.Name = "the past of " + string(s.q.Site)
	w.Processors = s.q.changed().Processors
	return &w
}

// siteName makes a name for a site of the name of its log.
func siteName(path string, taken map[string]bool) string {
	base := strings.ToLower(filepath.Base(path))
	base, _, _ = strings.Cut(base, ".")
	var b strings.Builder
	for _, r := range base {
		if r < 'a' || r > 'z' {
			if r < '0' || r > '9' {
				r = '-'
			}
			if b.Len() == 0 {
				continue // a name begins with a letter
			}
		}
		b.WriteRune(r)
	}
	name := b.String()
	const longest = job.MaxSiteIDLength - 4
	name = strings.TrimRight(name[:min(len(name), longest)], "-")
	if name == "" {
		name = "partner"
	}
	unique := name
	for i := 2; taken[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", name, i)
	}
	taken[unique] = true
	return unique
}
