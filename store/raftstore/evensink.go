package raftstore

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"
)

// evenSnapshots is raft's store of snapshots in files, whose files go to the disk while they are written.
// The store leaves that to the end: the log of raft, on the same disk, would wait behind all of it.
type evenSnapshots struct {
	*raft.FileSnapshotStore
	folder string // that of the snapshots
}

func newEvenSnapshots(s *raft.FileSnapshotStore, folder string) evenSnapshots {
	return evenSnapshots{s, filepath.Join(folder, "snapshots")}
}

// Create implements [raft.SnapshotStore].
func (s evenSnapshots) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64, t raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.FileSnapshotStore.Create(v, index, term, c, at, t)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.folder, sink.ID()+".tmp", "state.bin"), os.O_WRONLY, 0)
	if err != nil {
		return nil, errors.Join(err, sink.Cancel())
	}
	return &evenSink{SnapshotSink: sink, file: f}, nil
}

// evenBytes is how much of a snapshot may wait to be on the disk.
const evenBytes = 4 << 20

// evenSink is a snapshot that is being written.
type evenSink struct {
	raft.SnapshotSink
	file    *os.File
	written int64
	on      int64 // the disk
}

// Write implements [io.Writer].
func (s *evenSink) Write(b []byte) (int, error) {
	n, err := s.SnapshotSink.Write(b)
	s.written += int64(n)
	if err == nil && s.written-s.on >= evenBytes {
		// What it says of the disk, the end of the snapshot says again.
		_ = unix.SyncFileRange(int(s.file.Fd()), s.on, s.written-s.on, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
		s.on = s.written
	}
	return n, err
}

// Close implements [io.Closer]: the snapshot is whole.
func (s *evenSink) Close() error { return errors.Join(s.file.Close(), s.SnapshotSink.Close()) }

// Cancel implements [raft.SnapshotSink].
func (s *evenSink) Cancel() error { return errors.Join(s.file.Close(), s.SnapshotSink.Cancel()) }
