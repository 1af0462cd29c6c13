package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"kith/cmd/kithd/config"
	"kith/internal/durable"
	"kith/internal/job"
	"kith/store"
	"kith/store/boltstore"
	"kith/store/raftstore"
)

// beforeName is behind the name of what a site kept its facts in before it was one of several
// machines, or of one again. It is the state of then and nothing reads it any more.
const beforeName = ".before"

// errRunsHere is returned for a site whose own processors have work under way: another machine, or another
// part of this one, would look for it in vain.
var errRunsHere = errors.New("a site becomes one of several machines, or one again, with nothing that runs at its own processors")

// FoundMember makes the first member of a site. A site of one machine whose facts are in the data
// folder goes on with them, and found is how many jobs it has; it must be stopped. Else it is a new one.
func FoundMember(cfg config.Config) (jobs int, err error) {
	log := slog.New(slog.DiscardHandler)
	if err := closeFolder(cfg.Data, log); err != nil {
		return 0, err
	}
	raft := raftConfig(&cfg, log)
	facts := filepath.Join(cfg.Data, boltstore.FileName)
	if _, err := os.Lstat(facts); errors.Is(err, fs.ErrNotExist) {
		err = raftstore.Found(raft, []raftstore.Peer{raft.Peer})
		if err != nil {
			return 0, err
		}
	} else if jobs, err = foundWith(raft, facts); err != nil {
		return 0, err
	}
	salt := saltFile{path: filepath.Join(cfg.Data, saltName)}
	_, err = salt.get() // every member has it
	return jobs, err
}

// foundWith makes the first member of a site that has facts. It may be called again after a crash.
func foundWith(raft raftstore.Config, facts string) (jobs int, err error) {
	from, err := boltstore.Open(facts, raft.Site)
	if err != nil {
		return 0, err
	}
	state, err := from.Load()
	if err == nil {
		err = nothingRuns(state, "at this machine")
	}
	if err != nil {
		return 0, errors.Join(err, from.Close())
	}
	// With a folder of a member beside it no kithd starts: it is whole, and of these facts.
	if _, err = os.Lstat(raft.Folder); errors.Is(err, fs.ErrNotExist) {
		var image *boltstore.Image
		if image, err = from.Image(); err == nil {
			err = errors.Join(raftstore.FoundWith(raft, image), image.Close())
		}
	}
	if err = errors.Join(err, from.Close()); err != nil {
		return 0, err
	}
	return state.JobCount(), setAside(facts)
}

// nothingRuns says how much runs at a site, and where; nil if nothing does.
func nothingRuns(state *store.State, where string) error {
	n := 0
	for c := range state.Copies() {
		if c.Phase == store.CopyBegun {
			n++
		}
	}
	for _, h := range state.HeldBundles() {
		n += h.Tasks.Count()
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d jobs or tasks run %s: %w; start kithd as it was, `kith drain`, wait until `kith queue --all` and `kith queue --remote` show none that runs here, stop it and try again", n, where, errRunsHere)
}

// nothingRunsBy is [nothingRuns] of a file of facts, of a site that has its processors at a machine.
func nothingRunsBy(facts string, site job.SiteID, machine string) error {
	from, err := boltstore.Open(facts, site)
	if err != nil {
		return err
	}
	state, err := from.Load()
	if err = errors.Join(err, from.Close()); err != nil {
		return err
	}
	return nothingRuns(state, "at machine "+machine)
}

// setAside gives what holds facts of before another name, in place of an older one of the kind.
func setAside(path string) error {
	if err := os.RemoveAll(path + beforeName); err != nil {
		return err
	}
	if err := os.Rename(path, path+beforeName); err != nil {
		return err
	}
	return durable.SyncFolder(filepath.Dir(path))
}

// endTime is how long the last member of a site may take to lead it.
const endTime = time.Minute

// EndMembers makes a site of one machine of its last member, which must be stopped. It may be
// called again after a crash. It refuses, and changes nothing, while anything runs at the site's processors.
func EndMembers(ctx context.Context, cfg config.Config) error {
	log := slog.New(slog.DiscardHandler)
	if err := closeFolder(cfg.Data, log); err != nil {
		return err
	}
	raft := raftConfig(&cfg, log)
	if _, err := os.Lstat(raft.Folder); err != nil {
		return fmt.Errorf("member %s of site %s has nothing of it in its data folder: %w", cfg.Members.Self, cfg.Site, err)
	}
	facts := filepath.Join(cfg.Data, boltstore.FileName)
	if _, err := os.Lstat(facts); err == nil { // with the folder of a member beside it no kithd starts
		return setAside(raft.Folder)
	}
	made := facts + ".new"
	if err := os.RemoveAll(made); err != nil { // of a process that died
		return err
	}
	var err error
	if raft.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	raft.Dial = func(context.Context, string) (net.Conn, error) {
		return nil, errors.New("it is the last member of its site")
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	if err := raftstore.Dissolve(ctx, raft, made); err != nil {
		return fmt.Errorf("member %s: %w", cfg.Members.Self, err)
	}
	if err := nothingRunsBy(made, raft.Site, cfg.Members.Executor); err != nil {
		return fmt.Errorf("member %s: %w", cfg.Members.Self, errors.Join(err, os.RemoveAll(made)))
	}
	if err := os.Rename(made, facts); err != nil {
		return err
	}
	return errors.Join(durable.SyncFolder(cfg.Data), setAside(raft.Folder))
}

// laterGeneration names a folder that is made now in place of one of a generation.
func laterGeneration(earlier uint32, now time.Time) uint32 {
	return max(boltstore.NewGeneration(now), earlier+1)
}
