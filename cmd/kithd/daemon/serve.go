package daemon

import (
	"time"

	"google.golang.org/grpc"
)

// Options are parts that a site may be given. The zero Options are those of kithd.
type Options struct {
	// Host schedules and runs work; empty for Kith's own way.
	Host Host
	// Known returns other sites that are admitted at the start if the trust table does
	// not have their names; nil for none. Sites without keys do not ask it.
	Known func() []Known
	// Tokens verifies the tokens of users; nil for those that the site made itself.
	Tokens Tokens

	// lead is what a member of a site gives it that leads; nil for a site of one.
	lead *leadParts
}

// serve sets going what listens.
func (d *Daemon) serve() {
	if d.socket != nil {
		go func() { d.served <- d.server.Serve(d.socket) }()
	}
	if d.figuresAt != nil {
		go func() { d.served <- d.figures.Serve(d.figuresAt) }()
	}
	if d.identity == nil {
		go func() { d.served <- d.server.Serve(d.listener) }()
		return
	}
	d.hideMemory()
	d.wg.Go(func() { d.keepKeys(d.background) })
	d.wg.Go(func() { d.keepGossipTrusted(d.background) })
	d.wg.Go(func() { d.desk.settle(d.background) })
	go func() { d.served <- d.port.run() }()
	go func() { d.served <- d.server.Serve(d.port.users) }()
	go func() { d.served <- d.peerside.Serve(d.port.peers) }()
}

// stopServing ends what listens, and all calls. Streams of peers and watchers never end
// by themselves; others have so long.
func (d *Daemon) stopServing(patience time.Duration) {
	servers := []*grpc.Server{d.server}
	if d.port != nil {
		servers = append(servers, d.peerside)
		d.listener.Close()
		d.port.close()
	}
	if d.figures != nil {
		_ = d.figures.Close()
	}
	stopped := make(chan struct{})
	go func() {
		for _, s := range servers {
			s.GracefulStop()
		}
		close(stopped)
	}()
	d.links.Close()
	select {
	case <-stopped:
	case <-time.After(patience):
		for _, s := range servers {
			s.Stop()
		}
		<-stopped
	}
}
