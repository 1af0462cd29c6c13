package daemon

import (
	"log/slog"
	"sync"
	"time"

	"kith/internal/job"
)

// aheadEvery is how often the log says that a site takes this one's clock for wrong.
const aheadEvery = 10 * time.Minute

// aheadLines logs that claims are denied for this site's clock.
type aheadLines struct {
	log *slog.Logger

	mu   sync.Mutex
	told map[job.SiteID]time.Time // admitted sites only: it is as bounded as they are
}

func (l *aheadLines) denied(site job.SiteID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.told[site].IsZero() || now.Sub(l.told[site]) > aheadEvery {
		if l.told == nil {
			l.told = make(map[job.SiteID]time.Time)
		}
		l.told[site] = now
		l.log.Warn("claims denied: a peer of an earlier version takes this site's clock to be more than a day ahead", "peer_id", string(site),
			"meaning", "its jobs do not run here; its copies are refused for growing times",
			"remedy", "upgrade kithd at that site; or, if this site has no jobs, start it with an empty data folder")
	}
}
