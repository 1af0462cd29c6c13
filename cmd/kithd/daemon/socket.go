package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ownerOnly gives a unix socket its mode before it has a name, so that nobody else can
// connect, ever. Linux makes the file with the mode of the socket. The process's umask would
// do so too, but it is that of all threads: folders made meanwhile could not be entered.
var ownerOnly = net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
	if e := c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), 0o600) }); e != nil {
		return e
	}
	return err
}}

// listenSocket opens the unix socket at path. Its folder says who may connect: the owner,
// and the folder's group if that may enter the folder; others never.
func listenSocket(path string) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := ownerOnly.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen.socket %q: %w; its folder must be there and belong to the user that runs kithd", path, err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err == nil && info.Mode().Perm()&0o010 != 0 {
		st, ok := info.Sys().(*syscall.Stat_t)
		// A group that kithd is not in cannot be let in; the owner then is alone.
		if ok && os.Chown(path, -1, int(st.Gid)) == nil {
			err = os.Chmod(path, 0o660) //nolint:gosec // the folder's group is meant
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen.socket %q: %w", path, err), l.Close())
		}
	}
	return l, nil
}

// leftOut returns the group of the folder of a socket whose members may enter that and not
// open the socket, as kithd is not in the group; false if there is none.
func leftOut(path string) (gid int, ok bool) {
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil || folder.Mode().Perm()&0o010 == 0 {
		return 0, false
	}
	socket, err := os.Stat(path)
	if err != nil || socket.Mode().Perm()&0o060 != 0 {
		return 0, false
	}
	st, ok := folder.Sys().(*syscall.Stat_t)
	if !ok || int(st.Gid) == os.Getegid() {
		return 0, false
	}
	return int(st.Gid), true
}

// removeStale removes the socket of a kithd that was killed.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("listen.socket %q: %w", path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("listen.socket %q: something else is there; choose another path or remove it", path)
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close() //nolint:errcheck // it was only tried
		return fmt.Errorf("listen.socket %q: another process listens there; stop it or choose another path", path)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("listen.socket %q: %w", path, err)
	}
	return nil
}
