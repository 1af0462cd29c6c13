package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kith/cmd/kithd/config"
	"kith/internal/cli"
	"kith/internal/durable"
	"kith/internal/job"
	"kith/store"
	"kith/store/backup"
	"kith/store/boltstore"
	"kith/store/raftstore"
)

// Restored is what came back from a backup.
type Restored struct {
	backup.Head
	// Folder is the generation with which the site goes on.
	Folder string `json:"folder"`
	// Ended have ended, Held wait for a word of their users, Elsewhere go on at other sites, Lost
	// ran at this one: jobs and bags.
	Ended     int `json:"ended"`
	Held      int `json:"held"`
	Elsewhere int `json:"elsewhere"`
	Lost      int `json:"lost"`
}

// mayBeThere is what a data folder may have to which facts are restored: what belongs to the site
// and is in no backup.
func mayBeThere() []string { return []string{"keys", saltName, "blobs", "audit"} }

// errNotEmpty is returned for a data folder that has something else.
var errNotEmpty = errors.New("facts are restored into an empty data folder")

// Restore makes a data folder of a backup: that of a site of one machine or, if the configuration
// names one, of the first member of a site of several. What has become of jobs since the backup nobody knows: see
// [store.RecoverSite].
func Restore(cfg config.Config, file string, now time.Time) (r Restored, err error) {
	if err := closeFolder(cfg.Data, slog.New(slog.DiscardHandler)); err != nil {
		return r, err
	}
	list, err := os.ReadDir(cfg.Data)
	if err != nil {
		return r, err
	}
	facts := filepath.Join(cfg.Data, boltstore.FileName)
	made := facts + ".new"
	// What a process has left that died restoring: it is made anew.
	left := []string{filepath.Base(made), config.MembersFolder + raftstore.UnfinishedName}
	for _, e := range list {
		if !slices.Contains(mayBeThere(), e.Name()) && !slices.Contains(left, e.Name()) {
			return r, fmt.Errorf("%s: %w, which has %v alone; this one has %s: move the folder away, make an empty one and copy those into it",
				cfg.Data, errNotEmpty, mayBeThere(), e.Name())
		}
	}
	for _, name := range left {
		if err := os.RemoveAll(filepath.Join(cfg.Data, name)); err != nil {
			return r, err
		}
	}
	if r.Head, err = backup.Extract(file, job.SiteID(cfg.Site), made); err != nil {
		return r, err
	}
	if err := r.recover(cfg, made, now); err != nil {
		return r, errors.Join(err, os.RemoveAll(made))
	}
	return r, durable.SyncFolder(cfg.Data)
}

// recover changes facts to those with which the site goes on, and gives them their place.
func (r *Restored) recover(cfg config.Config, made string, now time.Time) error {
	facts, err := boltstore.Settle(made, job.SiteID(cfg.Site))
	if err != nil {
		return err
	}
	if err := r.apply(facts, now); err != nil {
		return errors.Join(err, facts.Close())
	}
	if cfg.Members.Self == "" {
		if err := facts.Close(); err != nil {
			return err
		}
		return os.Rename(made, filepath.Join(cfg.Data, boltstore.FileName))
	}
	image, err := facts.Image()
	if err == nil {
		err = errors.Join(raftstore.FoundWith(raftConfig(&cfg, slog.New(slog.DiscardHandler)), image), image.Close())
	}
	if err = errors.Join(err, facts.Close()); err != nil {
		return err
	}
	salt := saltFile{path: filepath.Join(cfg.Data, saltName)}
	_, err = salt.get() // every member has it
	return errors.Join(err, os.Remove(made))
}

func (r *Restored) apply(facts *boltstore.Store, now time.Time) error {
	state, err := facts.Load()
	if err != nil {
		return err
	}
	before := make(map[job.ID]bool) // that have not ended
	for j := range state.OpenJobs(job.ID{}) {
		before[j.ID] = true
	}
	generation := laterGeneration(state.Site().Generation, now)
	if err := state.Apply(store.RecoverSite{
		Generation: generation, Actor: "kithd restore", Reason: store.RecoverReason(r.Made), Time: max(job.Instant(now), state.Site().Latest),
	}); err != nil {
		return err
	}
	r.Folder = job.GenerationText(generation)
	for j := range state.Jobs(job.ID{}) {
		switch {
		case !before[j.ID]:
			r.Ended++
		case j.State == job.OnHold:
			r.Held++
		case j.State.Terminal():
			r.Lost++
		default:
			r.Elsewhere++
		}
	}
	for b := range state.Bags {
		switch {
		case b.State.Terminal():
			r.Ended++
		case b.State == job.BagOnHold:
			r.Held++
		default:
			r.Elsewhere++
		}
	}
	return facts.Seal(state).Commit()
}

func (r *Restored) text(cfg *config.Config) string {
	return fmt.Sprintf("site %s is restored from its backup of %s, as generation %s\n"+
		"%d jobs and bags have ended, %d are held, %d are at other sites, %d ran here and are lost\n"+
		"Start it. Its jobs that are held may have run since: kith queue, then kith release or kith cancel each.\n",
		cfg.Site, r.Made.Local().Format(time.DateTime), r.Folder, r.Ended, r.Held, r.Elsewhere, r.Lost)
}

// restoreVerb is "kithd restore".
func restoreVerb(p *cli.Program, path *string) *cobra.Command {
	asRoot := false
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Make a data folder of a backup", Args: cobra.ExactArgs(1),
		Long: "restore makes the facts of a site of FILE, which kith site backup has written, after its data folder was lost. The\n" +
			"data folder must be empty but for the site's keys and, if there are copies, history.salt, blobs and audit. With members.self it makes\n" +
			"the first member of a site of several machines.\n\n" +
			"Nobody knows what was done since the backup, so nothing that may have been done is done again by itself: jobs\n" +
			"that waited are held, what had begun at other sites goes on if it is there still, what ran here is lost. The site has a\n" +
			"new generation, by which other sites learn that what it held for them is gone.",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := mayRun(os.Geteuid(), asRoot, os.Getenv(asRootVariable)); err != nil {
				return err
			}
			cfg, err := config.Load(*path)
			if err != nil {
				return badConfig(err)
			}
			r, err := Restore(cfg, args[0], time.Now())
			if errors.Is(err, fs.ErrPermission) {
				return fmt.Errorf("%w; run this as the user that runs kithd", err)
			}
			if err != nil {
				return err
			}
			return p.Print(r, func() string { return r.text(&cfg) })
		},
	}
	cmd.Flags().BoolVar(&asRoot, "as-root", false, "make it for a kithd that runs as root")
	return cmd
}
