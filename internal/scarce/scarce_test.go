package scarce

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

func TestWhatIsScarce(t *testing.T) {
	for _, c := range []struct {
		err                       error
		out, full, passes, ofHost bool
	}{
		{nil, false, false, false, false},
		{errors.New("too many open files"), false, false, false, false},
		{fs.ErrNotExist, false, false, false, false},
		{syscall.ENOENT, false, false, false, false},
		{syscall.EMFILE, true, false, true, true},
		{syscall.ENFILE, true, false, true, true},
		{syscall.ENOMEM, true, false, true, true},
		{syscall.EAGAIN, true, false, true, true},
		{syscall.ENOSPC, false, true, true, false},
		{syscall.EDQUOT, false, true, true, false},
		{syscall.EROFS, false, false, true, true},
		{syscall.EIO, false, false, false, true},
	} {
		wrapped := c.err
		if wrapped != nil {
			wrapped = fmt.Errorf("collect: %w", &os.PathError{Op: "open", Path: "x", Err: c.err})
		}
		for _, err := range []error{c.err, wrapped} {
			if Out(err) != c.out || Full(err) != c.full || Passes(err) != c.passes || OfHost(err) != c.ofHost {
				t.Errorf("%v: Out %v, Full %v, Passes %v, OfHost %v", err, Out(err), Full(err), Passes(err), OfHost(err))
			}
		}
	}
	if got := Errno(&os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}); got != syscall.EMFILE.Error() {
		t.Errorf("Errno: %q", got)
	}
}
