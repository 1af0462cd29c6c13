package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"kith/cmd/kithd/config"
	"kith/internal/pathkind"
	"kith/sitesched/executor"
)

// What kithd looks at before it starts a site: who it runs as, which users its data folder is
// open to, and whether it has the descriptors that its processors take.

// asRootVariable says, with the value 1, what the flag --as-root says. Versions that do
// not know the flag ignore it.
const asRootVariable = "KITH_AS_ROOT"

// errRoot is returned when kithd runs as root and was not told that this is meant.
var errRoot = errors.New("kithd runs as root, and so would every job of every user who reaches this site or a peer of it; " +
	"run it as a user of its own (docs/examples/kithd.service), or say --as-root, or " + asRootVariable + "=1, if this is meant")

// mayRun refuses to run as root by accident.
func mayRun(uid int, asRoot bool, variable string) error {
	if uid == 0 && !asRoot && variable != "1" {
		return errRoot
	}
	return nil
}

// closeFolder makes the data folder one that its owner alone can enter: it has what
// users submitted, their environments too.
func closeFolder(dir string, log *slog.Logger) error {
	if err := pathkind.Folder(dir); err != nil {
		return fmt.Errorf("data folder: %w, or name another folder", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data folder %s: %w", dir, err)
	}
	st, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("data folder %s: %w", dir, err)
	}
	mode := st.Mode().Perm()
	if owner, ok := st.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("data folder %s belongs to uid %d, kithd runs as uid %d: give it to the user that runs kithd (chown), or choose another folder",
			dir, owner.Uid, os.Geteuid())
	}
	if mode&0o077 == 0 || !st.IsDir() {
		return nil
	}
	if err := os.Chmod(dir, mode&0o700); err != nil { //nolint:gosec // it takes rights away
		return fmt.Errorf("data folder %s has mode %#o and is open to other users, who could read what is submitted here: %w; make it 0700", dir, mode, err)
	}
	if st, err = os.Stat(dir); err != nil || st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("data folder %s stays open to other users after chmod 0700: %w; choose a folder on a local disk", dir, errors.Join(fs.ErrPermission, err))
	}
	log.Warn("data folder was open to other users and was closed to them", "folder", dir, "mode", fmt.Sprintf("%#o", mode))
	return nil
}

// filesPerJob is how many descriptors a running job takes.
const filesPerJob = 2

// withinDescriptors returns a configuration that offers no more processors than there
// are descriptors for jobs of one processor each, and says loudly if that is fewer than
// it was told. A part stays for connections, files under way and the database.
func withinDescriptors(cfg config.Config, limit uint64, log *slog.Logger) config.Config {
	const most = 512
	processors := uint64(cfg.Processors())
	own := min(most, limit/2)
	fit := max(1, (limit-own)/filesPerJob)
	if processors <= fit {
		return cfg
	}
	log.Error("too few file descriptors for the processors of this site; it offers fewer", "limit", limit,
		"processors", processors, "offered", fit,
		"remedy", fmt.Sprintf("allow at least %d: LimitNOFILE= in the unit, ulimit -Hn in a shell", processors*filesPerJob+most))
	cfg.Scheduler.Processors = int32(fit) //nolint:gosec // it is less than what was there
	return cfg
}

// descriptors returns how many descriptors this process may have. The Go runtime has
// raised the soft limit to the hard one; programs that it executes have the old one.
func descriptors() uint64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 1 << 20
	}
	if l.Cur < l.Max {
		if raised := (unix.Rlimit{Cur: l.Max, Max: l.Max}); unix.Setrlimit(unix.RLIMIT_NOFILE, &raised) == nil {
			l = raised
		}
	}
	return l.Cur
}

// hideMemory keeps the keys in this process out of core files and from tracers. Where an
// ordinary user's jobs get user namespaces it cannot: their maps of users are written
// through /proc, which the kernel gives to root for a process that is hidden.
func (d *Daemon) hideMemory() {
	for _, c := range d.runs.Capabilities() {
		if c.Name == executor.CapUserNamespace && c.Available {
			d.log.Info("keys may get into a core file of kithd", "meaning", "jobs get user namespaces, which need a process that can be dumped",
				"remedy", "LimitCORE=0 in the unit of kithd, which holds for jobs too")
			return
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		d.log.Warn("keys may get into a core file of kithd", "error", err.Error())
	}
}
