package quorum

import (
	"fmt"
	"math/rand/v2"
	"time"

	"kith/internal/job"
	"kith/store/memstore"
	"kith/store/raftstore/leads"
)

// Config is how the members of a site are.
type Config struct {
	Site       job.SiteID
	Generation uint32
	// Members is how many there are, 1 to 9.
	Members int
	// Rand is the source of all that is random.
	Rand *rand.Rand
	// After has something done after a while, in virtual time; Now is that time.
	After func(d time.Duration, do func())
	Now   func() job.Time
	// A message between members takes Latency and up to Jitter more.
	Latency, Jitter time.Duration
	// Snapshot is after how many entries a member makes a snapshot and shortens its log, of which
	// it keeps the last Trailing.
	Snapshot, Trailing int
	// Begins is told of a member that begins a lead: the facts can be loaded. Over is told that
	// it leads no longer, as far as that member knows; nobody is told of one that was killed.
	Begins, Over func(*Lead)
	// Violate is told that something does not hold that raft promises.
	Violate func(format string, args ...any)
	// Trace gets a line for what happens; nil for none.
	Trace func(format string, args ...any)
}

// Times of members, as those of real ones are.
const (
	heartbeat   = time.Second
	election    = 2 * time.Second // and up to as much again
	longestTrip = 20 * time.Second
)

// Group is the members of a site.
type Group struct {
	cfg     Config
	members []*member
	// cut says of two members that nothing gets through between them.
	cut     map[[2]int]bool
	truth   truth // what stands
	founded bool  // time has begun
}

// New returns the members of a new site, of which the first leads, and its lead. Until
// [Group.Begin] everything that is committed stands at once.
func New(cfg Config) (*Group, *Lead, error) {
	g := &Group{cfg: cfg, cut: make(map[[2]int]bool)}
	g.truth.init(g)
	for i := range cfg.Members {
		m := &member{g: g, id: i, up: true, life: 1, vote: none, leader: none, snap: snapshot{disk: new(memstore.Disk)}}
		if _, err := memstore.Open(m.snap.disk, cfg.Site, cfg.Generation); err != nil {
			return nil, nil, err
		}
		m.snap.index = founding
		m.snap.at = leads.Position{Index: founding}
		m.recall()
		g.members = append(g.members, m)
	}
	g.truth.next, g.truth.at = founding+1, leads.Position{Index: founding}
	first := g.members[0]
	first.term, first.vote = 1, 0
	first.elected()
	if first.lead == nil {
		return nil, nil, fmt.Errorf("site %s: no member leads", cfg.Site)
	}
	return g, first.lead, nil
}

// Begin lets time begin.
func (g *Group) Begin() {
	g.founded = true
	for _, m := range g.members {
		m.heard = g.cfg.Now()
		m.arm()
	}
	g.members[0].beat()
}

// Members returns how many there are.
func (g *Group) Members() int { return len(g.members) }

// Latest returns the number of the latest lead that has begun.
func (g *Group) Latest() uint64 { return g.truth.lead }

// Up reports whether a member's process is there.
func (g *Group) Up(m int) bool { return g.members[m].up }

// Kill ends a member's process. Its disk stays.
func (g *Group) Kill(m int) { g.members[m].kill() }

// Start starts a member's process again.
func (g *Group) Start(m int) { g.members[m].start() }

// Pause stops a member's process where it is; what is said to it waits.
func (g *Group) Pause(m int) { g.members[m].paused = g.members[m].up }

// Resume lets it go on, with all that was said to it.
func (g *Group) Resume(m int) { g.members[m].resume() }

// Fill makes a member's disk full, or not.
func (g *Group) Fill(m int, full bool) { g.members[m].full = full }

// Wipe replaces the disk of a member, whose process ends. It reports false, and does nothing, if
// another member has not caught up after that: then two disks of three would be gone.
func (g *Group) Wipe(m int) bool {
	for _, other := range g.members {
		if other.lacks && other.id != m {
			return false
		}
	}
	g.members[m].kill()
	g.members[m].wipe()
	return true
}

// Part cuts a member off from the others; Join ends all of that.
func (g *Group) Part(m int) {
	for i := range g.members {
		if i != m {
			g.cut[[2]int{min(i, m), max(i, m)}] = true
		}
	}
}

// PartAll cuts all members off from each other.
func (g *Group) PartAll() {
	for i := range g.members {
		g.Part(i)
	}
}

// Join connects all members.
func (g *Group) Join() { clear(g.cut) }

// HandOver has a member that leads ask another one to stand for election at once.
func (g *Group) HandOver(m int) {
	from := g.members[m]
	if from.role != leading || len(g.members) == 1 {
		return
	}
	to := (m + 1 + g.cfg.Rand.IntN(len(g.members)-1)) % len(g.members)
	if from.match[to] < from.last() {
		return // it would not be chosen
	}
	g.send(from, to, func(m *member) { m.stand(true) })
}

func (g *Group) trace(format string, args ...any) {
	if g.cfg.Trace != nil {
		g.cfg.Trace(format, args...)
	}
}

// send has a member do something a little later, as if it was told to by another one.
func (g *Group) send(from *member, to int, do func(m *member)) {
	d := g.cfg.Latency
	if g.cfg.Jitter > 0 {
		d += time.Duration(g.cfg.Rand.Int64N(int64(g.cfg.Jitter)))
	}
	m, life, way := g.members[to], from.life, [2]int{min(from.id, to), max(from.id, to)}
	if g.cut[way] || !m.up {
		return
	}
	theirs := m.life
	g.cfg.After(d, func() {
		switch {
		case g.cut[way] || m.life != theirs || !m.up || from.life != life && g.cfg.Rand.IntN(2) == 0:
		case m.paused:
			if len(m.inbox) < mostInbox {
				m.inbox = append(m.inbox, do)
			}
		default:
			do(m)
		}
	})
}

// mostInbox bounds what waits for a member that is stopped, as a kernel's buffers do.
const mostInbox = 200
