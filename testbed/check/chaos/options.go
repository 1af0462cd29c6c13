package chaos

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options say what to do to how many sites, and for how long.
type Options struct {
	// Duration is how long there are faults: 1 s to 24 h. Starting, healing
	// and checking come on top.
	Duration time.Duration
	// Sites is how many there are: 2 to 16.
	Sites int
	// Seed is where the faults and the jobs come from. Zero is a seed like any other.
	Seed uint64
	// Dir holds the sites' data, their logs and the ledger. It must exist and be empty.
	Dir string
	// Kinds are the faults to choose from; empty for all, see [Kinds].
	Kinds []string
	// UpgradeFrom is the kithd of an earlier version that the sites begin with; empty
	// for no upgrade. One that makes no keys is left out, and the result says so, but
	// with Insecure.
	UpgradeFrom string
	// Insecure leaves the sites without keys, on plaintext. Otherwise they join by
	// invitations and speak mutual TLS, over the same links.
	Insecure bool
	// Demotions has most jobs save what they have done and go on elsewhere, as their users ask, as a
	// hierarchy of levels demands and as guests who make way: see counting.go. At least 4 sites; no bags.
	Demotions bool
	// JobsPerSecond is how many jobs are submitted at all sites together. 0
	// means about nine tenths of what the sites can run.
	JobsPerSecond float64
	// Patience is how long the jobs may take to end once everything is healed.
	// 0 means 2 min.
	Patience time.Duration
	// Observe learns what is done, as a line of text, by several goroutines.
	Observe func(line string)
}

// Bounds of [Options].
const (
	minSites, maxSites = 2, 16
	maxDuration        = 24 * time.Hour
)

// Validate returns all that is wrong, joined, each naming field, value and remedy.
func (o *Options) Validate() error {
	var errs []error
	if o.Duration < time.Second || o.Duration > maxDuration {
		errs = append(errs, fmt.Errorf("duration %v: choose 1s to 24h", o.Duration))
	}
	if o.Sites < minSites || o.Sites > maxSites {
		errs = append(errs, fmt.Errorf("sites %d: choose %d to %d", o.Sites, minSites, maxSites))
	}
	if o.JobsPerSecond < 0 || o.JobsPerSecond > 1000 {
		errs = append(errs, fmt.Errorf("jobs per second %v: choose up to 1000, or 0 for what the sites can take", o.JobsPerSecond))
	}
	if o.Patience < 0 {
		errs = append(errs, fmt.Errorf("patience %v: choose a positive duration, or 0 for 2 min", o.Patience))
	}
	if o.Demotions && o.Sites < len(siteKinds) {
		errs = append(errs, fmt.Errorf("sites %d with demotions: choose at least %d, of which three are levels and one hides guests", o.Sites, len(siteKinds)))
	}
	if o.Demotions && o.UpgradeFrom != "" {
		errs = append(errs, errors.New("upgrade from with demotions: choose one of them; earlier versions may know no demotions"))
	}
	for _, name := range o.Kinds {
		if !slices.Contains(Kinds(), Kind(name)) {
			errs = append(errs, fmt.Errorf("fault %q: there is none of that name; choose from %s", name, joinKinds(Kinds())))
		}
	}
	if o.Dir == "" {
		errs = append(errs, errors.New("dir: name an empty folder"))
	}
	return errors.Join(errs...)
}

func joinKinds(kinds []Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// withDefaults fills in what zero stands for.
func (o Options) withDefaults() Options {
	if o.Patience == 0 {
		o.Patience = 2 * time.Minute
	}
	if o.Observe == nil {
		o.Observe = func(string) {}
	}
	return o
}

func (o *Options) note(format string, args ...any) { o.Observe(fmt.Sprintf(format, args...)) }

// The sites' timings: as a federation's on a good network, but short, so that
// minutes show what otherwise takes hours.
const (
	heartbeat   = time.Second
	antiEntropy = 5 * time.Second
	lease       = 4 * time.Second
	// A lease that ends late shows as attempts that overlap, if the margin does
	// not make up for it. Some is left for a machine that has much to do.
	leaseMargin = lease / 4
	vanish      = 6 * time.Second
	grace       = time.Second
)

// wants reports whether a kind of faults was asked for by name.
func (o *Options) wants(k Kind) bool { return slices.Contains(o.Kinds, string(k)) }
