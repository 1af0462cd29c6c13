package transfer

import (
	"slices"
	"strings"

	"kith/store/blobstore"
)

// A container is one chunk with what several attempts left: a million short outputs are some
// thousand files of a store, with an fsync each, and travel as so many.

const (
	// MaxLoose is the most that one attempt may leave for a container.
	MaxLoose = 64 << 10
	// MaxContainer is the most that is put into one.
	MaxContainer = 1 << 20
	// looseInline is up to what length a content is inside its set even so: the name of a
	// container is not much shorter.
	looseInline = 128
)

// A Loose is a file whose content is to be in a container.
type Loose struct {
	// File lacks the place of its content.
	File File
	Data []byte
}

// LooseBytes is what a collection has for a container.
func (c *Collection) LooseBytes() (n int64) {
	for i := range c.Loose {
		n += c.Loose[i].File.Size
	}
	return n
}

// PutContainer stores the loose files of collections, [ChunkBytes] at most, one after another
// as one chunk. When it returns nil the chunk is durable, the files are in the sets, and the
// hold of each collection holds it. After an error the collections are as they were.
func PutContainer(store *blobstore.Store, all []*Collection) error {
	var data []byte
	files := 0
	for _, c := range all {
		for i := range c.Loose {
			data = append(data, c.Loose[i].Data...)
			files++
		}
	}
	if len(data) == 0 {
		return nil
	}
	batch := store.NewBatch()
	defer batch.Close()
	sum, err := batch.Put(data)
	if err == nil {
		err = batch.Commit()
	}
	if err != nil {
		return err
	}
	offset := int64(0)
	for _, c := range all {
		if len(c.Loose) == 0 {
			continue
		}
		for i := range c.Loose {
			f := c.Loose[i].File
			if f.Chunks = []blobstore.Sum{sum}; files > 1 {
				f.Container, f.Offset = int64(len(data)), offset
			}
			offset += f.Size
			c.Set.Files = append(c.Set.Files, f)
		}
		slices.SortFunc(c.Set.Files, func(x, y File) int { return strings.Compare(x.Path, y.Path) })
		c.Hold.Add(sum)
		c.Loose = nil
	}
	return nil
}
