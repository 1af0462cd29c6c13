package durable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrBlocks is returned for a file that is not as [Blocks] writes it, whatever happens meanwhile.
var ErrBlocks = errors.New("it is damaged")

// blocksHead is how many bytes of a block are not content: a checksum of the rest, and a number that grows with
// every write.
const blocksHead = 4 + 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Blocks is a file with a short content that is replaced in place, and can be on a full disk, too: two blocks,
// of which the older one is written and the later valid one counts. It is not safe for use by several goroutines.
type Blocks struct {
	file   *os.File
	size   int
	number uint64
}

// CreateBlocks makes a file of two blocks of so many bytes each, and takes its room on the disk. It is there
// whole or not at all, in place of any that was there.
func CreateBlocks(path string, size int, content []byte) error {
	b := &Blocks{size: size}
	block := b.block(0, content)
	if block == nil {
		return b.tooLarge(content)
	}
	return WriteFile(path, append(block, block...))
}

// OpenBlocks opens a file of such blocks and returns what it has, with zeros behind it to the end of the block.
func OpenBlocks(path string, size int) (*Blocks, []byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	if len(text) != 2*size {
		return nil, nil, fmt.Errorf("it has %d bytes, not %d: %w", len(text), 2*size, ErrBlocks)
	}
	var latest []byte
	for at := 0; at < len(text); at += size { // the other one may be torn: it was being written
		block := text[at : at+size]
		if binary.BigEndian.Uint32(block) != crc32.Checksum(block[4:], castagnoli) {
			continue
		}
		if latest == nil || binary.BigEndian.Uint64(block[4:]) > binary.BigEndian.Uint64(latest[4:]) {
			latest = block
		}
	}
	if latest == nil {
		return nil, nil, fmt.Errorf("no block of it has its checksum: %w", ErrBlocks)
	}
	b := &Blocks{size: size, number: binary.BigEndian.Uint64(latest[4:])}
	if b.file, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	// Whoever wrote it may have been killed before that was durable, and what is returned is relied on.
	if err := unix.Fdatasync(int(b.file.Fd())); err != nil {
		return nil, nil, errors.Join(err, b.file.Close())
	}
	return b, latest[blocksHead:], nil
}

// block encodes a content under a number; nil if it does not fit.
func (b *Blocks) block(number uint64, content []byte) []byte {
	if len(content) > b.size-blocksHead {
		return nil
	}
	block := make([]byte, b.size)
	binary.BigEndian.PutUint64(block[4:], number)
	copy(block[blocksHead:], content)
	binary.BigEndian.PutUint32(block, crc32.Checksum(block[4:], castagnoli))
	return block
}

func (b *Blocks) tooLarge(content []byte) error {
	return fmt.Errorf("%d bytes do not fit into %d", len(content), b.size-blocksHead)
}

// Write replaces the content; it is durable when Write returns. If that fails the one before stays valid, and
// the next write goes to the same block.
func (b *Blocks) Write(content []byte) error {
	block := b.block(b.number+1, content)
	if block == nil {
		return b.tooLarge(content)
	}
	if _, err := b.file.WriteAt(block, int64((b.number+1)%2)*int64(b.size)); err != nil {
		return err
	}
	if err := unix.Fdatasync(int(b.file.Fd())); err != nil {
		return err
	}
	b.number++
	return nil
}

// Path returns the path of the file.
func (b *Blocks) Path() string { return filepath.Clean(b.file.Name()) }

// Close releases the file.
func (b *Blocks) Close() error { return b.file.Close() }
