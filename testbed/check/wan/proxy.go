package wan

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Errors of steering a proxy.
var (
	// ErrNoLink is returned when no link fits the sites that were named.
	ErrNoLink = errors.New("no link is between these sites")
	// ErrOneWayReset is returned by Cut: a reset is seen by both sides.
	ErrOneWayReset = errors.New("a cut with resets cannot be one-way")
	// ErrBadValue is returned when a delay or a rate is out of range.
	ErrBadValue = errors.New("the value is out of range")
)

// A Mode is what a cut does to connections.
type Mode int

const (
	// Blackhole lets connections hang, old ones and new ones, as a broken
	// route does; they go on after the heal.
	Blackhole Mode = iota
	// Reset ends connections and refuses new ones, as a firewall does.
	Reset
)

// A Proxy is a running network. Its methods may be called from any goroutine.
type Proxy struct {
	links   []*link
	control *control
}

// Start listens for all links and for commands. It returns [ErrBadConfig] or
// an error of listening, and then nothing is left running. log may be nil. The
// caller closes the proxy.
func Start(config Config, log *slog.Logger) (*Proxy, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	config = config.withDefaults()
	p := &Proxy{}
	for i, c := range config.Links {
		l, err := newLink(c, config, uint64(i), log)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.links = append(p.links, l)
	}
	if config.Control != "" {
		c, err := newControl(config.Control, p.Do, log)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.control = c
	}
	for _, l := range p.links {
		l.start()
	}
	if p.control != nil {
		p.control.start()
	}
	return p, nil
}

// Close ends all connections with resets and returns when nothing runs any more.
func (p *Proxy) Close() error {
	var errs []error
	if p.control != nil {
		errs = append(errs, p.control.close())
	}
	for _, l := range p.links {
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}

// Addr returns where the first link from one site to another listens.
func (p *Proxy) Addr(from, to string) (net.Addr, error) {
	for _, l := range p.links {
		if l.config.From == from && l.config.To == to {
			return l.listener.Addr(), nil
		}
	}
	return nil, fmt.Errorf("%s %s: %w", from, to, ErrNoLink)
}

// ControlAddr returns where commands are taken; nil if nowhere.
func (p *Proxy) ControlAddr() net.Addr {
	if p.control == nil {
		return nil
	}
	return p.control.listener.Addr()
}

// Cut stops the bytes that scope selects. With [Blackhole] nothing passes any
// more when it returns (W2); with [Reset], every connection of every link that
// scope touches has been reset. It returns [ErrNoLink] or [ErrOneWayReset].
func (p *Proxy) Cut(scope Scope, mode Mode) error {
	if mode == Reset {
		if scope.OneWay {
			return fmt.Errorf("cut %s: %w", scope, ErrOneWayReset)
		}
		return p.eachLink(scope, (*link).reset)
	}
	return p.eachWay(scope, (*way).close)
}

// Heal lets the bytes that scope selects pass again, after whatever cut.
// Healing what is not cut is no error; [ErrNoLink] is.
func (p *Proxy) Heal(scope Scope) error {
	if err := p.eachLink(scope, (*link).heal); err != nil {
		return err
	}
	return p.eachWay(scope, (*way).open)
}

// SetDelay changes the delay of the ways that scope selects, each of them: the
// round trip becomes twice as much. Bytes under way keep theirs. It returns
// [ErrNoLink], or [ErrBadValue] unless d is 0 to 1 min in whole microseconds.
func (p *Proxy) SetDelay(scope Scope, d time.Duration) error {
	if err := checkDelay(d); err != nil {
		return fmt.Errorf("delay %v: %w: %w", d, ErrBadValue, err)
	}
	return p.eachPath(scope, func(path *Path) { path.Delay = d })
}

// SetJitter changes the jitter; the errors are those of [Proxy.SetDelay].
func (p *Proxy) SetJitter(scope Scope, d time.Duration) error {
	if err := checkDelay(d); err != nil {
		return fmt.Errorf("jitter %v: %w: %w", d, ErrBadValue, err)
	}
	return p.eachPath(scope, func(path *Path) { path.Jitter = d })
}

// SetRate changes the bytes a second that the connections of a link share,
// each way; 0 means no limit. It returns [ErrNoLink] or [ErrBadValue].
func (p *Proxy) SetRate(scope Scope, bytesPerSecond int64) error {
	if bytesPerSecond < 0 {
		return fmt.Errorf("rate %d: %w", bytesPerSecond, ErrBadValue)
	}
	return p.eachPath(scope, func(path *Path) { path.BytesPerSecond = bytesPerSecond })
}

// Stats returns what the links are doing, in the order of the configuration.
func (p *Proxy) Stats() []LinkStats {
	stats := make([]LinkStats, len(p.links))
	for i, l := range p.links {
		stats[i] = l.stats()
	}
	return stats
}

// eachWay calls f for the ways that scope selects.
func (p *Proxy) eachWay(scope Scope, f func(*way)) error {
	found := false
	for _, l := range p.links {
		for _, w := range []*way{l.out, l.back} {
			if scope.selects(w.from, w.to) {
				found = true
				f(w)
			}
		}
	}
	if !found {
		return fmt.Errorf("%s: %w", scope, ErrNoLink)
	}
	return nil
}

// eachPath changes the paths of the ways that scope selects.
func (p *Proxy) eachPath(scope Scope, f func(*Path)) error {
	return p.eachWay(scope, func(w *way) { w.change(f) })
}

// eachLink calls f for the links of which scope selects a way.
func (p *Proxy) eachLink(scope Scope, f func(*link)) error {
	found := false
	for _, l := range p.links {
		if scope.selects(l.out.from, l.out.to) || scope.selects(l.back.from, l.back.to) {
			found = true
			f(l)
		}
	}
	if !found {
		return fmt.Errorf("%s: %w", scope, ErrNoLink)
	}
	return nil
}
