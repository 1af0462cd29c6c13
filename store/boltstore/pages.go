package boltstore

import (
	"encoding/binary"
	"fmt"
	"os"

	"kith/store"
)

// A page of a bbolt file has a header of 16 bytes and elements of 16: of a branch the
// last 8 bytes of each are the page below, of a leaf they are flags, place and lengths of
// a key and its value. The value of a table begins with the page of its root, 0 if it is
// so small that the page follows in the value. Pages have no checksum.
const (
	pageHead    = 16
	pageElement = 16
	branchPage  = 1
	leafPage    = 2
	isTable     = 1
	tableHead   = 16 // root and a sequence number, before the page
	// mostOfPage is as far as the elements of a page can reach, in bytes.
	mostOfPage = pageHead + pageElement<<16
)

// pageWalk looks at the pages of a file's trees once.
type pageWalk struct {
	file  *os.File
	size  uint64   // of a page, bytes
	pages uint64   // in use
	seen  []uint64 // a bit for each page
}

// checkTrees checks that no page of the file is reached twice from its root: bbolt
// follows pages as they point, and one that is changed into a pointer to a page above
// would keep it going without end.
func checkTrees(f *os.File, h header) error {
	w := &pageWalk{file: f, size: h.pageSize, pages: h.pages, seen: make([]uint64, h.pages/64+1)}
	var tables []uint64
	err := w.below(h.root, func(page []byte) error {
		for at := pageHead; at+pageElement <= len(page) && at < pageHead+pageElement*w.count(page); at += pageElement {
			e := page[at:]
			order := binary.NativeEndian
			if order.Uint32(e)&isTable == 0 {
				continue
			}
			value := uint64(order.Uint32(e[4:])) + uint64(order.Uint32(e[8:]))
			if value+8 > uint64(len(e)) {
				return fmt.Errorf("a table lies outside of its page: %w", store.ErrCorrupt)
			}
			if root := order.Uint64(e[value:]); root != 0 {
				tables = append(tables, root)
			} else if inline := value + tableHead; inline+pageHead > uint64(len(e)) || order.Uint16(e[inline+8:]) != leafPage {
				return fmt.Errorf("the page within a table is no leaf: %w", store.ErrCorrupt)
			}
		}
		return nil
	})
	for _, t := range tables {
		if err == nil {
			err = w.below(t, nil)
		}
	}
	return err
}

// below walks through the tree at root, and gives its leaves to leaf if there is one.
func (w *pageWalk) below(root uint64, leaf func(page []byte) error) error {
	todo := []uint64{root}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if id >= w.pages {
			return fmt.Errorf("page %d of %d is spoken of: %w", id, w.pages, store.ErrCorrupt)
		}
		if w.seen[id/64]&(1<<(id%64)) != 0 {
			return fmt.Errorf("page %d is reached twice: %w", id, store.ErrCorrupt)
		}
		w.seen[id/64] |= 1 << (id % 64)
		head := make([]byte, pageHead)
		if _, err := w.file.ReadAt(head, int64(id*w.size)); err != nil {
			return fmt.Errorf("read page %d: %w", id, err)
		}
		kind := binary.NativeEndian.Uint16(head[8:])
		if kind == leafPage && leaf == nil {
			continue
		}
		page, err := w.read(id, head)
		if err != nil {
			return err
		}
		switch kind {
		case leafPage:
			if err := leaf(page); err != nil {
				return err
			}
		case branchPage:
			for i := range w.count(page) {
				at := pageHead + pageElement*i
				if at+pageElement > len(page) {
					return fmt.Errorf("page %d has more elements than room: %w", id, store.ErrCorrupt)
				}
				todo = append(todo, binary.NativeEndian.Uint64(page[at+8:]))
			}
		default:
			return fmt.Errorf("page %d is of no kind of a tree: %w", id, store.ErrCorrupt)
		}
	}
	return nil
}

// read returns a page with what it overflows into. A branch has its elements in front, of a
// leaf with the names of tables there is little: neither is read without bound.
func (w *pageWalk) read(id uint64, head []byte) ([]byte, error) {
	more := uint64(binary.NativeEndian.Uint32(head[12:]))
	if more >= w.pages-id {
		return nil, fmt.Errorf("page %d overflows the file: %w", id, store.ErrCorrupt)
	}
	page := make([]byte, min((1+more)*w.size, mostOfPage))
	if _, err := w.file.ReadAt(page, int64(id*w.size)); err != nil {
		return nil, fmt.Errorf("read page %d: %w", id, err)
	}
	return page, nil
}

func (w *pageWalk) count(page []byte) int { return int(binary.NativeEndian.Uint16(page[10:])) }
