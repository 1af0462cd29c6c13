package meta

import (
	"kith/cluster"
	"kith/internal/job"
)

// What is in this file is for simulations in which loads and start queries take
// no time to travel ([Config.Board], [Config.Starts]); DESIGN.md says why it is
// here.

// Digest returns what this site says of itself now.
func (e *Engine) Digest(now job.Time) cluster.Digest { return e.host.digestForAll(now) }

// AnswerStart returns what this site answers to a query of another one now. It
// changes nothing.
func (e *Engine) AnswerStart(now job.Time, from job.SiteID, m *StartQuery) StartAnswer {
	return e.host.answerStart(now, from, m)
}
