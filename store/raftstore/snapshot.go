package raftstore

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/raft"

	"kith/internal/job"
	"kith/store"
	"kith/store/boltstore"
	"kith/store/raftstore/raftlog"
)

// A snapshot is a head, which says whose it is and how long, and a file of facts as it was at an
// instant. raft's store of snapshots adds a checksum over both.
const (
	snapshotMagic  = "kithsnap"
	snapshotFormat = 1
)

// snapshotHead says whose snapshot it is.
type snapshotHead struct {
	site    job.SiteID
	cluster Cluster
}

func (h *snapshotHead) marshal(size int64) []byte {
	b := append([]byte(snapshotMagic), snapshotFormat, byte(len(h.site)))
	b = append(b, h.site...)
	b = append(b, h.cluster[:]...)
	return binary.BigEndian.AppendUint64(b, uint64(size))
}

// read reads a head and checks it. It returns how many bytes follow.
func (h *snapshotHead) read(from io.Reader) (size uint64, err error) {
	cut := func(err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("it is cut short: %w", store.ErrCorrupt)
		}
		return err
	}
	b := make([]byte, len(snapshotMagic)+2)
	if _, err := io.ReadFull(from, b); err != nil {
		return 0, cut(err)
	}
	format, length := b[len(snapshotMagic)], b[len(snapshotMagic)+1]
	switch {
	case string(b[:len(snapshotMagic)]) != snapshotMagic:
		return 0, fmt.Errorf("it is no snapshot of facts: %w", store.ErrCorrupt)
	case format > snapshotFormat:
		return 0, fmt.Errorf("format %d, this version knows up to %d: %w; upgrade kithd", format, snapshotFormat, store.ErrNewerFormat)
	}
	b = make([]byte, int(length)+len(h.cluster)+8)
	if _, err := io.ReadFull(from, b); err != nil {
		return 0, cut(err)
	}
	site, cluster := b[:length], b[length:int(length)+len(h.cluster)]
	switch {
	case string(site) != string(h.site):
		return 0, fmt.Errorf("it is of site %q, not of %q: %w", site, h.site, store.ErrOtherSite)
	case string(cluster) != string(h.cluster[:]):
		return 0, fmt.Errorf("it is of cluster %x, not of %x: %w", cluster, h.cluster, raftlog.ErrOtherCluster)
	}
	return binary.BigEndian.Uint64(b[len(b)-8:]), nil
}

// extract writes the file of facts of a snapshot to path.
func (h *snapshotHead) extract(from io.Reader, path string) error {
	from = bufio.NewReaderSize(from, 1<<16)
	size, err := h.read(from)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, from)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if uint64(n) != size {
		return fmt.Errorf("it has %d bytes, not %d: it is cut short: %w", n, size, store.ErrCorrupt)
	}
	return nil
}

// snapshot is facts at an instant, on their way to a file.
type snapshot struct {
	whose snapshotHead
	image *boltstore.Image
}

// Persist implements [raft.FSMSnapshot].
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := sink.Write(s.whose.marshal(s.image.Size())); err != nil {
		return err
	}
	_, err := s.image.WriteTo(sink)
	return err
}

// Release implements [raft.FSMSnapshot].
func (s *snapshot) Release() { s.image.Close() } //nolint:errcheck // it was only read
