package sim

import (
	"time"

	"kith/internal/job"
	"kith/meta"
)

// lowDisk is a disk with less room than is to stay free. The zero value has more.
type lowDisk struct {
	low bool
	// holds is for how long what is launched waits for room, in vain; 0 if it finds some.
	holds time.Duration
	// told is the life of the daemon that knows that the disk is low, since when.
	told  int
	since job.Time
	// looked says that the disk is looked at again and again.
	looked bool
}

const (
	// lookAtDisk is how often a daemon looks at its disk, roomPause how often what waits for
	// room does. They are those of kithd.
	lookAtDisk = 2 * time.Second
	roomPause  = time.Second
)

// noRoom is why a site cannot start what finds no room. It is no outcome of a job.
const noRoom = "no room on the disk"

// LowDisk leaves less room on the site's disk than is to stay free, until it is called with
// false. What is launched waits for holds, in vain, and has not started then; with 0 it starts.
func (s *Site) LowDisk(on bool, holds time.Duration) {
	if on == s.low {
		return
	}
	s.w.trace("%s: low on disk: %v", s.cfg.ID, on)
	s.low, s.holds = on, holds
	s.upsets++
	if !s.looked {
		s.looked = true
		s.w.agenda.add(s.w.now.Add(lookAtDisk), message, 0, call(s.lookAtDisk))
	}
}

// lookAtDisk tells a daemon what has changed.
func (s *Site) lookAtDisk() {
	knows := s.engine != nil && s.told == s.life
	switch {
	case s.low && s.engine != nil && !knows:
		s.told, s.since = s.life, s.w.now
		s.feed(meta.DiskSeen{Low: noRoom})
	case !s.low && knows:
		s.told = 0
		s.feed(meta.DiskSeen{})
	case !s.low:
		s.looked = false
		return
	}
	s.w.agenda.add(s.w.now.Add(lookAtDisk), message, 0, call(s.lookAtDisk))
}

// launchWithRoom starts what has waited for room on the disk for so long, if there is any.
func (s *Site) launchWithRoom(f meta.Launch, waited time.Duration) {
	if s.holds == 0 {
		s.launch(f)
		return
	}
	if waited >= s.holds {
		s.failToStart(f, noRoom)
		return
	}
	s.keep(&staging{s: s, life: s.life, launch: f, waited: waited + roomPause}, roomPause)
}

// claimsInVain watches that a site whose disk has long been low asks for no job of others: it would hold processors
// that wait for room.
func (k *keeper) claimsInVain(s *Site, a job.AttemptID) {
	if s.low && s.told == s.life && s.calm() && k.w.now.Sub(s.since) > k.cfg.Settle && k.claimed[claimOf{s.index, a}].at == 0 {
		k.w.watch.violate("L4: site %s, whose disk has been low for %v, claims %v", s.cfg.ID, k.w.now.Sub(s.since), a)
	}
}
