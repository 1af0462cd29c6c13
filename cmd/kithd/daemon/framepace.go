package daemon

import (
	"net"
	"time"

	"kith/cmd/kithd/frames"
	"kith/internal/job"
	"kith/meta/trust/audit"
)

// What rates.frames is divided by for other bounds of frames.
const (
	// framesTogether is the part of a second whose frames may come together. They are waited
	// for, so that an honest sender loses nothing, and what comes together others wait for.
	framesTogether = 10
	// streamsOfPeer is how many calls a peer can begin in a second, of which it needs one
	// as long as its connection lasts. A call costs much more than the frame that begins it.
	streamsOfPeer = 200
)

// refusedCost is what a call without a good token costs more than its frames, in frames: to
// look at it and to answer is most of what a stranger can have a site do.
const refusedCost = 20

// firstCall is how long a connection that came may be without a call that is let in.
const firstCall = 5 * time.Second

// framePace bounds how many frames of HTTP/2 are read of an address, and of a peer wherever
// it comes from. gRPC answers most kinds of frames itself, before any other bound.
type framePace struct {
	of *buckets[lane]
	// met is told that a connection waits, or is closed for sending nothing but frames that
	// bring nothing; site is empty for users. It must not wait.
	met func(site job.SiteID, address string, closed bool)
}

func newFramePace(perSecond int, met func(job.SiteID, string, bool)) *framePace {
	return &framePace{newBucketsOf[lane](perSecond, max(1, perSecond/framesTogether)), met}
}

// conn returns a connection on which no frame was read yet, with a pace: that of a site, or
// of a user. This site may have dialled it.
func (p *framePace) conn(c net.Conn, site job.SiteID, dialled bool) *frames.Conn {
	host := hostOf(c.RemoteAddr())
	of, begins := lane{caller: host}, 0
	if site != "" {
		of, begins = lane{peer: site}, max(1, p.of.perSecond/streamsOfPeer)
	}
	first := firstCall
	if dialled {
		first = 0
	}
	return frames.Pace(c, frames.Bounds{
		Bucket: p.of.bucketOf(of, time.Now()), Begins: begins, Dialled: dialled, Calls: !dialled, First: first, Idle: p.of.atOnce,
		Met: func(closed bool) { p.met(site, host, closed) },
	})
}

// refused takes what a refused call costs of the address that it came from.
func (p *framePace) refused(host string) {
	now := time.Now()
	p.of.bucketOf(lane{caller: host}, now).ReserveN(now, refusedCost)
}

// metFrames writes down, in both logs, that a sender met a bound of frames.
func (d *Daemon) metFrames(site job.SiteID, address string, closed bool) {
	bound := "frames in a second"
	if closed {
		bound = "frames that bring nothing"
		if d.port != nil { // which it dialled, or will
			now := time.Now()
			d.port.pace.owe(address, now, d.port.comebacks.closed(address, now))
		}
	}
	d.audit.Refuse(audit.Entry{Kind: "refused-bound", Rule: bound, Peer: string(site), From: address})
	d.border.line(bound, address, d.cfg.Rates.Frames)
}
