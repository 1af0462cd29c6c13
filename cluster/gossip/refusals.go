package gossip

import (
	"errors"
	"time"

	"kith/cluster"
	"kith/internal/job"
)

// refusalPause is how long a lane is not read after a note on it that no honest member
// sends, so that it costs its sender more than this site.
const refusalPause = 20 * time.Millisecond

// Refusal is something of another site that was not taken: what no honest site sends.
type Refusal struct {
	// Site is that of the lane, which may have passed on what another site made.
	Site job.SiteID
	// Rule is what it broke, in a word.
	Rule string
	Err  error
}

// rules are the words for why; what has none of them is a "note" that cannot be read or
// breaks a bound of length.
var rules = []struct {
	err  error
	word string
}{
	{errGuard, "membership"}, {errFrame, "lane"}, {errTooLong, "lane"}, {errFlooded, "lane"}, {errHead, "audit-head"}, {errUnproven, "unproven"},
	{errClock, "clock"}, {errOther, "other-site"}, {job.ErrBadSiteID, "site-name"}, {cluster.ErrImpossible, "impossible"}, {errDigest, "note"},
}

// refuse tells of what was not taken of a site, in the log once a minute.
func (g *Gossip) refuse(from job.SiteID, err error) {
	if n, ok := g.complains.Pass(from, time.Now(), time.Minute); ok {
		g.cfg.Logger.Warn("gossip refused", "peer_id", string(from), "reason", job.ClipReason(err.Error()), "refused_since_last_line", n)
	}
	if g.cfg.Refused == nil {
		return
	}
	for _, rule := range rules {
		if errors.Is(err, rule.err) {
			g.cfg.Refused(Refusal{Site: from, Rule: rule.word, Err: err})
			return
		}
	}
}
