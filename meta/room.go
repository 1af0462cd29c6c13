package meta

import (
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta/bags"
)

// room is whether pilots that end after their present task make room for a home job: one that
// waits, be it behind others, would start if there were no pilots. Until it has, no other pilot
// begins: those that are let go ahead of home jobs one by one would take the processors that
// it needs together.
type room struct {
	made  bool     // pilots keep out
	news  job.Time // that it was last looked at for
	waits int      // home jobs then
	at    job.Time // when
	due   bool     // it is to be looked at again from at+roomPause on
}

// roomPause is between two looks, which cost a look through the queue each.
const roomPause = 200 * time.Millisecond

// makeRoom looks whether pilots keep out for a home job.
func (th *taskHost) makeRoom(now job.Time) {
	r := &th.room
	waits := 0
	if th.cfg.Bags.Yield == bags.YieldTask && len(th.lines) > 0 {
		waits = th.host.site.HomeWaits(now) - th.homePilots
	}
	if waits <= 0 {
		r.set(th, false)
		r.waits, r.due = 0, false
		return
	}
	r.due = r.due || r.made || waits != r.waits || th.news != r.news
	if !r.due || now < r.at.Add(roomPause) {
		return
	}
	r.news, r.waits, r.at, r.due = th.news, waits, now, false
	var without []job.AttemptID
	for _, l := range th.lines {
		for _, p := range slices.Concat(l.queued, l.running) {
			without = append(without, p.id)
		}
	}
	r.set(th, th.host.site.HomeStarts(now, without))
}

func (r *room) set(th *taskHost, made bool) {
	if r.made != made {
		r.made = made
		th.lookAll()
	}
}

// wake is when it is to be looked at again.
func (r *room) wake() job.Time {
	if r.due || r.made {
		return r.at.Add(roomPause)
	}
	return job.Never
}
