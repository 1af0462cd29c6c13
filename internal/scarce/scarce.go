// Package scarce tells an error of the machine, which has run out of something for
// now, from one that is about what was asked for.
//
// What the machine lacks says nothing about a job: such an error is neither an
// outcome nor a lost output. A site that meets it tries again, for as long as the job's
// origin lets it, or gives the work back.
package scarce

import (
	"errors"
	"syscall"
)

var (
	// room is what others of the machine, or of this process, have for now.
	room = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN}
	full = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT}
	bad  = []syscall.Errno{syscall.EROFS, syscall.EIO}
)

// Out reports whether an error says that the machine is out of descriptors, processes
// or memory.
func Out(err error) bool { return is(err, room) }

// Full reports whether an error says that a disk or a quota of the system has no room.
func Full(err error) bool { return is(err, full) }

// Passes reports whether an error says that the machine has run out of something that
// it will have again, a disk that can be written to among them. EIO is none of these: a
// block that cannot be read stays so.
func Passes(err error) bool { return Out(err) || Full(err) || errors.Is(err, syscall.EROFS) }

// OfHost reports whether an error says that the machine is out of something that has
// nothing to do with one job, so that another machine may do better: descriptors,
// processes, memory, or a disk that works. Whether a full disk is one depends on who
// filled it; see [Full] where it matters.
func OfHost(err error) bool { return Out(err) || is(err, bad) }

// Errno returns the text of the system's error in err, without the paths around it.
func Errno(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}

func is(err error, list []syscall.Errno) bool {
	for _, errno := range list {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
