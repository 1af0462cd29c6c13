package members

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"kith/internal/loglines"
	"kith/internal/pause"
	"kith/store/blobstore"
)

const (
	// pooled is how many connections to a member are kept for requests about chunks.
	pooled = 4
	// repairEvery is how often the leader sees to it that the others have what it has.
	repairEvery = time.Minute
	// keepTime bounds how long a put waits for a majority.
	keepTime = 15 * time.Second
)

// Copies keeps chunks at a majority of the members of a site, while one of them leads. It is the
// [blobstore.Copies] of the leader's store. It is safe for use by several goroutines.
type Copies struct {
	// Others returns the names of the other members that vote, and of those that do not. This
	// one votes.
	Others func() (voters, rest []string)
	// Dial begins a call for chunks with a member.
	Dial func(ctx context.Context, name string) (net.Conn, error)
	Log  *slog.Logger

	mu   sync.Mutex
	idle map[string][]net.Conn // nil once it is closed
	ends bool
	// round is what [Copies.Repair] does once; nil while it does not run.
	round func(ctx context.Context, but string) (failed map[string]error, err error)
	pace  loglines.Pacer[string]
}

var _ blobstore.Copies = (*Copies)(nil)

// on has f called with a connection to a member.
func (c *Copies) on(ctx context.Context, name string, f func(net.Conn) error) error {
	c.mu.Lock()
	var conn net.Conn
	if list := c.idle[name]; len(list) > 0 {
		conn, c.idle[name] = list[len(list)-1], list[:len(list)-1]
	}
	c.mu.Unlock()
	if conn != nil {
		err := f(conn)
		if !broken(err) {
			c.putBack(name, conn)
			return err
		}
		conn.Close() //nolint:errcheck // it may have waited too long; there is a new one
	}
	conn, err := c.Dial(ctx, name)
	if err != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	err = f(conn)
	if broken(err) {
		conn.Close() //nolint:errcheck // nobody speaks on it any more
		return fmt.Errorf("member %s: %w", name, err)
	}
	c.putBack(name, conn)
	return err
}

// broken reports whether a connection cannot be used any more after an error.
func broken(err error) bool {
	if _, refused := errors.AsType[*refusal](err); refused {
		return false
	}
	return err != nil && !errors.Is(err, blobstore.ErrNotFound)
}

func (c *Copies) putBack(name string, conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends || len(c.idle[name]) >= pooled {
		conn.Close() //nolint:errcheck // it is one too many
		return
	}
	if c.idle == nil {
		c.idle = make(map[string][]net.Conn)
	}
	c.idle[name] = append(c.idle[name], conn)
}

// Close ends the connections.
func (c *Copies) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = true
	for _, list := range c.idle {
		for _, conn := range list {
			conn.Close() //nolint:errcheck // nobody speaks on it any more
		}
	}
	c.idle = nil
}

// Keep implements [blobstore.Copies]: it returns when a majority of the members have the chunks
// durably. The rest get them a little later.
func (c *Copies) Keep(from *blobstore.Store, sums []blobstore.Sum) error {
	voters, _ := c.Others()
	need := most(voters)
	if need == 0 || len(sums) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), keepTime)
	told := make(chan error, len(voters))
	var all sync.WaitGroup
	for _, name := range voters {
		all.Go(func() { told <- c.give(ctx, from, name, sums) })
	}
	go func() { // the slower ones are not cut off
		all.Wait()
		cancel()
	}()
	var errs []error
	for range voters {
		err := <-told
		if err == nil {
			need--
		} else {
			errs = append(errs, err)
		}
		if need == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: %w", blobstore.ErrCopies, errors.Join(errs...))
}

// most is how many of the other voters make a majority with this one.
func most(voters []string) int { return (len(voters) + 1) / 2 }

// give has a member have chunks.
func (c *Copies) give(ctx context.Context, from *blobstore.Store, name string, sums []blobstore.Sum) error {
	for len(sums) > 0 {
		some := sums[:min(len(sums), maxSums)]
		sums = sums[len(some):]
		if err := c.on(ctx, name, func(conn net.Conn) error { return giveOn(conn, askHave, from, some) }); err != nil {
			return err
		}
	}
	return nil
}

// giveOn asks which chunks are missing, and gives those.
func giveOn(conn net.Conn, letter byte, from *blobstore.Store, sums []blobstore.Sum) error {
	answer, err := ask(conn, letter, joined(sums))
	if err != nil {
		return err
	}
	missing, err := sumsOf(answer)
	if err != nil {
		return err
	}
	for _, sum := range missing {
		data, err := from.Get(sum)
		if errors.Is(err, blobstore.ErrNotFound) {
			if letter == askList {
				continue // swept meanwhile
			}
			return &refusal{fmt.Sprintf("chunk %s is not here any more", sum.Short())}
		}
		if err != nil {
			return &refusal{err.Error()}
		}
		if _, err := ask(conn, askPut, data); err != nil {
			return err
		}
	}
	return nil
}

// Bring implements [blobstore.Copies]: it returns a chunk that another member has.
func (c *Copies) Bring(sum blobstore.Sum) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), keepTime)
	defer cancel()
	voters, rest := c.Others()
	var away []error
	for _, name := range append(voters, rest...) {
		var data []byte
		err := c.on(ctx, name, func(conn net.Conn) (err error) {
			data, err = ask(conn, askGet, sum[:])
			return err
		})
		switch {
		case err == nil && blobstore.SumOf(data) == sum:
			return data, nil
		case err != nil && !errors.Is(err, blobstore.ErrNotFound):
			away = append(away, err)
		}
	}
	if len(away) > 0 { // one of these may have it
		return nil, fmt.Errorf("chunk %s: %w: %w", sum.Short(), blobstore.ErrCopies, errors.Join(away...))
	}
	return nil, fmt.Errorf("chunk %s: no member has it: %w", sum.Short(), blobstore.ErrNotFound)
}

// Repair sees to it, until ctx is done, that this member has the chunks that records name, and
// the others what this one has; what it does not have and is old, goes there.
func (c *Copies) Repair(ctx context.Context, from *blobstore.Store, live iter.Seq2[blobstore.Sum, error]) {
	c.setRound(func(ctx context.Context, but string) (map[string]error, error) { return c.repair(ctx, from, live, but) })
	defer c.setRound(nil)
	for {
		failed, err := c.repair(ctx, from, live, "")
		for _, name := range slices.Sorted(maps.Keys(failed)) {
			err = errors.Join(err, failed[name])
		}
		if err != nil && ctx.Err() == nil {
			if held, ok := c.pace.Pass("repair", time.Now(), 10*repairEvery); ok {
				c.Log.Warn("not every member of the site has every file; tried again", "error", err.Error(), "held_back", held)
			}
		}
		if !pause.For(ctx, repairEvery) {
			return
		}
	}
}

func (c *Copies) setRound(round func(ctx context.Context, but string) (map[string]error, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.round = round
}

// Level has the others have what this member has, now. With one, which has just come, it must have all;
// but for one, which is to go, a majority of the rest must.
func (c *Copies) Level(ctx context.Context, with, but string) error {
	c.mu.Lock()
	round := c.round
	c.mu.Unlock()
	if round == nil {
		return fmt.Errorf("files are not looked after here at the moment: %w", blobstore.ErrCopies)
	}
	failed, err := round(ctx, but)
	if err != nil {
		return fmt.Errorf("%w: %w", blobstore.ErrCopies, err)
	}
	if err := failed[with]; err != nil {
		return fmt.Errorf("%w: %w", blobstore.ErrCopies, err)
	}
	need := most(c.votersBut(but))
	var errs []error
	for _, name := range c.votersBut(but) {
		if err := failed[name]; err != nil {
			errs = append(errs, err)
		} else {
			need--
		}
	}
	if need > 0 {
		return fmt.Errorf("%w: %w", blobstore.ErrCopies, errors.Join(errs...))
	}
	return nil
}

func (c *Copies) votersBut(but string) []string {
	voters, _ := c.Others()
	return slices.DeleteFunc(voters, func(name string) bool { return name == but })
}

// repair does so once, but for a member. It returns for which others it has failed, and an error if this member
// itself may not have all.
func (c *Copies) repair(ctx context.Context, from *blobstore.Store, live iter.Seq2[blobstore.Sum, error], but string) (failed map[string]error, err error) {
	for sum, err := range live {
		if err == nil && !from.Has(sum) {
			_, err = from.Get(sum) // which brings it
			if errors.Is(err, blobstore.ErrNotFound) {
				err = nil // no member has it: the host of its job may still bring it
			}
		}
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	failed = make(map[string]error)
	voters, rest := c.Others()
	for _, name := range append(voters, rest...) {
		if name == but {
			continue
		}
		if err := c.mirror(ctx, from, name); err != nil {
			failed[name] = err
		}
	}
	return failed, nil
}

// mirror gives a member all that is here and has it sweep the rest.
func (c *Copies) mirror(ctx context.Context, from *blobstore.Store, name string) error {
	conn, err := c.Dial(ctx, name) // one of its own: the list is that of a connection
	if err != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	defer conn.Close()                                      //nolint:errcheck // nobody speaks on it any more
	stop := context.AfterFunc(ctx, func() { conn.Close() }) //nolint:errcheck // it ends the requests
	defer stop()
	var some []blobstore.Sum
	tell := func() error {
		err := giveOn(conn, askList, from, some)
		some = some[:0]
		return err
	}
	for sum := range from.All() {
		if some = append(some, sum); len(some) == maxSums {
			if err := tell(); err != nil {
				return fmt.Errorf("member %s: %w", name, err)
			}
		}
	}
	if err := tell(); err != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	if _, err := ask(conn, askSweep, nil); err != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	return nil
}
