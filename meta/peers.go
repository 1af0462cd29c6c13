package meta

import (
	"cmp"
	"slices"
	"time"

	"kith/cluster"
	"kith/internal/fifo"
	"kith/internal/job"
	"kith/meta/place"
)

// peers are the other sites: what is known of them, the streams to them, and
// the requests that wait for their answers. It knows neither origin nor host:
// what a request says is made from the facts.
type peers struct {
	*core
	view     cluster.View
	links    map[job.SiteID]*link
	linked   []*link // by site
	busy     []*link // those with requests that may wait for an answer
	vanished fifo.Queue[vanishDue]
	// resultsOf makes the message of a request of kind taskResults.
	resultsOf func(bundle job.AttemptID) (Message, bool)
	// savedOf makes that of a request of kind saved.
	savedOf func(a job.AttemptID) (Message, bool)
	// elsewhere is [PlaceCopy.Elsewhere] of one of kind placement.
	elsewhere func(a job.AttemptID, site job.SiteID) time.Duration
}

func newPeers(c *core) *peers {
	p := &peers{core: c, links: make(map[job.SiteID]*link)}
	if c.cfg.Board != nil {
		p.view.Attach(c.cfg.Board)
	}
	return p
}

// link is a site that a stream was up to since the engine began, with the
// requests to it that wait for an answer. Requests are kept only while the
// stream is up: what a broken stream swallowed is found by comparing copies
// once it is up again (antientropy.go), so a site that is away for a month
// costs nothing.
type link struct {
	site    job.SiteID
	up      bool
	noTasks bool          // its version knows no tasks
	givenUp uint64        // its step up to which it has given up what it had claimed of this site
	met     time.Duration // how long streams were up that have ended, each overdueMoment at least
	waiting map[outKey]struct{}
	due     fifo.Queue[outDue]
	busy    bool // among peers.busy
	// mute says that what was asked of copies had to be repeated, and that nothing of that was
	// answered since: its disk may be full, though its digests come.
	mute bool
}

// outKey names a request that is repeated until it is answered.
type outKey struct {
	kind    outKind
	attempt job.AttemptID
}

type outKind uint8

const (
	placement   outKind = iota // answered by CopyAnswer
	withdrawal                 // by WithdrawAck
	result                     // by ResultAck
	stop                       // by Result or GiveBack
	demotion                   // by Result or GiveBack
	taskResults                // by TaskResultsAck
	saved                      // by SavedAck, or the end of the attempt
)

type outDue struct {
	at  job.Time
	key outKey
}

// vanishDue says when a site that is out of reach counts as vanished.
type vanishDue struct {
	at, since job.Time
	site      job.SiteID
}

// link returns the link to a site, nil if there never was one.
func (p *peers) link(site job.SiteID) *link { return p.links[site] }

// up begins a stream to a site, and reports whether it counts: this site
// itself does not, nor one that finds no room in the view.
func (p *peers) up(now job.Time, ev PeerUp) bool {
	site := ev.Site
	if l := p.links[site]; l != nil && l.up { // the new stream takes the place of another
		l.met = p.met(now, site)
	}
	if site == p.self {
		return false
	}
	peer := p.view.Up(now, site, ev.Generation, ev.Incarnation)
	if peer == nil {
		return false
	}
	peer.Lacks = ev.Lacks
	l := p.links[site]
	if l == nil {
		l = &link{site: site}
		p.links[site] = l
		i, _ := slices.BinarySearchFunc(p.linked, site, func(l *link, s job.SiteID) int { return cmp.Compare(l.site, s) })
		p.linked = slices.Insert(p.linked, i, l)
	}
	l.noTasks, l.givenUp = ev.NoTasks, 0
	l.up, l.waiting, l.due, l.mute = true, make(map[outKey]struct{}), fifo.Queue[outDue]{}, false
	return true
}

// down ends the stream to a site, and reports whether one was up.
func (p *peers) down(now job.Time, site job.SiteID) bool {
	l := p.links[site]
	if l == nil || !l.up {
		return false
	}
	l.met = p.met(now, site)
	l.up, l.waiting, l.due = false, nil, fifo.Queue[outDue]{}
	p.view.Down(now, site)
	p.watch(now, site)
	return true
}

// knowsTooLittle returns what the version of a site does not know that a job needs, [job.NoReason] if it
// knows all.
func (p *peers) knowsTooLittle(site job.SiteID, r *job.Request) job.Reason {
	if peer := p.view.Get(site); peer != nil {
		return peer.Refuses(r)
	}
	return job.NoReason
}

// knowsNoCheckpoints reports whether the version of a site knows no checkpoints.
func (p *peers) knowsNoCheckpoints(site job.SiteID) bool {
	peer := p.view.Get(site)
	return peer != nil && peer.NoCheckpoints
}

// met returns for how long streams to a site were up in this run, each counted as
// overdueMoment at least.
func (p *peers) met(now job.Time, site job.SiteID) time.Duration {
	l := p.links[site]
	switch s := p.view.Get(site); {
	case l == nil:
		return 0
	case !l.up || s == nil:
		return l.met
	default:
		return l.met + max(now.Sub(s.Since), overdueMoment)
	}
}

// reachable reports whether a stream to a site is up.
func (p *peers) reachable(site job.SiteID) bool {
	l := p.links[site]
	return l != nil && l.up
}

// knowsTasks reports whether a site in reach takes messages about tasks.
func (p *peers) knowsTasks(site job.SiteID) bool {
	l := p.links[site]
	return l != nil && l.up && !l.noTasks
}

// watch has a site that is out of reach count as vanished if it stays so.
func (p *peers) watch(now job.Time, site job.SiteID) {
	p.vanished.Push(vanishDue{at: now.Add(p.cfg.Timing.Vanish), since: now, site: site})
}

// nextVanished returns the next site that has been out of reach for too long,
// each time once, and "" if there is none.
func (p *peers) nextVanished(now job.Time) job.SiteID {
	for {
		d, ok := p.vanished.First()
		if !ok || d.at > now {
			return ""
		}
		p.vanished.Pop()
		if s := p.view.Get(d.site); s != nil && !s.Connected && s.Since <= d.since {
			return d.site
		}
	}
}

// nextWake returns when a request is to be repeated or a site vanishes.
func (p *peers) nextWake() job.Time {
	wake := p.nextResend()
	if d, ok := p.vanished.First(); ok {
		wake = min(wake, d.at)
	}
	return wake
}

// send sends m over the stream to a site, if one is up.
func (p *peers) send(to job.SiteID, m Message) {
	if l := p.links[to]; l != nil && l.up {
		p.emit(Send{To: to, Message: m})
	}
}

// isMute reports whether a site leaves unanswered what it is asked of copies.
func (p *peers) isMute(site job.SiteID) bool {
	l := p.links[site]
	return l != nil && l.mute
}

// generationOf names the data folder of a site, 0 if it never said.
func (p *peers) generationOf(site job.SiteID) uint32 {
	if site == p.self {
		return p.st.Site().Generation
	}
	if p := p.view.Get(site); p != nil {
		return p.Generation
	}
	return 0
}

// givesUp notes up to which of its steps a site has given up what it had claimed of this one.
func (p *peers) givesUp(site job.SiteID, step uint64) {
	if l := p.links[site]; l != nil {
		l.givenUp = max(l.givenUp, step)
	}
}

// hasForgotten reports whether a site, of what it claimed at a step on a data folder, cannot
// know any more whether it has begun: its folder is another one, or it has given up since what
// it had of this site, as its operator ended the trust in this one for a while.
func (p *peers) hasForgotten(site job.SiteID, generation uint32, step uint64) bool {
	l := p.links[site]
	return generation != p.generationOf(site) || l != nil && l.givenUp != 0 && step <= l.givenUp
}

// loadSeen records what another site says of itself, and reports whether there
// may be a place now where there was none.
func (p *peers) loadSeen(now job.Time, d cluster.Digest) bool {
	if d.Site == p.self || d.Processors < 0 {
		return false
	}
	known := p.view.Get(d.Site)
	first := known == nil || !known.Known
	wasDraining := !first && known.Digest.Draining
	wasPaused := !first && known.Digest.NotStarting
	return p.view.Merge(now, d) && (first || (wasDraining && !d.Draining) || (wasPaused && !d.NotStarting))
}

// settle says that there is nothing to ask any more.
func (l *link) settle(key outKey) {
	if l != nil {
		delete(l.waiting, key)
	}
}

// answered says that a site answered a request.
func (l *link) answered(key outKey) {
	if l != nil {
		l.mute = false
		l.settle(key)
	}
}

func (l *link) waits(key outKey) bool {
	if l == nil {
		return false
	}
	_, ok := l.waiting[key]
	return ok
}

// nextResend returns when the first unanswered request is to be repeated, and
// forgets those ahead of it.
func (l *link) nextResend() job.Time {
	for l.up {
		d, ok := l.due.First()
		if !ok {
			break
		}
		if l.waits(d.key) {
			return d.at
		}
		l.due.Pop()
	}
	return job.Never
}

// nextResend returns when the first unanswered request of all links is to be
// repeated. Most links have none: only the busy ones are looked at.
func (p *peers) nextResend() job.Time {
	wake, busy := job.Never, p.busy[:0]
	for _, l := range p.busy {
		at := l.nextResend()
		if l.busy = at != job.Never; l.busy {
			wake, busy = min(wake, at), append(busy, l)
		}
	}
	clear(p.busy[len(busy):])
	p.busy = busy
	return wake
}

// request sends what key stands for and repeats it until settled. It reports
// whether anything was sent.
func (p *peers) request(now job.Time, to job.SiteID, key outKey) bool {
	l := p.links[to]
	if l == nil || !l.up {
		return false
	}
	m, ok := p.messageOf(to, key)
	if !ok {
		return false
	}
	if _, waits := l.waiting[key]; !waits {
		l.waiting[key] = struct{}{}
		l.due.Push(outDue{at: now.Add(p.cfg.Timing.Resend), key: key})
		if !l.busy {
			l.busy = true
			p.busy = append(p.busy, l)
		}
	}
	p.emit(Send{To: to, Message: m})
	return true
}

// messageOf makes the message of a request to a site anew from the facts, and false if
// they have moved on and there is nothing to ask any more.
func (p *peers) messageOf(to job.SiteID, key outKey) (Message, bool) {
	switch key.kind {
	case placement:
		j := p.st.Job(key.attempt.Job)
		if j == nil || j.State != job.Queued || j.Attempt != key.attempt.Number {
			return nil, false
		}
		small := place.Fits(&j.Request, p.cfg.Self.Processors, p.cfg.Self.MemoryBytes) != job.NoReason
		return PlaceCopy{
			Attempt: key.attempt, Request: j.Asked(), Before: j.Before(), OriginTooSmall: small, Stays: j.DemotedFor(job.Evicted) >= job.MaxEvictions,
			Elsewhere: p.elsewhere(key.attempt, to),
		}, true
	case withdrawal:
		return Withdraw{Attempt: key.attempt}, true
	case result:
		c := p.st.Copy(key.attempt)
		if c == nil || c.Outcome == nil {
			return nil, false
		}
		return Result{Attempt: key.attempt, Outcome: *c.Outcome}, true
	case taskResults:
		return p.resultsOf(key.attempt)
	case saved:
		return p.savedOf(key.attempt)
	case demotion:
		j := p.st.Job(key.attempt.Job)
		if j == nil || j.State != job.Running || j.AttemptID() != key.attempt || !j.SaveAsked || j.Holder != to {
			return nil, false
		}
		return Demote{Attempt: key.attempt}, true
	case stop:
		return Stop{Attempt: key.attempt, Stale: stale(p.st.Job(key.attempt.Job), key.attempt.Number, to)}, true
	}
	return nil, false
}

// resend repeats the requests that were not answered in time.
func (p *peers) resend(now job.Time) {
	if now < p.nextResend() {
		return
	}
	for _, l := range p.linked {
		if !l.up {
			continue
		}
		for {
			d, ok := l.due.First()
			if !ok || d.at > now {
				break
			}
			l.due.Pop()
			if !l.waits(d.key) {
				continue
			}
			m, ok := p.messageOf(l.site, d.key)
			if !ok {
				l.settle(d.key)
				continue
			}
			switch d.key.kind {
			case placement:
				l.mute = true
			case withdrawal:
				l.mute = true
				p.counters.ClaimMessagesWire++
			}
			l.due.Push(outDue{at: now.Add(p.cfg.Timing.Resend), key: d.key})
			p.emit(Send{To: l.site, Message: m})
		}
	}
}
