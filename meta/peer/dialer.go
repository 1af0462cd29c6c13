package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"kith/internal/job"
	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
)

// dialer keeps a stream to one site, unless that site dials here.
type dialer struct {
	site job.SiteID
	stop context.CancelFunc
	// changed holds a token when there are other addresses.
	changed chan struct{}

	mu sync.Mutex
	// addresses are where the site may be, host:port, the one that led to it last first.
	addresses []string
}

// Dial keeps a stream up to a site from now on, which is at one of some addresses,
// host:port. They take the place of those that were given before; a stream that is up stays.
func (l *Links) Dial(site job.SiteID, addresses ...string) {
	addresses = slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return a == "" })
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.dialers[site]; d != nil {
		d.move(addresses)
		return
	}
	if site == l.cfg.Site || len(addresses) == 0 || l.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(l.ctx)
	d := &dialer{site: site, addresses: addresses, stop: stop, changed: make(chan struct{}, 1)}
	l.dialers[site] = d
	l.wg.Go(func() {
		defer stop()
		l.keepDialling(ctx, d)
	})
}

// Addresses returns where a site is dialled, in the order in which that is tried.
func (l *Links) Addresses(site job.SiteID) []string {
	l.mu.Lock()
	d := l.dialers[site]
	l.mu.Unlock()
	if d == nil {
		return nil
	}
	return d.all()
}

func (d *dialer) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.addresses)
}

// move gives the site other addresses. The one that led to it last stays the first.
func (d *dialer) move(addresses []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := slices.Clone(addresses)
	if len(d.addresses) > 0 {
		next = first(next, d.addresses[0])
	}
	if slices.Equal(next, d.addresses) {
		return
	}
	d.addresses = next
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// worked makes an address that led to the site the first to be tried.
func (d *dialer) worked(address string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addresses = first(slices.Clone(d.addresses), address)
}

// first moves an address to the front of a list, if it is there.
func first(list []string, address string) []string {
	if at := slices.Index(list, address); at > 0 {
		list = slices.Insert(slices.Delete(list, at, at+1), 0, address)
	}
	return list
}

// keepDialling dials whenever there is no stream. The site of the higher name
// leaves the first move to the other, so that two sites that begin together
// do not end up with two streams.
func (l *Links) keepDialling(ctx context.Context, d *dialer) {
	const shortest = 100 * time.Millisecond
	wait := shortest
	if l.cfg.Site > d.site && !pause.For(ctx, 5*shortest) {
		return
	}
	for {
		if s := l.session(d.site); s != nil {
			select {
			case <-s.done:
				wait = shortest
			case <-ctx.Done():
				return
			}
		}
		if lasted := l.round(ctx, d); lasted > 10*time.Second {
			wait = shortest
		}
		if ctx.Err() != nil {
			return
		}
		// Jitter keeps many sites from dialling one that comes back all at once.
		again := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-again.C:
			wait = min(2*wait, l.cfg.Redial)
		case <-d.changed:
			wait = shortest
		case <-ctx.Done():
		}
		again.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// round dials the addresses of a site in turn until one of them leads to it, and carries
// that stream to its end. It returns how long the stream was up.
func (l *Links) round(ctx context.Context, d *dialer) (lasted time.Duration) {
	var failed []miss
	for _, address := range d.all() {
		began := time.Now()
		up, err := l.dial(ctx, d, address)
		if ctx.Err() != nil {
			return 0
		}
		if err != nil {
			l.log.Debug("dialling peer failed", "peer_id", string(d.site), "address", address, "error", shown(err.Error()))
		}
		switch {
		case err == nil, errors.Is(err, ErrDuplicate), status.Code(err) == codes.AlreadyExists:
		case !l.told(d, up, err) && !up:
			failed = append(failed, miss{address, err})
			continue
		}
		if up {
			return time.Since(began)
		}
		return 0
	}
	if len(failed) > 0 && l.session(d.site) == nil {
		l.troubles.failed(d.site, failed, l.remedies())
	}
	return 0
}

// miss is an address that did not lead to the site.
type miss struct {
	address string
	err     error
}

// told takes up what the other side says of this one in an error, and reports whether that
// is a clash of names, which is told elsewhere.
func (l *Links) told(d *dialer, up bool, err error) bool {
	st, _ := status.FromError(err)
	switch text := st.Message(); {
	case strings.Contains(text, ErrClash.Error()):
		_, text, _ := strings.Cut(text, ErrClash.Error()+": ")
		l.troubles.toldOfClash(l.cfg.Site, d.site, text)
		return true
	case up, errors.Is(err, ErrBehind), errors.Is(err, ErrFolder): // refused by this site
	case strings.Contains(text, ErrBehind.Error()), strings.Contains(text, ErrFolder.Error()):
		l.troubles.toldOfFolder(d.site, text)
	}
	return false
}

// dial brings up one stream and carries it to its end. up says whether it came as
// far as the greeting of the right site.
func (l *Links) dial(ctx context.Context, d *dialer, address string) (up bool, err error) {
	options := l.cfg.DialOptions
	if l.cfg.Credentials != nil {
		options = append(slices.Clip(options), grpc.WithTransportCredentials(l.cfg.Credentials(d.site)))
	}
	conn, err := grpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		return false, fmt.Errorf("dial %s at %s: %w", d.site, address, err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, err := kithv1.NewPeerServiceClient(conn).Connect(ctx)
	if err != nil {
		return false, fmt.Errorf("dial %s at %s: %w", d.site, address, err)
	}
	w := clientWire{g}
	err = w.send(&kithv1.Frame{Messages: []*kithv1.PeerMessage{l.hello(d.site)}})
	if err != nil && !errors.Is(err, io.EOF) { // with EOF, receiving says why
		return false, fmt.Errorf("dial %s at %s: %w", d.site, address, err)
	}
	answer := time.AfterFunc(HelloWait, cancel)
	first, err := w.recv()
	answer.Stop()
	if err != nil {
		return false, fmt.Errorf("dial %s at %s: %w", d.site, address, err)
	}
	hello, err := l.greet(first, d.site)
	if err != nil {
		l.tellRefusal(Refusal{What: WhatHello, Address: address, Claimed: claimedIn(first), Err: err})
		return false, fmt.Errorf("dial %s at %s: %w", d.site, address, err)
	}
	if p, ok := peer.FromContext(g.Context()); ok {
		ctx = peer.NewContext(ctx, p) // what proved the other side, see Recheck
	}
	d.worked(address)
	return true, l.run(ctx, w, hello, true, address)
}

type clientWire struct {
	g grpc.BidiStreamingClient[kithv1.ConnectRequest, kithv1.ConnectResponse]
}

func (w clientWire) send(f *kithv1.Frame) error {
	return w.g.Send(&kithv1.ConnectRequest{Frame: f})
}

func (w clientWire) recv() (*kithv1.Frame, error) {
	r, err := w.g.Recv()
	return r.GetFrame(), err
}
