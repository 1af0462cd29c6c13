package raftstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"kith/internal/durable"
	"kith/internal/job"
	"kith/store/boltstore"
	"kith/store/raftstore/leads"
)

// foundedAt is the place in the log at which the facts of a site are that was founded with some:
// that of the entry that names the members, which the snapshot stands for.
const foundedAt = 1

// UnfinishedName ends the name of a folder beside a member's while [FoundWith] makes that. What a process
// has left there that died is nothing yet.
const UnfinishedName = ".new"

// FoundWith is [Found] with this member alone, for a site that has facts already. The folder is
// there once all of it is, or not at all.
func FoundWith(cfg Config, facts *boltstore.Image) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(cfg.Folder); err == nil {
		return fmt.Errorf("folder %s: %w", cfg.Folder, ErrFounded)
	}
	whole := cfg.Folder
	cfg.Folder = whole + UnfinishedName
	if err := os.RemoveAll(cfg.Folder); err != nil { // of a process that died
		return err
	}
	if err := foundWith(cfg, facts); err != nil {
		return errors.Join(err, os.RemoveAll(cfg.Folder))
	}
	if err := os.Rename(cfg.Folder, whole); err != nil {
		return err
	}
	return durable.SyncFolder(filepath.Dir(whole))
}

func foundWith(cfg Config, facts *boltstore.Image) error {
	if err := Found(cfg, []Peer{cfg.Peer}); err != nil {
		return err
	}
	path := filepath.Join(cfg.Folder, "facts.first.db")
	if err := writeImage(facts, path, cfg.Site); err != nil {
		return err
	}
	replica, err := boltstore.OpenReplica(path, cfg.Site)
	if err != nil {
		return err
	}
	err = replica.Update(func(tx *boltstore.ReplicaTx) error { return tx.SetPosition(leads.Position{Index: foundedAt}.Marshal()) })
	var first *boltstore.Image
	if err == nil {
		first, err = replica.Image()
	}
	if err == nil {
		err = errors.Join(writeFirst(&cfg, first), first.Close())
	}
	return errors.Join(err, replica.Close(), os.Remove(path))
}

// writeFirst puts a snapshot in the place of the entry that [Found] has written: a log without it
// would be sent to other members as all that there is.
func writeFirst(cfg *Config, image *boltstore.Image) error {
	f, err := openFiles(cfg)
	if err != nil {
		return err
	}
	_, names := raft.NewInmemTransport(cfg.serverAddress()) // it is asked how it writes addresses
	sink, err := f.snapshots.Create(raft.SnapshotVersionMax, foundedAt, foundedAt, raft.Configuration{
		Servers: []raft.Server{{ID: raft.ServerID(cfg.Name), Address: cfg.serverAddress()}},
	}, foundedAt, names)
	if err != nil {
		return errors.Join(err, f.close())
	}
	s := &snapshot{whose: snapshotHead{site: cfg.Site, cluster: cfg.Cluster}, image: image}
	if err := s.Persist(sink); err != nil {
		return errors.Join(err, sink.Cancel(), f.close())
	}
	if err := sink.Close(); err != nil {
		return errors.Join(err, f.close())
	}
	return errors.Join(f.log.DeleteRange(foundedAt, foundedAt), f.close())
}

// Image returns the facts as this member has them now. It must be closed before the member is.
func (m *Member) Image() (image *boltstore.Image, err error) {
	err = m.machine.read(func(facts *boltstore.Replica) error {
		image, err = facts.Image()
		return err
	})
	return image, err
}

// Image is [Member.Image]: while this lead stands it has all that was committed.
func (l *Lead) Image() (*boltstore.Image, error) { return l.m.Image() }

// Dissolve writes the facts of a site to a file at path, which must not be there: its folder's last member
// is given, which is not open. It fails with [ErrMembership] while there are other members, as they may know more.
func Dissolve(ctx context.Context, cfg Config, path string) (err error) {
	m, err := Open(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	for _, have := range m.Members() {
		if have.Name != cfg.Name {
			return fmt.Errorf("member %s at %s is one of the site's: %w; remove it first, and the others", have.Name, have.Address, ErrMembership)
		}
	}
	if len(m.Members()) == 0 {
		return fmt.Errorf("member %s is none of a site: %w", cfg.Name, ErrMembership)
	}
	if _, err := m.Lead(ctx); err != nil { // from then on it has all that was ever committed
		return err
	}
	image, err := m.Image()
	if err != nil {
		return err
	}
	return errors.Join(writeImage(image, path, cfg.Site), image.Close())
}

// writeImage makes a durable file of facts.
func writeImage(image *boltstore.Image, path string, site job.SiteID) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = image.WriteTo(f)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	facts, err := boltstore.Settle(path, site)
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	_, err = facts.Load()
	if err = errors.Join(err, facts.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
