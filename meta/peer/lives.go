package peer

import (
	"errors"
	"fmt"
	"slices"

	"kith/cluster"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// Errors of a site that is not what it was.
var (
	// ErrBehind is returned when a site runs on an older state of its data folder
	// than it had: what it has said since it does not know.
	ErrBehind = errors.New("site runs on an old state of its data folder")
	// ErrFolder is returned when another data folder of a site has the generation of
	// this one: ids of jobs would mean two things.
	ErrFolder = errors.New("two data folders of a site have the same generation")
)

// mostFolders bounds how many data folders of a site are remembered.
const mostFolders = 8

// lives are the data folders that sites had, as they said when they connected.
type lives map[job.SiteID][]folder

// folder is a data folder with the latest start on it that was seen.
type folder struct {
	name        store.Folder
	generation  uint32
	incarnation uint64
	run         uint64 // of the daemon that this start is, see Hello.daemon
}

// meet notes the folder of a site that connects, or says why it is refused. What is
// known is as old as this daemon. A site of a version that does not name its folder
// is let through; the folder gets another name when a later version opens it again.
func (l *lives) meet(h *kithv1.Hello) error {
	if len(h.GetFolder()) == 0 {
		site := job.SiteID(h.GetSiteId())
		if known, ok := (*l)[site]; ok {
			(*l)[site] = slices.DeleteFunc(known, func(f folder) bool { return f.generation == h.GetGeneration() })
		}
		return nil
	}
	var name store.Folder
	if copy(name[:], h.GetFolder()) != len(h.GetFolder()) || len(h.GetFolder()) != len(name) {
		return fmt.Errorf("hello: a folder of %d bytes: %w", len(h.GetFolder()), ErrMessage)
	}
	site := job.SiteID(h.GetSiteId())
	known := (*l)[site]
	i := slices.IndexFunc(known, func(f folder) bool { return f.name == name })
	switch {
	case i >= 0 && (h.GetIncarnation() < known[i].incarnation || h.GetIncarnation() == known[i].incarnation && h.GetDaemon() != known[i].run):
		return fmt.Errorf("site %s: %w: another daemon was here that began on it later, or began on a copy of it. Its jobs may run twice: stop it; "+
			"give it the latest state of its data folder or an empty folder, or `kith site forget %s` at every other site to have it as it is",
			site, ErrBehind, site)
	case i >= 0:
		known[i].incarnation, known[i].run = h.GetIncarnation(), h.GetDaemon()
		return nil
	case slices.ContainsFunc(known, func(f folder) bool { return f.generation == h.GetGeneration() }):
		return fmt.Errorf("site %s, generation %s: %w: stop the site that came last and start it with an empty data folder",
			site, job.GenerationText(h.GetGeneration()), ErrFolder)
	}
	if *l == nil {
		*l = make(lives)
	}
	if len(known) == 0 && len(*l) >= cluster.MaxSites {
		return nil
	}
	known = append(known, folder{name, h.GetGeneration(), h.GetIncarnation(), h.GetDaemon()})
	if len(known) > mostFolders {
		known = slices.Delete(known, 0, 1)
	}
	(*l)[site] = known
	return nil
}

// Forget forgets which data folders a site had: its operator has decided that it goes
// on with whichever it has now.
func (l *Links) Forget(site job.SiteID) {
	l.troubles.mu.Lock()
	defer l.troubles.mu.Unlock()
	delete(l.troubles.lives, site)
}
