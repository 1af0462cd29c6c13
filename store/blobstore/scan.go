package blobstore

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"kith/internal/pathkind"
)

// formatVersion is the layout that this code writes.
const formatVersion = 1

// refuseForeign returns [ErrForeign] if the folder holds something and is not
// a store. It changes nothing.
func (s *Store) refuseForeign() error {
	if _, err := s.root.Lstat(formatFile); err == nil {
		return nil
	}
	entries, err := s.list(".", -1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Name() {
		case lockFile, tempDir, chunksDir, formatFile + ".new", "lost+found":
		default:
			return fmt.Errorf("it holds %.64q: %w", e.Name(), ErrForeign)
		}
	}
	return nil
}

// checkFormat reads the version of the folder, or begins a new one.
func (s *Store) checkFormat() error {
	f, err := s.read(formatFile)
	if errors.Is(err, os.ErrNotExist) {
		return s.begin()
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // Only read from.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return cmp.Or(err, fmt.Errorf("%s is no file; put one there that says %d: %w", formatFile, formatVersion, ErrForeign))
	}
	text, err := io.ReadAll(io.LimitReader(f, 64))
	if err != nil {
		return err
	}
	version, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil || version < 1 {
		return fmt.Errorf("%s says %.20q: %w", formatFile, text, ErrForeign)
	}
	if version > formatVersion {
		return fmt.Errorf("%s says %d, this version reads up to %d: %w", formatFile, version, formatVersion, ErrFormat)
	}
	return nil
}

// begin makes an empty folder a store. The version is the last thing written,
// so that a crash leaves either a store or a folder that begins again.
func (s *Store) begin() error {
	if err := s.makeLayout(); err != nil {
		return err
	}
	if err := s.writeSynced(formatFile+".new", []byte(strconv.Itoa(formatVersion)+"\n")); err != nil {
		return err
	}
	if err := s.root.Rename(formatFile+".new", formatFile); err != nil {
		return err
	}
	return s.syncDir(".")
}

// makeLayout makes the folders that are missing.
func (s *Store) makeLayout() error {
	made := false
	mkdir := func(name string) error {
		err := s.root.Mkdir(name, 0o700)
		if errors.Is(err, os.ErrExist) {
			return pathkind.Folder(filepath.Join(s.config.Dir, name))
		}
		made = true
		return err
	}
	names := []string{tempDir, chunksDir}
	for i := range shardCount {
		names = append(names, shardDir(byte(i)))
	}
	for _, name := range names {
		if err := mkdir(name); err != nil {
			return err
		}
	}
	if !made {
		return nil
	}
	return errors.Join(s.syncDir(chunksDir), s.syncDir("."))
}

// lockPatience is how long the lock may still be held by a process that is about
// to go: a child that the last owner forked holds it until it executes a program.
const lockPatience = time.Second

// takeLock keeps other processes out. The kernel drops the lock with the process.
func (s *Store) takeLock() error {
	f, err := s.root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	s.lock = f
	for waited := time.Duration(0); ; waited += 10 * time.Millisecond {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if waited >= lockPatience {
			return ErrLocked
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// clearTemp removes what a crash left half-written.
func (s *Store) clearTemp() error {
	entries, err := s.list(tempDir, -1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.root.RemoveAll(tempDir + "/" + e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// scan fills the index and the ledger from the folder.
func (s *Store) scan() error {
	for i := range s.shards {
		s.shards[i].chunks = make(map[Sum]entry)
		if err := s.scanShard(byte(i)); err != nil {
			return err
		}
	}
	return nil
}

// scanShard reads one folder of chunks.
func (s *Store) scanShard(b byte) error {
	dir, err := s.read(shardDir(b))
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // Only read from.
	for {
		entries, err := dir.ReadDir(1024)
		for _, e := range entries {
			if err := s.scanChunk(b, e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// scanChunk counts one file. What has the name of a chunk but cannot be one is
// removed; what has not is left alone.
func (s *Store) scanChunk(b byte, e fs.DirEntry) error {
	sum, err := ParseSum(e.Name())
	if err != nil || sum[0] != b || !e.Type().IsRegular() {
		s.log.Warn("foreign file in the file store", "folder", shardDir(b), "name", e.Name())
		return nil //nolint:nilerr // It is not ours, and that is all.
	}
	info, err := s.root.Lstat(sum.path())
	if err != nil {
		return err
	}
	if info.Size() == 0 || info.Size() > MaxChunk {
		s.log.Warn("damaged chunk removed", "chunk", sum.Short(), "size_bytes", info.Size())
		return s.root.Remove(sum.path())
	}
	s.shards[b].chunks[sum] = entry{size: info.Size(), touched: info.ModTime()}
	s.ledger.add(info.Size(), 0)
	return nil
}

// read opens a file or folder to read it. A FIFO that somebody has put in its place, as every
// job that runs under the account of kithd can, does not hold it up.
func (s *Store) read(name string) (*os.File, error) {
	return s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// list returns up to n entries of a folder of the store; all of them if n is negative.
func (s *Store) list(name string, n int) ([]fs.DirEntry, error) {
	dir, err := s.read(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // Only read from.
	return dir.ReadDir(n)
}

// writeSynced writes a small file to the disk.
func (s *Store) writeSynced(name string, data []byte) error {
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes the names in a folder durable.
func (s *Store) syncDir(name string) error {
	dir, err := s.read(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// tempName is the name of the n-th file being written since Open.
func tempName(n uint64) string {
	return tempDir + "/" + strconv.FormatUint(n, 36)
}
