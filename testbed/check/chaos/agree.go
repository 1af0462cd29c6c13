package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
)

// view is what all sites say at about one moment.
type view struct {
	jobs   map[string][]*kithv1.Job        // not ended, by origin
	copies map[string][]*kithv1.HostedCopy // by the site that holds them
}

// look asks all sites.
func look(ctx context.Context, sites []*site) (*view, error) {
	v := &view{jobs: make(map[string][]*kithv1.Job), copies: make(map[string][]*kithv1.HostedCopy)}
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	for _, s := range sites {
		wg.Go(func() {
			jobs, copies, err := listJobs(ctx, s, false)
			for i, j := range jobs { // lists do not say where copies are
				if err == nil {
					jobs[i], err = getJob(ctx, s, j.GetId())
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
			}
			v.jobs[s.Name], v.copies[s.Name] = jobs, copies
		})
	}
	wg.Wait()
	return v, failed
}

// copyAt names a copy at a site.
type copyAt struct {
	site    string
	job     string
	attempt int32
}

// A disagreement is a copy that one site has and the other does not know of.
type disagreement struct {
	copyAt
	stray bool // the host has it; else the origin believes that
}

// String describes it.
func (d disagreement) String() string {
	if d.stray {
		return fmt.Sprintf("%s holds attempt %d of %s, which its origin does not expect there", d.site, d.attempt, d.job)
	}
	return fmt.Sprintf("%s does not hold attempt %d of %s, which its origin expects there", d.site, d.attempt, d.job)
}

// disagreements compares what hosts hold with what origins believe.
func (v *view) disagreements() map[disagreement]bool {
	expected := make(map[copyAt]bool)
	racing := make(map[string]int32)
	for origin, jobs := range v.jobs {
		for _, j := range jobs {
			st := j.GetStatus()
			if ended(j) {
				continue // meanwhile
			}
			if j.GetOnSiteLost() == kithv1.Job_ON_SITE_LOST_RACE {
				racing[j.GetId()] = st.GetAttempt()
			}
			for _, host := range hosts(st) {
				if host != origin {
					expected[copyAt{host, j.GetId(), st.GetAttempt()}] = true
				}
			}
		}
	}
	found := make(map[disagreement]bool)
	held := make(map[copyAt]bool)
	for host, copies := range v.copies {
		for _, c := range copies {
			at := copyAt{host, c.GetJobId(), c.GetAttempt()}
			held[at] = true
			// An earlier attempt that races may still win.
			latest, races := racing[c.GetJobId()]
			if !expected[at] && !(races && c.GetAttempt() < latest && c.GetState() != "queued") {
				found[disagreement{at, true}] = true
			}
		}
	}
	for at := range expected {
		if !held[at] {
			found[disagreement{at, false}] = true
		}
	}
	return found
}

// hosts are the sites that hold something of a job as its origin believes.
func hosts(st *kithv1.JobStatus) []string {
	if st.GetState() != kithv1.JobStatus_STATE_QUEUED {
		if h := st.GetHostSiteId(); h != "" {
			return []string{h}
		}
		return nil
	}
	var list []string
	for _, c := range st.GetCopies() {
		if c.GetState() == kithv1.CopyStatus_STATE_QUEUED || c.GetState() == kithv1.CopyStatus_STATE_PLACING {
			list = append(list, c.GetSiteId())
		}
	}
	return list
}

// settling follows the disagreements after a heal. What is there before all
// sites are connected again has to go, and what is there then; what comes and goes
// later is the day's work.
type settling struct {
	connected bool
	left      map[disagreement]bool
}

// see takes a look, and reports whether everything has settled.
func (s *settling) see(connected bool, found map[disagreement]bool) bool {
	if !s.connected {
		s.connected, s.left = connected, found
	} else {
		maps.DeleteFunc(s.left, func(d disagreement, _ bool) bool { return !found[d] })
	}
	return s.connected && len(s.left) == 0
}

// How the sites are looked at after a heal.
const (
	lookPause    = 100 * time.Millisecond
	settleTarget = 10 * time.Second
	settleBound  = 30 * time.Second
)

// settle waits until the sites agree after a heal, and returns how long that
// took and what is left if it took too long.
func (b *bed) settle(ctx context.Context) (took time.Duration, left []string) {
	healed := time.Now()
	var s settling
	for {
		connected := b.connected(ctx)
		v, err := look(ctx, b.sites)
		if err == nil && s.see(connected, v.disagreements()) {
			return time.Since(healed), nil
		}
		if time.Since(healed) > settleBound || !pause.For(ctx, lookPause) {
			break
		}
	}
	if !s.connected {
		return time.Since(healed), []string{"the sites are not connected"}
	}
	for d := range s.left {
		left = append(left, d.String())
	}
	slices.Sort(left)
	return time.Since(healed), left
}

// connected reports whether every site has a stream to every other.
func (b *bed) connected(ctx context.Context) bool {
	for _, s := range b.sites {
		one, cancel := context.WithTimeout(ctx, callTimeout)
		r, err := s.Sites.ListSites(one, &kithv1.ListSitesRequest{})
		cancel()
		if err != nil || len(r.GetSites()) < len(b.sites) {
			return false
		}
		for _, other := range r.GetSites() {
			if other.GetReachability() == kithv1.Site_REACHABILITY_UNREACHABLE {
				return false
			}
		}
	}
	return true
}
