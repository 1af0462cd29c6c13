package work

import (
	"errors"
	"syscall"
)

// IsHostTrouble reports whether an error says that the machine is out of something
// that has nothing to do with one job: descriptors, processes, memory, or a disk that
// can be written to. Whether a full disk is one depends on who filled it; see
// syscall.ENOSPC where it matters.
func IsHostTrouble(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.EROFS, syscall.EIO,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
