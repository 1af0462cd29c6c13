package raftstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"kith/internal/job"
	"kith/store/raftstore/raftlog"
)

// Bounds.
const (
	// MaxMembers is how many members a site may have, one that is about to replace another included.
	MaxMembers = 6
	// maxName is the most bytes of a member's name, and maxAddress of its address.
	maxName    = 63
	maxAddress = 255
	// enqueue is how long a batch waits to be taken by raft.
	enqueue = 10 * time.Second
)

// Errors of members.
var (
	// ErrName is returned when a member's name or address cannot be one.
	ErrName = errors.New("a member is a name of letters, digits and dashes, and host:port")
	// ErrNotLeading is returned when only the member that leads can do it.
	ErrNotLeading = errors.New("only the member that leads can do that")
	// ErrMembership is returned when the members of the site cannot be changed so.
	ErrMembership = errors.New("the members cannot be changed so")
	// ErrClosed is returned by a member that was closed.
	ErrClosed = errors.New("member is closed")
	// ErrFounded is returned by [Found] for a folder that is in use.
	ErrFounded = errors.New("the folder has a member's log already")
)

// Cluster is the id of the members of a site, drawn when they are first brought together. Who
// gives another one is refused.
type Cluster [16]byte

// NewCluster draws an id.
func NewCluster() (c Cluster) {
	rand.Read(c[:])
	return c
}

// Peer is a member and where the others dial it.
type Peer struct{ Name, Address string }

// serverAddress is how raft knows a member: with its name, so that whoever is dialled can be
// asked whether it is the one.
func (p Peer) serverAddress() raft.ServerAddress { return raft.ServerAddress(p.Name + "@" + p.Address) }

func parseAddress(a raft.ServerAddress) Peer {
	name, address, _ := strings.Cut(string(a), "@")
	return Peer{name, address}
}

func (p Peer) validate() error {
	switch {
	case p.Name == "" || len(p.Name) > maxName || strings.Trim(p.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "":
		return fmt.Errorf("member %q: %w, the name of at most %d bytes", p.Name, ErrName, maxName)
	case len(p.Address) > maxAddress:
		return fmt.Errorf("address of member %s has %d bytes, at most %d are taken: %w", p.Name, len(p.Address), maxAddress, ErrName)
	}
	if host, port, err := net.SplitHostPort(p.Address); err != nil || host == "" || port == "" {
		return fmt.Errorf("address %q of member %s: %w", p.Address, p.Name, ErrName)
	}
	return nil
}

// Config says which member this is and how it reaches the others.
type Config struct {
	// Site is the site whose facts the members keep.
	Site job.SiteID
	// Cluster is the id of its members.
	Cluster Cluster
	// Peer is this member.
	Peer
	// Folder is where it keeps its files; it is made if need be. No other process may use it.
	Folder string
	// Listener is where the others' connections come in. The member closes it. The connections
	// are authenticated already: the greeting on them finds mistakes, not enemies.
	Listener net.Listener
	// Dial connects to another member.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Heartbeat is how long the others wait for a sign of the leader before one of them stands
	// for election, once to twice; the leader steps down when it has not heard of a majority for
	// two thirds of it. 750 ms if it is 0; at least 50 ms. More, if machines are often busy for that long.
	Heartbeat time.Duration
	// SnapshotEntries is after how many entries of the log a snapshot is made, 8192 if it is
	// 0; also after 64 MiB of them.
	SnapshotEntries uint64
	// TrailingEntries is how many entries stay behind a snapshot, so that a member that was
	// away for a short time needs none; 2048 if it is 0.
	TrailingEntries uint64
	// Now is the clock by which the generation of a new site is told, [time.Now] if it is nil.
	Now func() time.Time
	// Logger gets warnings and worse, if it is not nil.
	Logger *slog.Logger

	// For tests: what the log is wrapped in, and how many bytes are free on its disk.
	wrapLog func(raft.LogStore) raft.LogStore
	free    func() (int64, error)
}

// snapshotBytes is after how many bytes of entries a snapshot is made.
const snapshotBytes = 64 << 20

func (c *Config) withDefaults() (Config, error) {
	d := *c
	if _, err := job.ParseSiteID(string(d.Site)); err != nil {
		return d, fmt.Errorf("site %q: %w", d.Site, err)
	}
	if err := d.validate(); err != nil {
		return d, err
	}
	if d.Cluster == (Cluster{}) {
		return d, fmt.Errorf("member %s has no id of its cluster: %w", d.Name, ErrMembership)
	}
	if d.Heartbeat == 0 {
		d.Heartbeat = 750 * time.Millisecond
	}
	if d.Heartbeat < 50*time.Millisecond {
		return d, fmt.Errorf("heartbeat %v of member %s: at least 50ms", d.Heartbeat, d.Name)
	}
	if d.SnapshotEntries == 0 {
		d.SnapshotEntries = 8192
	}
	if d.TrailingEntries == 0 {
		d.TrailingEntries = 2048
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	return d, nil
}

func (c *Config) identity() raftlog.Identity {
	return raftlog.Identity{Site: c.Site, Cluster: c.Cluster, Member: c.Name}
}

// raftConfig is the library's configuration.
func (c *Config) raftConfig() *raft.Config {
	r := raft.DefaultConfig()
	r.LocalID = raft.ServerID(c.Name)
	r.HeartbeatTimeout, r.ElectionTimeout, r.LeaderLeaseTimeout = c.Heartbeat, c.Heartbeat, c.Heartbeat*2/3
	r.CommitTimeout = max(c.Heartbeat/15, time.Millisecond)
	r.SnapshotThreshold, r.TrailingLogs = c.SnapshotEntries, c.TrailingEntries
	r.SnapshotInterval = 20 * time.Second
	r.ShutdownOnRemove = false // what was removed waits to be closed
	r.NoLegacyTelemetry = true
	r.Logger = newLogger(c.Logger)
	return r
}
