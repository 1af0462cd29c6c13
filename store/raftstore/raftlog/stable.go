package raftlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/raft"

	"kith/internal/durable"
	"kith/internal/pathkind"
	"kith/store"
)

// VoteName is the name of the file of term and vote in a member's folder.
const VoteName = "raft.vote"

// The file of term and vote has two blocks, see [durable.Blocks]. In each are the length of the
// identity and the identity, then the values: for each the lengths of key and value, and both.
const voteBlock = 8 << 10

// Vote is a [raft.StableStore] for the few small values that raft keeps there. It is safe for
// use by several goroutines.
type Vote struct {
	mu     sync.Mutex
	file   *durable.Blocks
	whose  []byte
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
	file, text, err := durable.OpenBlocks(path, voteBlock)
	if errors.Is(err, fs.ErrNotExist) {
		if err := durable.CreateBlocks(path, voteBlock, v.encode()); err != nil {
			return nil, err
		}
		file, text, err = durable.OpenBlocks(path, voteBlock)
	}
	if errors.Is(err, durable.ErrBlocks) {
		err = fmt.Errorf("%w: %w", err, store.ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	if err := v.read(text, &id); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	v.file = file
	return v, nil
}

// encode encodes all values.
func (v *Vote) encode() []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(v.whose)))
	b = append(b, v.whose...)
	for _, k := range slices.Sorted(maps.Keys(v.values)) {
		b = binary.AppendUvarint(b, uint64(len(k)))
		b = binary.AppendUvarint(b, uint64(len(v.values[k])))
		b = append(append(b, k...), v.values[k]...)
	}
	return append(b, 0) // no key
}

// read takes up what the file has.
func (v *Vote) read(text []byte, id *Identity) error {
	length, rest := int(binary.BigEndian.Uint16(text)), text[2:]
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
	err := v.file.Write(v.encode())
	if err != nil {
		if delete(v.values, string(key)); had {
			v.values[string(key)] = before
		}
		return fmt.Errorf("vote %s: %s: %w", v.file.Path(), key, err)
	}
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
		return 0, fmt.Errorf("vote %s: %s has %d bytes, not 8: %w", v.file.Path(), key, len(b), store.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(b), nil
}

// Close releases the file.
func (v *Vote) Close() error { return v.file.Close() }
