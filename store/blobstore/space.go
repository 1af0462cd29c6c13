package blobstore

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"kith/internal/scarce"
)

// Usage is how much a store takes and may take, in bytes.
type Usage struct {
	// Chunks counts the chunks.
	Chunks int
	// Bytes is their size, each rounded up to 4 KiB.
	Bytes int64
	// FolderBytes is what was taken with [Store.Reserve].
	FolderBytes int64
	// QuotaBytes is the most both together may become; zero means no limit.
	QuotaBytes int64
	// FreeBytes is what the disk has left for the store's account.
	FreeBytes int64
	// LowWaterBytes is what has to stay free of it.
	LowWaterBytes int64
}

// A ledger counts chunks and bytes. Puts reserve before they write, so that
// concurrent ones cannot pass the quota together.
type ledger struct {
	mu       sync.Mutex
	chunks   int
	used     int64
	reserved int64
	folders  int64 // what lies outside the store on its account, see Store.Reserve
}

// charge is what a chunk of size bytes counts.
func charge(size int64) int64 {
	return (size + blockBytes - 1) / blockBytes * blockBytes
}

// reserve takes need bytes unless used and reserved bytes would pass quota.
// It returns what was taken before.
func (l *ledger) reserve(need, quota int64) (before int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before = l.used + l.reserved + l.folders
	if quota > 0 && before+need > quota {
		return before, false
	}
	l.reserved += need
	return before, true
}

// release gives a reservation back.
func (l *ledger) release(need int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved -= need
}

// add counts a chunk; reserved is the part of its charge that was reserved.
func (l *ledger) add(size, reserved int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.chunks++
	l.used += charge(size)
	l.reserved -= reserved
}

// remove takes a chunk out of the count.
func (l *ledger) remove(size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.chunks--
	l.used -= charge(size)
}

// pending is what is reserved and not yet written.
func (l *ledger) pending() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reserved
}

// Reserve takes size bytes for a folder beside the store out of the quota, until
// release is called. With force it takes them even if the quota is used up: they have
// been written already. Errors: [ErrQuota], [ErrDiskFull].
func (s *Store) Reserve(size int64, force bool) (release func(), err error) {
	if !force {
		if err := s.reserve(size); err != nil {
			return nil, err
		}
		s.ledger.release(charge(size))
	}
	s.ledger.addFolder(charge(size))
	return sync.OnceFunc(func() {
		s.ledger.addFolder(-charge(size))
		s.released.Add(1)
	}), nil
}

// addFolder counts what lies outside the store.
func (l *ledger) addFolder(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.folders += bytes
}

// Usage returns how much the store takes now.
func (s *Store) Usage() Usage {
	u := Usage{QuotaBytes: s.config.QuotaBytes, LowWaterBytes: s.config.LowWaterBytes}
	if disk, err := statDisk(s.lock); err == nil {
		u.FreeBytes = disk.freeBytes
	}
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	u.Chunks, u.Bytes, u.FolderBytes = s.ledger.chunks, s.ledger.used, s.ledger.folders
	return u
}

// Room returns nil if n more bytes fit, else what a put would return
// ([ErrQuota], [ErrDiskFull]). It reserves nothing: it is for refusing a long
// transfer before it begins.
func (s *Store) Room(n int64) error {
	if err := s.reserve(n); err != nil {
		return err
	}
	s.ledger.release(charge(n))
	return nil
}

// reserve takes the charge of size bytes out of the quota and checks the disk.
// The caller gives it back with ledger.release or turns it into a chunk.
//
// When there is no room it has the store's owner sweep what is not needed, so that
// garbage refuses nothing.
func (s *Store) reserve(size int64) error {
	const tries = 3 // others may take what was freed
	err := s.tryReserve(size)
	for try := 0; err != nil && try < tries && s.config.Reclaim != nil && s.config.Reclaim(); try++ {
		err = s.tryReserve(size)
	}
	return err
}

// tryReserve is reserve without a sweep.
func (s *Store) tryReserve(size int64) error {
	need := charge(size)
	used, ok := s.ledger.reserve(need, s.config.QuotaBytes)
	if !ok {
		return &FullError{Dir: s.config.Dir, Kind: ErrQuota, NeedBytes: need, UsedBytes: used, LimitBytes: s.config.QuotaBytes}
	}
	if err := s.checkDisk(need); err != nil {
		s.ledger.release(need)
		return err
	}
	return nil
}

// checkDisk returns an error if the disk is below the low-water mark once all
// that is reserved is written.
func (s *Store) checkDisk(need int64) error {
	disk, err := statDisk(s.lock)
	if err != nil {
		return nil //nolint:nilerr // The write itself will tell: a file system without figures is not a full one.
	}
	if disk.freeBytes-s.ledger.pending() < s.config.LowWaterBytes {
		return &FullError{Dir: s.config.Dir, Kind: ErrDiskFull, NeedBytes: need, FreeBytes: disk.freeBytes, KeepBytes: s.config.LowWaterBytes}
	}
	return nil
}

// disk is what a file system says of itself.
type disk struct {
	freeBytes int64
	noInodes  bool
}

// statDisk asks the file system that f lies on.
func statDisk(f *os.File) (disk, error) {
	var st syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &st); err != nil {
		return disk{}, err
	}
	return diskOf(&st), nil
}

// statFolder asks the file system that a folder lies on. It opens nothing: it is called
// for every submission and several times for every attempt, and to open a folder costs
// eight system calls where one will do.
func statFolder(dir string) (disk, error) {
	var st syscall.Statfs_t
	for {
		err := syscall.Statfs(dir, &st)
		if err == nil {
			return diskOf(&st), nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return disk{}, &os.PathError{Op: "statfs", Path: dir, Err: err}
		}
	}
}

func diskOf(st *syscall.Statfs_t) disk {
	return disk{
		freeBytes: int64(st.Bavail) * int64(st.Bsize), //nolint:unconvert // Its type differs between machines.
		noInodes:  st.Files > 0 && st.Ffree == 0,
	}
}

// FreeBytes returns how much is free on the disk of dir.
func FreeBytes(dir string) (int64, error) {
	d, err := statFolder(dir)
	return d.freeBytes, err
}

// CheckFree returns a [FullError] if less than keepBytes would stay free on the
// disk of dir after needBytes more, and another error if there is no such folder. It is
// for folders other than a store's own.
func CheckFree(dir string, needBytes, keepBytes int64) error {
	d, err := statFolder(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	if err != nil || d.freeBytes-needBytes >= keepBytes {
		return nil //nolint:nilerr // whatever is wrong with the disk, the write itself will tell
	}
	return &FullError{Dir: dir, Kind: ErrDiskFull, NeedBytes: needBytes, FreeBytes: d.freeBytes, KeepBytes: keepBytes}
}

// CheckFull returns err as it is unless it says that a disk or a disk quota
// is full; then it returns a [FullError] about the disk of dir. needBytes is
// what was to be written.
func CheckFull(dir string, needBytes int64, err error) error {
	if !scarce.Full(err) {
		return err
	}
	if _, ok := errors.AsType[*FullError](err); ok {
		return err
	}
	full := &FullError{Dir: dir, Kind: ErrDiskFull, NeedBytes: needBytes}
	if d, statErr := statFolder(dir); statErr == nil {
		full.FreeBytes, full.NoInodes = d.freeBytes, d.noInodes
	}
	return full
}
