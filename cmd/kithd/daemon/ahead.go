package daemon

import (
	"errors"
	"log/slog"
	"time"

	"kith/internal/job"
	"kith/internal/loglines"
	"kith/sitesched/runner"
)

// aheadEvery is how often the log says of a site that it takes this one's clock for wrong,
// or that its own is.
const aheadEvery = 10 * time.Minute

var errImpossibleStart = errors.New("a time of a start cannot be true; when it arrived counts")

// aheadLines logs what goes wrong for clocks.
type aheadLines struct {
	log *slog.Logger
	// refused is told of each time that cannot be true.
	refused func(runner.Refusal)

	lines loglines.Pacer[clockTrouble]
}

// clockTrouble is what is said of a site: that it denies claims, or that its own times
// cannot be true.
type clockTrouble struct {
	site   job.SiteID
	denies bool
}

// impossible says that a site dates the starts of jobs at times that cannot be true.
func (l *aheadLines) impossible(site job.SiteID) {
	l.refused(runner.Refusal{Site: site, What: runner.WhatResult, Rule: "impossible-times", Err: errImpossibleStart})
	if _, ok := l.lines.Pass(clockTrouble{site, false}, time.Now(), aheadEvery); ok {
		l.log.Warn("a peer's times of starts cannot be true; when they arrived counts", "peer_id", string(site),
			"remedy", "set the clock of that site's machine")
	}
}

func (l *aheadLines) denied(site job.SiteID) {
	if _, ok := l.lines.Pass(clockTrouble{site, true}, time.Now(), aheadEvery); ok {
		l.log.Warn("claims denied: a peer of an earlier version takes this site's clock to be more than a day ahead", "peer_id", string(site),
			"meaning", "its jobs do not run here; its copies are refused for growing times",
			"remedy", "upgrade kithd at that site; or, if this site has no jobs, start it with an empty data folder")
	}
}
