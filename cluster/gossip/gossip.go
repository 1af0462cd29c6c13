package gossip

import (
	"encoding/binary"
	"fmt"
	"log"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
	"google.golang.org/protobuf/proto"

	"kith/cluster"
	"kith/cluster/wire"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// maxDigestBytes is the longest encoded digest that is taken or sent.
const maxDigestBytes = 1200

// Config configures a [Gossip].
type Config struct {
	Site job.SiteID
	// Listen is host:port, for TCP and UDP. It is not used with a Transport.
	Listen string
	// Join are host:port of members to begin with.
	Join []string
	// Transport replaces memberlist's own sockets; nil for those.
	Transport memberlist.Transport
	// Seen learns of every digest of another site that is news here. It must not block.
	Seen func(cluster.Digest)
	// Tune adjusts memberlist's WAN settings; nil leaves them.
	Tune   func(*memberlist.Config)
	Logger *slog.Logger
}

// Gossip is a member. It is safe for use by several goroutines.
type Gossip struct {
	cfg   Config
	list  *memberlist.Memberlist
	queue *memberlist.TransmitLimitedQueue

	mu      sync.Mutex
	digests map[job.SiteID]cluster.Digest

	stop chan struct{}
	wg   sync.WaitGroup
}

// Start becomes a member and joins the others, in the background and again
// and again until one answers.
func Start(cfg Config) (*Gossip, error) {
	g := &Gossip{cfg: cfg, digests: make(map[job.SiteID]cluster.Digest), stop: make(chan struct{})}
	mc := memberlist.DefaultWANConfig()
	mc.Name = string(cfg.Site)
	mc.Delegate = g
	mc.Alive = g
	mc.LogOutput = nil
	mc.Logger = log.New(logWriter{cfg.Logger}, "", 0)
	if cfg.Transport != nil {
		mc.Transport = cfg.Transport
	} else if err := bind(mc, cfg.Listen); err != nil {
		return nil, err
	}
	if cfg.Tune != nil {
		cfg.Tune(mc)
	}
	// memberlist calls the delegate while it is being made.
	g.queue = &memberlist.TransmitLimitedQueue{RetransmitMult: mc.RetransmitMult, NumNodes: g.members}
	list, err := memberlist.Create(mc)
	if err != nil {
		return nil, fmt.Errorf("gossip at %s: %w", cfg.Listen, err)
	}
	g.mu.Lock()
	g.list = list
	g.mu.Unlock()
	g.wg.Go(g.keepJoining)
	return g, nil
}

func bind(mc *memberlist.Config, listen string) error {
	host, portText, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("gossip.listen %q: %w", listen, err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return fmt.Errorf("gossip.listen %q: %w", listen, err)
	}
	mc.BindAddr, mc.BindPort, mc.AdvertisePort = host, int(port), int(port)
	return nil
}

// Address returns where the member listens.
func (g *Gossip) Address() string {
	n := g.list.LocalNode()
	return net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port)))
}

func (g *Gossip) members() int {
	g.mu.Lock()
	list := g.list
	g.mu.Unlock()
	if list == nil {
		return 1
	}
	return list.NumMembers()
}

// How soon joining is tried again: while a member to begin with is out of reach
// twice as late each time, and then once in a while.
const (
	firstJoinPause = 200 * time.Millisecond
	mostJoinPause  = 10 * time.Second
	rejoinPause    = time.Minute
)

// keepJoining joins all members to begin with, and again for ever: that one of
// them was reached does not mean that others are in touch with those that were
// not, and after a long partition both sides have given each other up.
func (g *Gossip) keepJoining() {
	if len(g.cfg.Join) == 0 {
		return
	}
	retry := firstJoinPause
	for {
		pause := rejoinPause
		if n, err := g.list.Join(g.cfg.Join); n < len(g.cfg.Join) {
			g.cfg.Logger.Debug("gossip join failed", "reached", n, "of", len(g.cfg.Join), "error", err)
			pause, retry = retry, min(2*retry, mostJoinPause)
		} else {
			retry = firstJoinPause
		}
		select {
		case <-time.After(pause):
		case <-g.stop:
			return
		}
	}
}

// Advertise spreads this site's own digest.
func (g *Gossip) Advertise(d cluster.Digest) {
	g.mu.Lock()
	g.digests[d.Site] = d
	g.mu.Unlock()
	g.spread(&d)
}

func (g *Gossip) spread(d *cluster.Digest) {
	data, err := proto.Marshal(wire.DigestMessage(d))
	if err != nil || len(data) > maxDigestBytes {
		g.cfg.Logger.Warn("digest not sent", "site_id", string(d.Site), "bytes", len(data))
		return
	}
	g.queue.QueueBroadcast(&broadcast{site: d.Site, data: data})
}

// Close leaves the others and ends.
func (g *Gossip) Close() error {
	close(g.stop)
	g.wg.Wait()
	if err := g.list.Leave(time.Second); err != nil {
		g.cfg.Logger.Debug("gossip leave failed", "error", err.Error())
	}
	return g.list.Shutdown()
}

// broadcast is a digest on its way; a newer one of the same site replaces it.
type broadcast struct {
	site job.SiteID
	data []byte
}

// Invalidates implements memberlist.Broadcast.
func (b *broadcast) Invalidates(other memberlist.Broadcast) bool {
	o, ok := other.(*broadcast)
	return ok && o.site == b.site
}

// Message implements memberlist.Broadcast.
func (b *broadcast) Message() []byte { return b.data }

// Finished implements memberlist.Broadcast.
func (b *broadcast) Finished() {}

// NotifyAlive implements memberlist.AliveDelegate: members are sites.
func (g *Gossip) NotifyAlive(n *memberlist.Node) error {
	_, err := job.ParseSiteID(n.Name)
	return err
}

// NodeMeta implements memberlist.Delegate.
func (g *Gossip) NodeMeta(int) []byte { return nil }

// NotifyMsg implements memberlist.Delegate: a broadcast came.
func (g *Gossip) NotifyMsg(b []byte) {
	if d, ok := g.learn(b); ok {
		g.spread(&d)
	}
}

// GetBroadcasts implements memberlist.Delegate.
func (g *Gossip) GetBroadcasts(overhead, limit int) [][]byte {
	return g.queue.GetBroadcasts(overhead, limit)
}

// learn takes an encoded digest and reports whether it is news.
func (g *Gossip) learn(b []byte) (cluster.Digest, bool) {
	d, err := decode(b)
	if err != nil || d.Site == g.cfg.Site {
		return d, false
	}
	g.mu.Lock()
	old, known := g.digests[d.Site]
	news := !known && len(g.digests) < cluster.MaxSites || known && d.Newer(&old)
	if news {
		g.digests[d.Site] = d
	}
	g.mu.Unlock()
	if news {
		g.cfg.Seen(d)
	}
	return d, news
}

func decode(b []byte) (cluster.Digest, error) {
	if len(b) > maxDigestBytes {
		return cluster.Digest{}, fmt.Errorf("digest of %d bytes, at most %d", len(b), maxDigestBytes)
	}
	var m kithv1.LoadDigest
	if err := proto.Unmarshal(b, &m); err != nil {
		return cluster.Digest{}, err
	}
	return wire.Digest(&m)
}

// LocalState implements memberlist.Delegate: all digests, each behind its length.
func (g *Gossip) LocalState(bool) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b []byte
	for _, site := range slices.Sorted(maps.Keys(g.digests)) {
		d := g.digests[site]
		data, err := proto.Marshal(wire.DigestMessage(&d))
		if err == nil {
			b = append(binary.AppendUvarint(b, uint64(len(data))), data...)
		}
	}
	return b
}

// MergeRemoteState implements memberlist.Delegate.
func (g *Gossip) MergeRemoteState(b []byte, _ bool) {
	for len(b) > 0 {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return // broken or hostile; what came before it was good
		}
		g.learn(b[used : used+int(n)])
		b = b[used+int(n):]
	}
}

// logWriter makes log lines of memberlist debug records.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(p []byte) (int, error) {
	w.log.Debug("memberlist", "text", strings.TrimSpace(string(p)))
	return len(p), nil
}
