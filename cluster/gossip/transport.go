package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
	"golang.org/x/time/rate"

	"kith/internal/job"
)

// Lanes opens lanes.
type Lanes interface {
	// Dial opens a connection to a site, proved to be that site, at an address that
	// this site's operator has given or the site itself has proved. It returns an
	// error at once for a site without one.
	Dial(ctx context.Context, site job.SiteID) (Conn, error)
}

// How dialling is paced: the first try comes at once, or after aside at the site of the
// higher name, so that two that begin together do not end up with two lanes.
const (
	firstRedial = time.Second
	mostRedial  = 30 * time.Second
	dialWait    = 10 * time.Second
	aside       = 500 * time.Millisecond
)

// maxLanes bounds the lanes of one site: one that each side dialled, and a new one that
// takes the place of either.
const maxLanes = 3

var (
	errNotTrusted = errors.New("the site is not trusted here")
	errNoLane     = errors.New("no lane to the site")
	errClosed     = errors.New("gossip has ended")
)

// transport carries memberlist's packets and exchanges over lanes.
type transport struct {
	site    job.SiteID
	lanes   Lanes
	trusted func(job.SiteID) bool
	proves  func(job.SiteID, Conn) bool
	log     *slog.Logger
	// linked is called when the first lane to a site is up.
	linked func(job.SiteID)
	// notes and state are called with what came over a lane, by its reader.
	notes func(l *lane, notes [][]byte)
	state func(l *lane, state []byte)
	// refuse is called with what a site may not say.
	refuse func(from job.SiteID, err error)

	packetCh chan *memberlist.Packet
	streamCh chan net.Conn
	refused  atomic.Uint64 // messages of memberlist that the guard left out

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	sites map[job.SiteID]*contact
}

// contact is a site and the lanes to it.
type contact struct {
	lanes   []*lane // the latest last
	dialing bool
	pause   time.Duration
	notTill time.Time
	pace    *rate.Limiter // of frames of the site, whichever lane they come over
	changed chan struct{} // closed and replaced when a lane came up or a dial failed
	// accuser: the site doubts that this one is alive, and is to hear of it directly.
	accuser bool
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

func newTransport(cfg *Config) *transport {
	ctx, cancel := context.WithCancel(context.Background())
	proves := cfg.Proves
	if proves == nil {
		proves = func(job.SiteID, Conn) bool { return true }
	}
	return &transport{
		site: cfg.Site, lanes: cfg.Lanes, trusted: cfg.Trusted, proves: proves, log: cfg.Logger, ctx: ctx, cancel: cancel,
		packetCh: make(chan *memberlist.Packet), streamCh: make(chan net.Conn), sites: make(map[job.SiteID]*contact),
	}
}

// FinalAdvertiseAddr implements memberlist.Transport: all members have the same, which
// leads nowhere.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return everywhere, everywherePort, nil
}

// PacketCh implements memberlist.Transport.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packetCh }

// StreamCh implements memberlist.Transport.
func (t *transport) StreamCh() <-chan net.Conn { return t.streamCh }

// WriteTo implements memberlist.Transport. An address leads nowhere.
func (t *transport) WriteTo([]byte, string) (time.Time, error) { return time.Time{}, errNotTrusted }

// DialTimeout implements memberlist.Transport. An address leads nowhere.
func (t *transport) DialTimeout(string, time.Duration) (net.Conn, error) { return nil, errNotTrusted }

// WriteToAddress implements memberlist.NodeAwareTransport. Of the address only the name
// counts. A packet to a site without a lane is lost, and the lane is dialled. It is lost, too,
// if the site is not trusted: an error would keep memberlist from giving up one that was.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	if site := job.SiteID(a.Name); t.trusts(site) {
		t.write(site, b)
	}
	return time.Now(), nil
}

func (t *transport) write(site job.SiteID, b []byte) {
	g := guard{from: t.site, to: site}
	b = g.packet(slices.Clone(b))
	if g.alive != nil {
		t.answerAccusers(g.alive)
	}
	if b == nil || len(b) > maxPacket {
		return
	}
	if l, _ := t.lane(site); l != nil {
		l.send(b)
	}
}

// answerAccusers tells the sites that doubt that this one lives that it does. memberlist
// leaves that to members that pass it on, and here none does.
func (t *transport) answerAccusers(alive []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.sites {
		if c.accuser && len(c.lanes) > 0 {
			c.accuser = false
			c.lanes[len(c.lanes)-1].send(alive)
		}
	}
}

// DialAddressTimeout implements memberlist.NodeAwareTransport. Of the address only the
// name counts.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	site := job.SiteID(a.Name)
	if !t.trusts(site) {
		return nil, fmt.Errorf("%.64q: %w", a.Name, errNotTrusted)
	}
	late := time.NewTimer(timeout)
	defer late.Stop()
	l, changed := t.lane(site)
	if l == nil && changed != nil {
		select {
		case <-changed:
		case <-late.C:
		case <-t.ctx.Done():
		}
		l, _ = t.lane(site)
	}
	if l == nil {
		return nil, fmt.Errorf("%s: %w", site, errNoLane)
	}
	e, err := l.ask()
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (t *transport) trusts(site job.SiteID) bool { return site != t.site && t.trusted(site) }

// contact returns what is known of a site. The mutex is held.
func (t *transport) contact(site job.SiteID) *contact {
	c := t.sites[site]
	if c == nil {
		c = &contact{changed: make(chan struct{}), pace: rate.NewLimiter(framesPerSecond, framesPerSecond)}
		if t.site > site {
			c.notTill = time.Now().Add(aside)
		}
		t.sites[site] = c
	}
	return c
}

func (c *contact) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// lane returns the lane to a trusted site. If there is none it is dialled, and changed is
// closed when that has come to an end; nil while it is too early to dial again.
func (t *transport) lane(site job.SiteID) (l *lane, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return nil, nil
	}
	c := t.contact(site)
	if n := len(c.lanes); n > 0 {
		return c.lanes[n-1], nil
	}
	if !c.dialing {
		if time.Now().Before(c.notTill) {
			return nil, nil
		}
		c.dialing = true
		t.wg.Go(func() { t.dial(site, c) })
	}
	return nil, c.changed
}

func (t *transport) dial(site job.SiteID, c *contact) {
	ctx, cancel := context.WithTimeout(t.ctx, dialWait)
	defer cancel()
	conn, err := t.lanes.Dial(ctx, site)
	if err != nil {
		t.log.Debug("gossip lane not opened", "peer_id", string(site), "error", job.ClipReason(err.Error()))
	}
	t.mu.Lock()
	c.dialing = false
	c.pause = min(max(firstRedial, 2*c.pause), mostRedial)
	c.notTill = time.Now().Add(c.pause)
	if err != nil {
		c.change()
	}
	t.mu.Unlock()
	if err == nil {
		t.add(site, conn, true)
	}
}

// add takes a connection as a lane.
func (t *transport) add(site job.SiteID, conn Conn, dialled bool) {
	l := newLane(site, conn, dialled, t)
	t.mu.Lock()
	if t.ctx.Err() != nil || !t.trusts(site) || !t.proves(site, conn) {
		t.mu.Unlock()
		conn.Close() //nolint:errcheck // it is of no use
		return
	}
	c := t.contact(site)
	c.pause, l.pace = 0, c.pace
	first := len(c.lanes) == 0
	var spare []*lane
	for _, old := range c.lanes {
		// A second one of the same direction says that the first is dead. Of two that
		// crossed, the one stays that the site of the lower name dialled; the other
		// is closed by the site that dialled it, which knows that both sides have the first.
		crossed := old.dialled != dialled && t.site > site
		if old.dialled == dialled && !dialled || crossed && old.dialled {
			spare = append(spare, old)
		}
		if crossed && dialled {
			spare = append(spare, l)
		}
	}
	c.lanes = append(c.lanes, l)
	if len(c.lanes) > maxLanes {
		spare = append(spare, c.lanes[0])
	}
	c.change()
	t.wg.Go(l.run)
	t.mu.Unlock()
	for _, s := range spare {
		s.end(errLaneClosed)
	}
	if first {
		t.linked(site)
	}
}

// laneEnded implements laneServer.
func (t *transport) laneEnded(l *lane) {
	if err := l.why(); errors.Is(err, errFrame) || errors.Is(err, errTooLong) || errors.Is(err, errFlooded) {
		t.refuse(l.site, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.sites[l.site]; c != nil {
		c.lanes = slices.DeleteFunc(c.lanes, func(o *lane) bool { return o == l })
		if len(c.lanes) == 0 && !t.trusted(l.site) {
			delete(t.sites, l.site)
		}
	}
}

// mostDirect is to how many sites a site says its load itself.
const mostDirect = 32

// tell sends a note to the sites to which there is a lane, to some of them if they are many.
func (t *transport) tell(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	packet, left := append([]byte{mlUser}, b...), mostDirect
	for _, c := range t.sites { // begins anywhere
		if n := len(c.lanes); n > 0 {
			c.lanes[n-1].send(packet)
			if left--; left == 0 {
				return
			}
		}
	}
}

// up reports whether there is a lane to a site.
func (t *transport) up(site job.SiteID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.sites[site]
	return c != nil && len(c.lanes) > 0
}

// drop closes the lanes that nothing proves any more, and forgets the sites that are not
// trusted any more.
func (t *transport) drop() {
	var gone []*lane
	t.mu.Lock()
	for site, c := range t.sites {
		if !t.trusted(site) {
			gone = append(gone, c.lanes...)
			if !c.dialing {
				delete(t.sites, site)
			}
			continue
		}
		for _, l := range c.lanes {
			if !t.proves(site, l.conn) {
				gone = append(gone, l)
			}
		}
	}
	t.mu.Unlock()
	for _, l := range gone {
		l.end(errNotTrusted)
	}
}

// gotPacket implements laneServer.
func (t *transport) gotPacket(l *lane, b []byte) {
	g := guard{from: l.site, to: t.site, takes: true}
	b = g.packet(b)
	t.note(l.site, &g)
	if !t.trusted(l.site) {
		return
	}
	t.notes(l, g.notes)
	if b == nil {
		return
	}
	select {
	case t.packetCh <- &memberlist.Packet{Buf: b, From: siteAddr(l.site), Timestamp: time.Now()}:
	case <-t.ctx.Done():
	}
}

// gotRequest implements laneServer.
func (t *transport) gotRequest(l *lane, e *exchange) {
	if e.failed() || !t.trusted(l.site) {
		e.Close() //nolint:errcheck // it cannot fail
		return
	}
	select {
	case t.streamCh <- e:
	case <-t.ctx.Done():
		e.Close() //nolint:errcheck // it cannot fail
	}
}

// coming implements laneServer.
func (t *transport) coming(l *lane, b []byte) ([]byte, error) {
	g := guard{from: l.site, to: t.site, takes: true}
	b, err := g.message(b)
	if err != nil {
		g.refused, g.why = g.refused+1, err
	}
	t.note(l.site, &g)
	if len(g.state) > 0 && t.trusted(l.site) {
		t.state(l, g.state)
	}
	return b, err
}

// leaving implements laneServer.
func (t *transport) leaving(l *lane, b []byte) ([]byte, error) {
	g := guard{from: t.site, to: l.site}
	return g.message(b)
}

// note keeps what the guard found.
func (t *transport) note(site job.SiteID, g *guard) {
	if g.refused > 0 {
		t.refused.Add(uint64(g.refused))
		if g.why == nil {
			g.why = fmt.Errorf("%w: %d that cannot be read, or of what the site may not say", errGuard, g.refused)
		}
		t.refuse(site, g.why)
	}
	if !g.accused {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.sites[site]; c != nil {
		c.accuser = true
	}
}

// Shutdown implements memberlist.Transport.
func (t *transport) Shutdown() error {
	t.cancel()
	var all []*lane
	t.mu.Lock()
	for _, c := range t.sites {
		all = append(all, c.lanes...)
		c.change()
	}
	t.mu.Unlock()
	for _, l := range all {
		l.end(errClosed)
	}
	t.wg.Wait()
	return nil
}

// siteAddr is the net.Addr of a site: its name.
type siteAddr job.SiteID

// Network implements net.Addr.
func (siteAddr) Network() string { return "kith" }

// String implements net.Addr. memberlist wants host:port; nothing is dialled there.
func (siteAddr) String() string { return "192.0.2.1:1" }

// nowhere is the net.Addr of this side.
var nowhere = siteAddr("")
