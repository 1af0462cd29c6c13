package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"kith/internal/job"
	"kith/sitesched/work"
)

// An entry of the queue is named by its attempt and a suffix, as a copy may be
// queued anew while what was started for it before is on its way out. Its folder
// holds:
//
//	taken   it was started, or never will be: whoever makes this folder decides
//	pid     of the wrapper
//	called  its turn has come, it waits for a word
//	leave   the word: it is not wanted
//	left    the wrapper has gone

// tend brings the batch system's queue to agree with what the toy was told, and
// returns whose turn has come. y.mu is held.
func (y *toy) tend() (turns []work.Event) {
	queue := toyQueue(y.dir)
	before := slices.Clone(queue)
	stands := make(map[job.AttemptID]bool) // something stands for it
	queue = slices.DeleteFunc(queue, func(name string) bool {
		folder := filepath.Join(y.dir, "entries", name)
		id, err := toyID(name[:strings.LastIndexByte(name, '.')])
		if err != nil {
			y.t.Errorf("toy: %v", err)
		}
		_, waits := y.queued[id]
		stray := y.restored && !waits && y.known[id] == nil && !toyThere(y.path(id, "taken"))
		switch {
		case toyThere(folder, "left"):
			return true
		case toyThere(folder, "leave"):
		case y.dequeued[id] || stray || y.restored && stands[id]:
			if os.Mkdir(filepath.Join(folder, "taken"), 0o700) == nil {
				return true // it never starts
			}
			toyWrite(y.t, filepath.Join(folder, "leave"), "")
		default:
			stands[id] = true
			if toyThere(folder, "called") && y.known[id] == nil {
				turns = append(turns, work.Turn{Attempt: id})
			}
		}
		return false
	})
	clear(y.dequeued)
	now := job.Instant(time.Now())
	for id, notBefore := range y.queued {
		if !stands[id] && notBefore <= now {
			queue = append(queue, y.submit(id))
		}
	}
	for id := range y.known { // what was to run it is gone
		if !stands[id] && !toyThere(y.path(id, "taken")) {
			queue = append(queue, y.submit(id))
		}
	}
	if !slices.Equal(queue, before) {
		toyWrite(y.t, filepath.Join(y.dir, "queue"), strings.Join(append(queue, ""), "\n"))
	}
	for _, name := range before {
		if !slices.Contains(queue, name) {
			entry := filepath.Join(y.dir, "entries", name)
			err := os.RemoveAll(entry)
			for tries := 0; errors.Is(err, syscall.ENOTEMPTY) && tries < 10; tries++ { // what ends there writes a last file
				err = os.RemoveAll(entry)
			}
			if err != nil {
				y.t.Errorf("toy: %v", err)
			}
		}
	}
	return turns
}

// submit makes an entry for an attempt and returns its name.
func (y *toy) submit(id job.AttemptID) string {
	folder, err := os.MkdirTemp(filepath.Join(y.dir, "entries"), toyName(id)+".")
	if err != nil {
		y.t.Errorf("toy: %v", err)
	}
	return filepath.Base(folder)
}
