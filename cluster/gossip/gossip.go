package gossip

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
	"google.golang.org/protobuf/proto"

	"kith/cluster"
	"kith/internal/job"
	"kith/internal/loglines"
	kithv1 "kith/proto/gen/kith/v1"
)

// Config configures a [Gossip]. All fields but Head, Refused and Tune are needed.
type Config struct {
	Site job.SiteID
	// Sites returns the sites that are trusted now, this one left out; a lane to each is
	// kept where there can be one. Trusted reports whether a site is one of them. Both are called
	// by several goroutines and must not call the Gossip.
	Sites   func() []job.SiteID
	Trusted func(job.SiteID) bool
	Lanes   Lanes
	// Proves reports whether what proved a connection to be to a site proves that still; nil
	// if nothing can change that. As Trusted, it is asked at each [Gossip.TrustChanged].
	Proves func(job.SiteID, Conn) bool
	// Signer signs this site's digests, Verifier checks those of others.
	Signer   Signer
	Verifier Verifier
	// Seen learns of every digest of another site that is news here, those of one site in
	// order. While it blocks nothing is read from the site that brought the digest.
	Seen func(cluster.Digest)
	// Head learns of the head of its audit log that a digest of another site had, with the
	// chain that proved it, ahead of Seen; nil for nobody. It is told again with each digest.
	Head func(job.SiteID, *cluster.AuditHead)
	// Refused learns of each thing that was not taken of a site; nil for nobody. It must not wait.
	Refused func(Refusal)
	// Tune adjusts memberlist's settings; nil leaves them.
	Tune   func(*memberlist.Config)
	Logger *slog.Logger
}

// Gossip is a member. It is safe for use by several goroutines.
type Gossip struct {
	cfg       Config
	list      *memberlist.Memberlist
	queue     queue
	transport *transport
	digests   *digests
	seen      sync.Mutex // held while Seen is called
	complains loglines.Pacer[job.SiteID]
	refused   atomic.Uint64

	mu     sync.Mutex
	own    []*kithv1.GossipNote // this site's key, if it has one, and its digest
	ownKey []byte
	keyAge int // digests since the key was spread

	started chan struct{} // closed when list is set
	wake    chan struct{}
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// settings are memberlist's, for lanes: packets are not lost but with the lane, so that a
// probe fails late and rarely, and nobody confirms what another suspects.
func settings() *memberlist.Config {
	mc := memberlist.DefaultWANConfig()
	mc.BindAddr, mc.BindPort = "", everywherePort
	mc.RequireNodeNames = true
	mc.EnableCompression = false
	mc.UDPBufferSize = maxPacket
	mc.TCPTimeout = 10 * time.Second
	mc.PushPullInterval = 30 * time.Second
	mc.ProbeInterval, mc.ProbeTimeout = 2*time.Second, 1500*time.Millisecond
	mc.SuspicionMult, mc.SuspicionMaxTimeoutMult = 6, 1
	mc.GossipInterval, mc.GossipNodes = 200*time.Millisecond, 4
	return mc
}

// Start becomes a member and joins the sites that are trusted, in the background and
// again and again.
func Start(cfg Config) (*Gossip, error) {
	g := &Gossip{
		cfg: cfg, digests: newDigests(cfg.Site, cfg.Trusted, cfg.Verifier),
		started: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	// A site that joins gets the key, so that it need not wait for it at the first digest.
	if _, chain := cfg.Signer.Sign([]byte("kith gossip 1\x00")); len(chain) > 0 {
		own := key{id: keyID(chain), chain: chain}
		g.own = append(g.own, own.note(cfg.Site))
	}
	g.transport = newTransport(&g.cfg)
	g.transport.linked = func(job.SiteID) { g.poke() }
	g.transport.notes, g.transport.state, g.transport.refuse = g.takeNotes, g.takeState, g.refuse
	mc := settings()
	mc.Name = string(cfg.Site)
	mc.Transport = g.transport
	mc.Delegate, mc.Alive, mc.Merge = g, g, g
	mc.LogOutput, mc.Logger = nil, log.New(logWriter{cfg.Logger}, "", 0)
	if cfg.Tune != nil {
		cfg.Tune(mc)
	}
	g.queue.members = g.members
	// memberlist calls the delegate while it is being made.
	list, err := memberlist.Create(mc)
	if err != nil {
		g.cancel()
		return nil, fmt.Errorf("gossip: %w", err)
	}
	g.list = list
	close(g.started)
	g.wg.Go(g.keepJoining)
	return g, nil
}

// Accept takes a connection that a site opened, proved to be that site's. It is the
// Gossip's from then on. A site that is not trusted has it closed.
func (g *Gossip) Accept(site job.SiteID, conn Conn) { g.transport.add(site, conn, false) }

// Up reports whether a lane to a site is up.
func (g *Gossip) Up(site job.SiteID) bool { return g.transport.up(site) }

// Skewed reports whether the latest digest of a site was refused for its time: one of the
// two clocks is wrong, so that the other site refuses this one's digests, too.
func (g *Gossip) Skewed(site job.SiteID) bool { return g.digests.isSkewed(site) }

// Members returns the sites that count as alive, this one left out, by name. It is a
// hint.
func (g *Gossip) Members() []job.SiteID {
	var sites []job.SiteID
	for _, n := range g.list.Members() {
		if n.Name != string(g.cfg.Site) && g.cfg.Trusted(job.SiteID(n.Name)) {
			sites = append(sites, job.SiteID(n.Name))
		}
	}
	slices.Sort(sites)
	return sites
}

// TrustChanged has lanes closed and digests forgotten of sites that are not trusted any
// more, before it returns, and those joined that are now.
func (g *Gossip) TrustChanged() {
	g.transport.drop()
	g.digests.drop()
	g.poke()
}

func (g *Gossip) poke() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

func (g *Gossip) members() int {
	select {
	case <-g.started:
		return g.list.NumMembers()
	default:
		return 1
	}
}

// How sites that are not members are joined.
const (
	joinCheck = 5 * time.Second // how often they are looked for
	joinPause = time.Second     // and how soon one that could not be joined is tried again, at first,
	mostPause = 30 * time.Second
	joinsAt   = 8 // and how many at a time
)

// joining is a site that is being joined, or could not be.
type joining struct {
	busy    bool
	pause   time.Duration
	notTill time.Time
}

// keepJoining joins the trusted sites that do not count as alive, for ever.
func (g *Gossip) keepJoining() {
	var mu sync.Mutex
	tries := make(map[job.SiteID]*joining)
	places := make(chan struct{}, joinsAt)
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		wait := joinCheck
		alive := g.Members()
		now := time.Now()
		for _, site := range g.cfg.Sites() {
			if _, ok := slices.BinarySearch(alive, site); ok || site == g.cfg.Site {
				continue
			}
			mu.Lock()
			try := tries[site]
			if try == nil {
				try = &joining{}
				tries[site] = try
			}
			if g.transport.up(site) {
				try.notTill = time.Time{} // the other side has opened a lane, or this one
			}
			ready := !try.busy && !now.Before(try.notTill)
			if ready {
				try.busy = true
			} else if !try.busy {
				wait = min(wait, try.notTill.Sub(now))
			}
			mu.Unlock()
			if !ready {
				continue
			}
			wg.Go(func() {
				select {
				case places <- struct{}{}:
				case <-g.ctx.Done():
					return
				}
				ok := g.join(site)
				<-places
				mu.Lock()
				try.busy = false
				try.pause = min(max(joinPause, 2*try.pause), mostPause)
				if ok {
					try.pause = 0
				}
				rest := try.pause/2 + rand.N(joinPause+try.pause/2)
				try.notTill = time.Now().Add(rest)
				mu.Unlock()
				if !ok { // the loop may have gone to sleep for longer before this failed
					time.AfterFunc(rest, g.poke)
				}
			})
		}
		g.transport.drop()
		g.digests.drop()
		select {
		case <-time.After(wait):
		case <-g.wake:
		case <-g.ctx.Done():
			return
		}
	}
}

// join tells a site of this one and hears of it, over a lane.
func (g *Gossip) join(site job.SiteID) bool {
	n, err := g.list.Join([]string{string(site) + "/" + siteAddr("").String()})
	if n == 0 {
		g.cfg.Logger.Debug("gossip join failed", "peer_id", string(site), "error", job.ClipReason(fmt.Sprint(err)))
	}
	return n > 0
}

// keyEvery is how many digests go out until the key goes with one again, for members
// that missed it.
const keyEvery = 3

// Advertise spreads this site's own digest. Its time is the wall's: others refuse one that
// is an hour from theirs.
func (g *Gossip) Advertise(d cluster.Digest) {
	if lateHead(&d) > mostSkew { // it was signed before the clock was set back
		d.Head = nil
	}
	note, chain, err := seal(g.cfg.Signer, &d)
	if err != nil {
		g.cfg.Logger.Warn("load not spread", "error", job.ClipReason(err.Error()))
		return
	}
	own := key{id: keyID(chain), chain: chain}
	g.mu.Lock()
	g.own = g.own[:0:0]
	spreadKey := false
	if len(chain) > 0 {
		g.own = append(g.own, own.note(d.Site))
		g.keyAge++
		if spreadKey = !own.named(g.ownKey) || g.keyAge >= keyEvery; spreadKey {
			g.ownKey, g.keyAge = own.id, 0
		}
	}
	g.own = append(g.own, note)
	g.mu.Unlock()
	if spreadKey {
		g.spread(d.Site, own.note(d.Site), "key")
	}
	g.spread(d.Site, note, "digest")
}

// spread says a note of this site to others, who pass it on.
func (g *Gossip) spread(site job.SiteID, m *kithv1.GossipNote, what string) {
	b, err := proto.Marshal(m)
	if err != nil {
		return
	}
	if len(b) <= maxNote {
		g.transport.tell(b)
	}
	g.pass(site, b, what)
}

// pass has a note sent to some. One that does not fit into a packet goes with the state only.
func (g *Gossip) pass(site job.SiteID, b []byte, what string) {
	if len(b) <= maxNote {
		g.queue.add(what+" "+string(site), b)
	}
}

// Close leaves the others and ends.
func (g *Gossip) Close() error {
	g.cancel()
	left := g.list.Leave(500 * time.Millisecond)
	if left != nil {
		g.cfg.Logger.Debug("gossip leave failed", "error", left.Error())
	}
	err := g.list.Shutdown()
	g.wg.Wait()
	return err
}

var errMember = errors.New("not a member as this site knows them")

// NotifyAlive implements memberlist.AliveDelegate: members are this site and those that
// it trusts, with nothing about them that could be false.
func (g *Gossip) NotifyAlive(n *memberlist.Node) error {
	switch {
	case n.Name != string(g.cfg.Site) && !g.cfg.Trusted(job.SiteID(n.Name)):
		return fmt.Errorf("%.64q: %w", n.Name, errNotTrusted)
	case !n.Addr.Equal(everywhere) || n.Port != everywherePort || len(n.Meta) > 0:
		return fmt.Errorf("%.64q at %v:%d: %w", n.Name, n.Addr, n.Port, errMember)
	case n.PMin > memberlist.ProtocolVersion2Compatible || n.PMax < memberlist.ProtocolVersion2Compatible ||
		n.PCur != memberlist.ProtocolVersion2Compatible || n.DMin != 0 || n.DMax != 0 || n.DCur != 0:
		// One whose versions exclude those of others would end all exchanges.
		return fmt.Errorf("%.64q with versions %d to %d: %w", n.Name, n.PMin, n.PMax, errMember)
	}
	return nil
}

// NotifyMerge implements memberlist.MergeDelegate.
func (g *Gossip) NotifyMerge(nodes []*memberlist.Node) error {
	for _, n := range nodes {
		if err := g.NotifyAlive(n); err != nil {
			return err
		}
	}
	return nil
}

// NodeMeta implements memberlist.Delegate.
func (g *Gossip) NodeMeta(int) []byte { return nil }

// NotifyMsg implements memberlist.Delegate. Notes do not come this way: see guard.takes.
func (g *Gossip) NotifyMsg([]byte) {}

// MergeRemoteState implements memberlist.Delegate. The state does not come this way.
func (g *Gossip) MergeRemoteState([]byte, bool) {}

// GetBroadcasts implements memberlist.Delegate.
func (g *Gossip) GetBroadcasts(overhead, limit int) [][]byte {
	return g.queue.take(overhead, limit)
}

// LocalState implements memberlist.Delegate. A site that joins hears of this site only: it
// joins the others, too.
func (g *Gossip) LocalState(join bool) []byte {
	g.mu.Lock()
	b, err := proto.Marshal(&kithv1.GossipState{Notes: g.own})
	g.mu.Unlock()
	if err != nil {
		return nil
	}
	if !join {
		b = append(b, g.digests.state()...) // messages that follow each other are one
	}
	return b
}

// takeNotes takes notes that came over a lane.
func (g *Gossip) takeNotes(l *lane, notes [][]byte) {
	for _, b := range notes {
		site, d, err := g.digests.take(b)
		if !g.took(l, site, d, b, err) {
			return
		}
	}
}

// takeState takes what a site knows.
func (g *Gossip) takeState(l *lane, b []byte) {
	var s kithv1.GossipState
	err := proto.Unmarshal(b, &s)
	if n := len(s.GetNotes()); err != nil || n > 2*cluster.MaxSites {
		g.took(l, "", nil, nil, refusedNote("state", fmt.Sprint(n, " notes"), fmt.Sprint("at most ", 2*cluster.MaxSites)))
		return
	}
	for _, m := range s.GetNotes() {
		b, err := proto.Marshal(m)
		if err != nil {
			continue
		}
		site, d, err := g.digests.takeNote(m, b)
		if !g.took(l, site, d, b, err) {
			return
		}
	}
}

// took passes on what is news and tells of it, and counts what was refused. It returns
// false if the lane has ended behind a note that was refused.
func (g *Gossip) took(l *lane, site job.SiteID, d *cluster.Digest, b []byte, err error) bool {
	switch {
	case errors.Is(err, errDigest):
		g.refused.Add(1)
		g.refuse(l.site, err)
		select {
		case <-time.After(refusalPause):
		case <-l.done:
			return false
		}
	case err != nil:
	case d == nil:
		g.pass(site, b, "key")
		if b = g.digests.early(site); b != nil {
			g.takeNotes(l, [][]byte{b})
		}
	default:
		g.pass(site, b, "digest")
		g.tell(d)
	}
	return true
}

// tell tells of a digest, unless a later one of the site came meanwhile.
func (g *Gossip) tell(d *cluster.Digest) {
	g.seen.Lock()
	defer g.seen.Unlock()
	if !g.digests.latest(d) {
		return
	}
	seen := *d
	if seen.Head = nil; d.Head != nil && g.cfg.Head != nil {
		g.cfg.Head(d.Site, d.Head)
	}
	g.cfg.Seen(seen)
}

// logWriter makes log lines of memberlist debug records.
type logWriter struct{ log *slog.Logger }

// Write implements io.Writer.
func (w logWriter) Write(p []byte) (int, error) {
	w.log.Debug("memberlist", "text", job.ClipReason(strings.TrimSpace(string(p))))
	return len(p), nil
}
