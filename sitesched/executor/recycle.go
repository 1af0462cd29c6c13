package executor

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"kith/sitesched/executor/shim"
)

// spare is a folder that waits for its next attempt.
type spare struct {
	path string
	seen stamps
}

// stamps are the times at which the contents of a folder last changed in any
// way: content, mode, owner, attributes. A process cannot set those. The last
// one is when a name came into the folder itself or left it, since a rename of
// the folder counts as any change.
type stamps [5]int64

// contents are what the stamps of a folder stand for, in order.
func contents() [4]string {
	return [4]string{workName, tmpName, shim.StdoutName, shim.StderrName}
}

// stampGrain is how coarse the kernel's file times may be, with a margin. A
// change within it of an earlier one may not show.
const stampGrain = 50 * time.Millisecond

// recycle makes the folder of an attempt a spare, and reports false if it is
// not worth it: the job left something there, or changed what is there. What
// one job did must not be seen by the next.
func (f *folders) recycle(name string) bool {
	f.mu.Lock()
	enough := len(f.spares) >= mostSpares
	seen, known := f.handedOut[name]
	delete(f.handedOut, name)
	f.mu.Unlock()
	path := f.path(name)
	if enough || !ownFolder(path) {
		return false
	}
	now, ok := stampsOf(path)
	if !ok {
		return false
	}
	if !known || now != seen {
		if !asMade(path) {
			return false
		}
		// Trusted next time only if a later change must show.
		if now, ok = stampsOf(path); !ok || !settled(now) {
			now = stamps{}
		}
	}
	f.leasing.Lock()
	defer f.leasing.Unlock()
	if blank(path+"/"+shim.RecordName, shim.BlankRecord()) != nil {
		return false
	}
	// One that runs under a lease comes next, or soon. What does not, reads none.
	err := blank(path+"/"+shim.LeaseName, shim.BlankLease())
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return false
	}
	s := spare{path: f.next(spareName), seen: now}
	if os.Rename(path, s.path) != nil {
		return false
	}
	f.keep(s)
	return true
}

// ownFolder reports whether no one was given rights on the folder itself.
func ownFolder(path string) bool {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Mode != unix.S_IFDIR|0o700 || st.Nlink > 4 {
		return false
	}
	return plainAttributes(path)
}

// stampsOf reads the stamps of a folder's contents; that of a missing stream is zero.
func stampsOf(path string) (stamps, bool) {
	var s stamps
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return s, false
	}
	s[4] = st.Mtim.Nano()
	for i, name := range contents() {
		switch err := unix.Lstat(path+"/"+name, &st); {
		case err == nil:
			s[i] = st.Ctim.Nano()
		case !errors.Is(err, unix.ENOENT):
			return s, false
		}
	}
	return s, true
}

func settled(s stamps) bool {
	latest := time.Now().Add(-stampGrain).UnixNano()
	for _, t := range s {
		if t > latest {
			return false
		}
	}
	return true
}

// asMade reports whether two empty folders with this user's rights alone, the
// streams, the record and the lease are all that is in the folder. Streams to which the
// job wrote are removed, and so is the caller's mark, whatever has become of it.
func asMade(path string) bool {
	if !emptyFolders(path) {
		return false
	}
	for _, entry := range names(path) {
		switch entry {
		case workName, tmpName, shim.RecordName, shim.LeaseName, shim.StdoutName, shim.StderrName:
		case markName:
			if unix.Unlink(filepath.Join(path, markName)) != nil {
				return false
			}
		default:
			return false
		}
	}
	for _, stream := range []string{shim.StdoutName, shim.StderrName} {
		stream = filepath.Join(path, stream)
		if untouched(stream, unix.S_IFREG|0o600) {
			continue
		}
		if err := unix.Unlink(stream); err != nil && !errors.Is(err, unix.ENOENT) {
			return false
		}
	}
	return true
}

// emptyFolders reports whether the work and tmp folders in the folder of an attempt are as
// they were made.
func emptyFolders(path string) bool {
	for _, dir := range []string{workName, tmpName} {
		dir = filepath.Join(path, dir)
		if !untouched(dir, unix.S_IFDIR|0o700) || len(names(dir)) > 0 {
			return false
		}
	}
	return true
}

// untouched reports whether path still has the type and mode it was made with,
// belongs to this user, has no second name, no content if it is a file, no
// access list or other attribute, and no flag such as immutable.
func untouched(path string, mode uint32) bool {
	var st unix.Statx_t
	const want = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_NLINK | unix.STATX_UID | unix.STATX_GID | unix.STATX_SIZE
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, want, &st) != nil {
		return false
	}
	const flags = unix.STATX_ATTR_IMMUTABLE | unix.STATX_ATTR_APPEND | unix.STATX_ATTR_NODUMP
	if uint32(st.Mode) != mode || int(st.Uid) != unix.Geteuid() || int(st.Gid) != unix.Getegid() || st.Attributes&flags != 0 {
		return false
	}
	if mode&unix.S_IFMT == unix.S_IFREG && (st.Nlink != 1 || st.Size != 0) {
		return false
	}
	return plainAttributes(path)
}

// plainAttributes reports whether path has no extended attributes. SELinux
// labels every file; a job has no say in that.
func plainAttributes(path string) bool {
	var list [128]byte
	n, err := unix.Llistxattr(path, list[:])
	return errors.Is(err, unix.ENOTSUP) || err == nil && (n == 0 || string(list[:n]) == "security.selinux\x00")
}

// blank writes over a record or a lease so that it says nothing. One that is not of the
// size, or not as it was made, is an error.
func blank(path string, blank []byte) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && (st.Mode != unix.S_IFREG|0o600 || st.Nlink != 1 || st.Size != int64(len(blank))) {
		err = errNotAsMade
	}
	if err == nil {
		_, err = unix.Pwrite(fd, blank, 0)
	}
	return errors.Join(err, unix.Close(fd))
}

var errNotAsMade = errors.New("not as it was made")

// names lists a folder. One that cannot be listed has an unexpected name.
func names(dir string) []string {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return []string{"?"}
	}
	defer func() { _ = unix.Close(fd) }()
	var list []string
	buf := make([]byte, 2048)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil {
			return []string{"?"}
		}
		if n == 0 || len(list) > 16 {
			return list
		}
		_, _, list = unix.ParseDirent(buf[:n], -1, list)
	}
}
