package meta

import (
	"cmp"
	"time"

	"kith/internal/job"
	"kith/sitesched/level"
)

// A site may be a level of a hierarchy for jobs of unknown length (spec 000, ADR 0060): such a job
// is placed at the sites of the level that it is at, and goes down when it outgrows that. The
// rules are those of package level. levelhost.go has them enforced, levelorigin.go says where a
// job goes next.

// LevelPolicy says which level of a hierarchy the site is. The zero value is none.
type LevelPolicy struct {
	// Rank is 1, the smallest level, to [job.MaxLevel]; 0 for a site that is no level. Then
	// nothing else is set but Share and SharePeriod.
	Rank int
	// Queue is T_q, the longest stay of a job of the hierarchy, Run is T_e, the longest run; at
	// least a second.
	Queue, Run time.Duration
	// Beta is the share of a run that processors bound, above 0 to 1.
	Beta float64
	// EstimateShare is the part of T_e that an estimator may take, 0 to below 1.
	EstimateShare float64
	// Actions are what each trigger does.
	Actions [level.Triggers]level.Action
	// Share is how jobs of the hierarchy that are submitted here are shared by the sites of a level, whether
	// or not this site is one. Zero is by copies.
	Share level.Share
	// SharePeriod is how often what is available here is sampled, and with SharePush how often queues are
	// compared, at least a second. Zero means [level.SharePeriod].
	SharePeriod time.Duration
}

// sharePeriod is SharePeriod or its default.
func (p *LevelPolicy) sharePeriod() time.Duration { return cmp.Or(p.SharePeriod, level.SharePeriod) }

// mostSharePeriod is the longest period in which something is still shared.
const mostSharePeriod = 24 * time.Hour

// limits are those of the level, for a site with such processors. Their Rank is 0 if it is none.
func (p *LevelPolicy) limits(s *Self) level.Limits {
	if p.Rank == 0 {
		return level.Limits{}
	}
	return level.Limits{
		Rank: uint8(min(max(0, p.Rank), 255)), Queue: p.Queue, Run: p.Run, Processors: s.Processors, Speed: s.Speed,
		Bound: p.Beta, EstimateShare: p.EstimateShare, Actions: p.Actions,
	}
}

// check calls bad for everything that is wrong, see [Config.Check]. Of a site whose processors
// are not known yet it checks the rest.
func (p *LevelPolicy) check(s *Self, bad func(key string, value any, remedy string)) {
	switch {
	case p.Share > level.SharePush:
		bad("level.share", p.Share, `give "copies" or "push"`)
	case p.SharePeriod != 0 && (p.SharePeriod < time.Second || p.SharePeriod > mostSharePeriod):
		bad("level.share_period", p.SharePeriod, "give a second to a day, 60s if in doubt")
	}
	if p.Rank == 0 {
		switch {
		case p.Queue != 0:
			bad("level.queue_limit", p.Queue, "leave it out, or give level.rank: 1 for the smallest level to 16")
		case p.Run != 0:
			bad("level.run_limit", p.Run, "leave it out, or give level.rank: 1 for the smallest level to 16")
		case p.Actions != [level.Triggers]level.Action{}:
			bad("level.rank", p.Rank, "give 1 for the smallest level to 16, or leave out what triggers do")
		}
		return
	}
	l := p.limits(s)
	if *s == (Self{}) {
		l.Processors, l.Speed = 1, 1
	}
	l.Check(func(field string, value any, want string) { bad("level."+field, value, "give "+want) })
	if p.Run > 0 && p.Run < time.Second {
		bad("level.run_limit", p.Run, "give at least 1s")
	}
	if p.Actions[level.Overdue] == level.Off {
		bad("level.overdue", level.Off, `give "demote" or "terminate": the processors are promised to others for run_limit`)
	}
}

// reasonOf is the reason with which a job leaves a level for a trigger.
func reasonOf(t level.Trigger) job.Reason {
	switch t {
	case level.Overload, level.QueueOverdue:
		return job.LevelFull
	case level.Mismatch:
		return job.LevelMismatch
	}
	return job.LevelOverdue
}

// ofLevel reports whether a site does not take a job as that has outgrown its level.
func ofLevel(why job.Reason) bool {
	return why == job.LevelFull || why == job.LevelOverdue || why == job.LevelMismatch
}
