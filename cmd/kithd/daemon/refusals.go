package daemon

import (
	"log/slog"
	"time"

	"kith/internal/job"
	"kith/internal/loglines"
	"kith/meta"
)

// refusals logs what peers said that they may not say (meta.Rights): one line a second
// for each peer, with how many there were. The zero refusals is ready; it is safe for use
// by several goroutines.
type refusals struct{ lines loglines.Pacer[job.SiteID] }

// note takes up a refusal. What an honest site may come to by a late message is no
// matter for the operator.
func (r *refusals) note(log *slog.Logger, now time.Time, f meta.Refused) {
	if f.Late {
		log.Debug("late message of a peer skipped", "peer_id", string(f.Peer), "kind", f.Kind, "rule", f.Rule)
	} else if held, ok := r.lines.Pass(f.Peer, now, time.Second); ok {
		log.Warn("a peer said what it may not say", "peer_id", string(f.Peer), "kind", f.Kind, "rule", f.Rule, "refused_since_last_line", held)
	}
}
