package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/internal/job"
	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
)

// dialer keeps a stream to one site, unless that site dials here.
type dialer struct {
	site    job.SiteID
	address string
	stop    context.CancelFunc
}

// Dial keeps a stream up to a site at host:port from now on. Another address
// for the same site replaces the first.
func (l *Links) Dial(site job.SiteID, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.dialers[site]; old != nil {
		if old.address == address {
			return
		}
		old.stop()
		delete(l.dialers, site)
	}
	if site == l.cfg.Site || address == "" || l.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(l.ctx)
	d := &dialer{site: site, address: address, stop: stop}
	l.dialers[site] = d
	l.wg.Go(func() {
		defer stop()
		l.keepDialling(ctx, d)
	})
}

// keepDialling dials whenever there is no stream. The site of the higher name
// leaves the first move to the other, so that two sites that begin together
// do not end up with two streams.
func (l *Links) keepDialling(ctx context.Context, d *dialer) {
	const first = 100 * time.Millisecond
	wait := first
	if l.cfg.Site > d.site && !pause.For(ctx, 5*first) {
		return
	}
	for {
		if s := l.session(d.site); s != nil {
			select {
			case <-s.done:
				wait = first
			case <-ctx.Done():
				return
			}
		}
		began := time.Now()
		up, err := l.dial(ctx, d)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > 10*time.Second {
			wait = first // it had been up
		}
		if err != nil && !errors.Is(err, ErrDuplicate) && status.Code(err) != codes.AlreadyExists {
			l.note(d, up, err)
			l.log.Debug("dialling peer failed", "peer_id", string(d.site), "address", d.address, "error", shown(err.Error()), "retry_in", wait.String())
		}
		// Jitter keeps many sites from dialling one that comes back all at once.
		if !pause.For(ctx, wait/2+rand.N(wait)) {
			return
		}
		wait = min(2*wait, l.cfg.Redial)
	}
}

// note keeps in mind why there is no stream. One that was up has ended: only what
// the other side says of a clash is news.
func (l *Links) note(d *dialer, up bool, err error) {
	st, _ := status.FromError(err)
	switch {
	case strings.Contains(st.Message(), ErrClash.Error()):
		_, text, _ := strings.Cut(st.Message(), ErrClash.Error()+": ")
		l.troubles.toldOfClash(l.cfg.Site, d.site, text)
	case !up:
		if text := st.Message(); strings.Contains(text, ErrBehind.Error()) || strings.Contains(text, ErrFolder.Error()) {
			l.troubles.toldOfFolder(d.site, text)
		}
		l.troubles.failed(d, err)
	}
}

// dial brings up one stream and carries it to its end. up says whether it came as
// far as the greeting of the right site.
func (l *Links) dial(ctx context.Context, d *dialer) (up bool, err error) {
	conn, err := grpc.NewClient("passthrough:///"+d.address, l.cfg.DialOptions...)
	if err != nil {
		return false, fmt.Errorf("dial %s at %s: %w", d.site, d.address, err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, err := kithv1.NewPeerServiceClient(conn).Connect(ctx)
	if err != nil {
		return false, fmt.Errorf("dial %s at %s: %w", d.site, d.address, err)
	}
	w := clientWire{g}
	err = w.send(&kithv1.Frame{Messages: []*kithv1.PeerMessage{l.hello(d.site)}})
	if err != nil && !errors.Is(err, io.EOF) { // with EOF, receiving says why
		return false, fmt.Errorf("dial %s at %s: %w", d.site, d.address, err)
	}
	answer := time.AfterFunc(HelloWait, cancel)
	first, err := w.recv()
	answer.Stop()
	if err != nil {
		return false, fmt.Errorf("dial %s at %s: %w", d.site, d.address, err)
	}
	hello, err := l.greet(first)
	if err == nil && hello.GetSiteId() != string(d.site) {
		err = fmt.Errorf("it is %s: %w", hello.GetSiteId(), ErrOtherSite)
	}
	if err != nil {
		return false, fmt.Errorf("dial %s at %s: %w", d.site, d.address, err)
	}
	return true, l.run(ctx, w, hello, true, d.address)
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
