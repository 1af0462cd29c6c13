package raftlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"kith/internal/pathkind"
	"kith/store"
)

// VoteName is the name of the file of term and vote in a member's folder.
const VoteName = "raft.vote"

// The file of term and vote has two blocks. Each is a checksum of the rest, a number that
// grows with every write, the length of the identity and the identity, then the values: for
// each the lengths of key and value, and both.
const (
	voteBlock = 8 << 10
	voteHead  = 4 + 8 + 2
)

// Vote is a [raft.StableStore] for the few small values that raft keeps there. It is safe for
// use by several goroutines.
type Vote struct {
	mu     sync.Mutex
	file   *os.File
	whose  []byte
	number uint64
	values map[string][]byte
}

var _ raft.StableStore = (*Vote)(nil)

// OpenVote opens the file of term and vote, or makes it and takes its room on the disk. Its
// errors are those of [Open].
func OpenVote(path string, id Identity) (*Vote, error) {
	v, err := openVote(path, id)
	if errors.Is(err, store.ErrCorrupt) {
		err = fmt.Errorf("%w; remove this member and have it join anew with an empty folder", err)
	}
	if err != nil {
		return nil, fmt.Errorf("vote %s: %w", path, err)
	}
	return v, nil
}

func openVote(path string, id Identity) (*Vote, error) {
	v := &Vote{whose: id.marshal(), values: make(map[string][]byte)}
	if err := pathkind.File(path); errors.Is(err, pathkind.ErrKind) {
		return nil, fmt.Errorf("%w: %w", store.ErrCorrupt, err)
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := v.create(path); err != nil {
			return nil, err
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	if err := v.read(text, &id); err != nil {
		return nil, err
	}
	if v.file, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	return v, nil
}

// create makes the file whole before it has its name.
func (v *Vote) create(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), VoteName+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it has its name by then
	_, err = f.Write(append(v.block(0), v.block(0)...))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// block encodes all values under a number.
func (v *Vote) block(number uint64) []byte {
	b := make([]byte, 4, voteBlock)
	b = binary.BigEndian.AppendUint64(b, number)
	b = binary.BigEndian.AppendUint16(b, uint16(len(v.whose)))
	b = append(b, v.whose...)
	for _, k := range slices.Sorted(maps.Keys(v.values)) {
		b = binary.AppendUvarint(b, uint64(len(k)))
		b = binary.AppendUvarint(b, uint64(len(v.values[k])))
		b = append(append(b, k...), v.values[k]...)
	}
	b = append(b, 0) // no key
	if len(b) > voteBlock {
		return nil
	}
	b = b[:voteBlock]
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

// read takes the later valid block. The other one may be torn: it was being written.
func (v *Vote) read(text []byte, id *Identity) error {
	if len(text) != 2*voteBlock {
		return fmt.Errorf("it has %d bytes, not %d: %w", len(text), 2*voteBlock, store.ErrCorrupt)
	}
	var latest []byte
	for at := 0; at < len(text); at += voteBlock {
		b := text[at : at+voteBlock]
		if binary.BigEndian.Uint32(b) != crc32.Checksum(b[4:], castagnoli) {
			continue
		}
		if latest == nil || binary.BigEndian.Uint64(b[4:]) > binary.BigEndian.Uint64(latest[4:]) {
			latest = b
		}
	}
	if latest == nil {
		return fmt.Errorf("no block of it has its checksum: %w", store.ErrCorrupt)
	}
	v.number = binary.BigEndian.Uint64(latest[4:])
	length := int(binary.BigEndian.Uint16(latest[12:]))
	rest := latest[voteHead:]
	if length > len(rest) {
		return fmt.Errorf("an identity of %d bytes: %w", length, store.ErrCorrupt)
	}
	if err := id.check(rest[:length]); err != nil {
		return err
	}
	for rest = rest[length:]; ; {
		key, n := binary.Uvarint(rest)
		if n <= 0 {
			break
		}
		if key == 0 {
			return nil
		}
		value, m := binary.Uvarint(rest[n:])
		if m <= 0 || key > voteBlock || value > voteBlock || uint64(len(rest)-n-m) < key+value {
			break
		}
		rest = rest[n+m:]
		v.values[string(rest[:key])] = bytes.Clone(rest[key : key+value])
		rest = rest[key+value:]
	}
	return fmt.Errorf("its values have no end: %w", store.ErrCorrupt)
}

// Set implements [raft.StableStore]: the value is durable when it returns.
func (v *Vote) Set(key, value []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(key) == 0 {
		return errors.New("vote: a value without a key")
	}
	before, had := v.values[string(key)]
	if had && bytes.Equal(before, value) {
		return nil
	}
	v.values[string(key)] = bytes.Clone(value)
	err := v.write()
	if err != nil {
		if delete(v.values, string(key)); had {
			v.values[string(key)] = before
		}
		return fmt.Errorf("vote %s: %s: %w", v.file.Name(), key, err)
	}
	return nil
}

// write puts all values into the older block. If that fails, the later one stays valid, and
// the next write goes to the same block.
func (v *Vote) write() error {
	b := v.block(v.number + 1)
	if b == nil {
		return fmt.Errorf("its values do not fit into %d bytes", voteBlock)
	}
	if _, err := v.file.WriteAt(b, int64((v.number+1)%2)*voteBlock); err != nil {
		return err
	}
	if err := unix.Fdatasync(int(v.file.Fd())); err != nil {
		return err
	}
	v.number++
	return nil
}

// Get implements [raft.StableStore]: an unknown key has no value.
func (v *Vote) Get(key []byte) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return bytes.Clone(v.values[string(key)]), nil
}

// SetUint64 implements [raft.StableStore].
func (v *Vote) SetUint64(key []byte, value uint64) error { return v.Set(key, indexKey(value)) }

// GetUint64 implements [raft.StableStore]: an unknown key has 0.
func (v *Vote) GetUint64(key []byte) (uint64, error) {
	b, err := v.Get(key)
	if err != nil || b == nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("vote %s: %s has %d bytes, not 8: %w", v.file.Name(), key, len(b), store.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(b), nil
}

// Close releases the file.
func (v *Vote) Close() error { return v.file.Close() }
