package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"kith/cmd/kithd/config"
)

// atOnce is how many sites are made or started, and how many invitations are redeemed, at
// a time.
const atOnce = 8

// startSecure makes the keys of all sites, starts them and has each pair join.
func (f *Federation) startSecure(ctx context.Context) error {
	for i := range f.cfg.Sites {
		n, err := f.prepare(i)
		if err != nil {
			return err
		}
		f.nodes = append(f.nodes, n)
	}
	if err := inParallel(f.nodes, func(n *Node) error { return n.makeKeys(ctx) }); err != nil {
		return err
	}
	if err := inParallel(f.nodes, func(n *Node) error { return n.startForGood(ctx) }); err != nil {
		return err
	}
	return inParallel(f.pairs(), func(p pair) error { return p.join(ctx) })
}

// inParallel does something for each of a list and returns the errors.
func inParallel[T any](list []T, do func(T) error) error {
	errs := make([]error, len(list))
	places := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, one := range list {
		places <- struct{}{}
		wg.Go(func() {
			errs[i] = do(one)
			<-places
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// startForGood starts the site and writes down its port, at which the others will know it.
func (n *Node) startForGood(ctx context.Context) error {
	if err := n.Start(ctx); err != nil {
		return err
	}
	if err := writeConfig(filepath.Join(n.dir, "kithd.toml"), n.Config, n.program.unknown); err != nil {
		return fmt.Errorf("site %s: %w", n.Name, err)
	}
	return nil
}

// makeKeys runs "kithd init" for the site. One that has keys already, in a folder that is
// used again, keeps them and its port, at which the others know it.
func (n *Node) makeKeys(ctx context.Context) error {
	path := filepath.Join(n.dir, "kithd.toml")
	switch _, err := os.Stat(n.Config.KeysPath()); {
	case err == nil:
		before, err := config.Load(path)
		if err != nil {
			return fmt.Errorf("site %s: %s has keys of an earlier run, but no configuration that goes with them; take another folder: %w", n.Name, n.dir, err)
		}
		n.Config.Listen.Address = before.Listen.Address
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("site %s: %w", n.Name, err)
	}
	// Its configuration is replaced by the site's own when it starts.
	text, err := n.program.run(ctx, "init", "--site", n.Name, "--data", n.dir, "--listen", n.Config.Listen.Address, "--config", path)
	if err != nil {
		return fmt.Errorf("site %s: kithd init: %w: %s", n.Name, err, bytes.TrimSpace(text))
	}
	return nil
}

// MakesKeys returns why a kithd of an earlier version makes no keys for a site, nil if it
// does.
func MakesKeys(ctx context.Context, path string) (err error) {
	dir, err := os.MkdirTemp("", "kith-keys-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p := program{path: path}
	text, err := p.run(ctx, "init", "--site", "trial", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--config", filepath.Join(dir, "kithd.toml"))
	if err != nil {
		return fmt.Errorf("kithd init: %w: %s", err, bytes.TrimSpace(text))
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "keys")); err != nil {
		return fmt.Errorf("kithd init: %w", err)
	}
	return nil
}

// Target is what kith --site takes to ask the site: its socket if it has one, as with keys, else its address.
func (n *Node) Target() string {
	if path := n.Config.SocketPath(); path != "" {
		return "unix:" + path
	}
	return n.Address
}
