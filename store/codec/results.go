package codec

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"kith/internal/job"
	"kith/store"
)

// A block of results is a column after the other: a bitmap of the tasks that have one, the
// sites, and of each task its kind with flags, what the flags announce, and numbers as
// varints. So a task takes some 18 bytes, and what tasks have in common next to nothing.
const (
	hasExitCode = 1 << 4
	hasSignal   = 1 << 5
	hasTries    = 1 << 6
	filesLost   = 1 << 7 // nothing follows
	kindMask    = 1<<4 - 1

	blockBitmap = store.ResultBlock / 8
	usPerNs     = int64(time.Microsecond)
	bytesPerKiB = 1024
)

// resultWrites groups results by their blocks. A later result of a task replaces an
// earlier one.
func resultWrites(s *store.State, results []store.ResultOf) []Write {
	type key struct {
		bag   job.ID
		block uint32
	}
	var order []key
	blocks := make(map[key][]store.TaskRecord)
	for _, r := range results {
		if s.Bag(r.Bag) == nil {
			continue
		}
		k := key{r.Bag, r.Result.Ordinal / store.ResultBlock}
		if _, known := blocks[k]; !known {
			order = append(order, k)
		}
		blocks[k] = append(blocks[k], r.TaskRecord)
	}
	w := make([]Write, 0, len(order))
	for _, k := range order {
		w = append(w, Write{Table: Results, Key: ResultsKey(k.bag, k.block), Value: sealBlock(sortedRecords(blocks[k])), Merge: true})
	}
	return w
}

// sortedRecords returns the last record of each task, by ordinals.
func sortedRecords(records []store.TaskRecord) []store.TaskRecord {
	slices.SortStableFunc(records, func(a, b store.TaskRecord) int { return cmp.Compare(a.Result.Ordinal, b.Result.Ordinal) })
	kept := records[:0]
	for i, r := range records {
		if i+1 == len(records) || records[i+1].Result.Ordinal != r.Result.Ordinal {
			kept = append(kept, r)
		}
	}
	return kept
}

// MergeResults puts the results of a part into those of a block, nil if there is none yet,
// and returns the block. Equal blocks and parts give equal bytes.
func MergeResults(block, part []byte) ([]byte, error) {
	more, err := TaskRecords(part, 0)
	if err != nil {
		return nil, err
	}
	if block == nil {
		return sealBlock(more), nil
	}
	old, err := TaskRecords(block, 0)
	if err != nil {
		return nil, err
	}
	merged := make([]store.TaskRecord, 0, store.ResultBlock)
	for _, r := range more {
		for len(old) > 0 && old[0].Result.Ordinal < r.Result.Ordinal {
			merged, old = append(merged, old[0]), old[1:]
		}
		if len(old) > 0 && old[0].Result.Ordinal == r.Result.Ordinal {
			old = old[1:]
		}
		merged = append(merged, r)
	}
	return sealBlock(append(merged, old...)), nil
}

func sealBlock(records []store.TaskRecord) []byte {
	b := appendBlock(make([]byte, 4, 64+24*len(records)), records)
	binary.BigEndian.PutUint32(b, checksum(b[4:]))
	return b
}

// appendBlock appends the records, which are of one block and ascend.
func appendBlock(b []byte, records []store.TaskRecord) []byte {
	var have [blockBitmap]byte
	var sites []job.SiteID
	for i := range records {
		r := &records[i]
		at := r.Result.Ordinal % store.ResultBlock
		have[at/8] |= 1 << (at % 8)
		if !slices.Contains(sites, r.Site) {
			sites = append(sites, r.Site)
		}
	}
	b = append(b, have[:]...)
	b = binary.AppendUvarint(b, uint64(len(sites)))
	for _, s := range sites {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	for i := range records {
		r := &records[i]
		kind := byte(r.Result.Kind)
		if r.Result.ExitCode != 0 {
			kind |= hasExitCode
		}
		if r.Result.Signal != 0 {
			kind |= hasSignal
		}
		if r.Tries != 0 {
			kind |= hasTries
		}
		if r.Result.FilesLost {
			kind |= filesLost
		}
		b = append(b, kind)
	}
	for i := range records {
		r := &records[i]
		if r.Result.ExitCode != 0 {
			b = append(b, byte(r.Result.ExitCode))
		}
		if r.Result.Signal != 0 {
			b = append(b, byte(r.Result.Signal))
		}
		if r.Tries != 0 {
			b = append(b, r.Tries)
		}
		if len(sites) > 1 {
			b = binary.AppendUvarint(b, uint64(slices.Index(sites, r.Site)))
		}
	}
	var before store.TaskRecord
	for i := range records {
		r := &records[i]
		b = binary.AppendVarint(b, int64(r.Bundle)-int64(before.Bundle))
		b = binary.AppendVarint(b, int64(r.Result.Start)/usPerNs-int64(before.Result.Start)/usPerNs)
		b = binary.AppendUvarint(b, uint64(int64(r.Result.Run)/usPerNs))
		b = binary.AppendUvarint(b, uint64(int64(r.Result.CPUTime)/usPerNs))
		b = binary.AppendUvarint(b, uint64(r.Result.MaxRSSBytes/bytesPerKiB))
		before = *r
	}
	return b
}

// blockReader reads a block; after the first mistake it returns zeros.
type blockReader struct {
	rest []byte
	bad  bool
}

func (r *blockReader) bytes(n uint64) []byte {
	if r.bad || uint64(len(r.rest)) < n {
		r.bad = true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *blockReader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *blockReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || r.bad {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *blockReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 || r.bad {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// scaled returns a number of units, not negative and at most most of the smaller unit.
func (r *blockReader) scaled(unit, most int64) int64 {
	v := r.uvarint()
	if v > uint64(most/unit) {
		r.bad = true
		return 0
	}
	return int64(v) * unit
}

// TaskRecords reads the results of a block, the first task of which has an ordinal. The
// error wraps [store.ErrCorrupt].
func TaskRecords(value []byte, first uint32) ([]store.TaskRecord, error) {
	data, err := openBytes(value)
	if err != nil {
		return nil, fmt.Errorf("block of results: %w", err)
	}
	records, ok := readBlock(data, first)
	if !ok {
		return nil, fmt.Errorf("block of results: %w", store.ErrCorrupt)
	}
	return records, nil
}

func readBlock(data []byte, first uint32) ([]store.TaskRecord, bool) {
	in := blockReader{rest: data}
	have := in.bytes(blockBitmap)
	count := 0
	for _, b := range have {
		count += bits.OnesCount8(b)
	}
	records := make([]store.TaskRecord, 0, count)
	for at := range uint32(len(have) * 8) {
		if have[at/8]>>(at%8)&1 != 0 {
			records = append(records, store.TaskRecord{Result: job.TaskResult{Ordinal: first + at}})
		}
	}
	siteCount := in.uvarint()
	if siteCount > uint64(len(records)) {
		return nil, false
	}
	sites := make([]job.SiteID, 0, siteCount)
	for range siteCount {
		site, err := job.ParseSiteID(string(in.bytes(min(in.uvarint(), job.MaxSiteIDLength+1))))
		in.bad = in.bad || err != nil
		sites = append(sites, site)
	}
	kinds := in.bytes(uint64(len(records)))
	if in.bad || len(records) > 0 && len(sites) == 0 {
		return nil, false
	}
	for i := range records {
		r := &records[i]
		r.Result.Kind, r.Result.FilesLost = job.OutcomeKind(kinds[i]&kindMask), kinds[i]&filesLost != 0
		if kinds[i]&hasExitCode != 0 {
			r.Result.ExitCode = int32(in.byte())
		}
		if kinds[i]&hasSignal != 0 {
			r.Result.Signal = int32(in.byte())
		}
		if kinds[i]&hasTries != 0 {
			r.Tries = in.byte()
		}
		site := uint64(0)
		if len(sites) > 1 {
			site = in.uvarint()
		}
		if site >= uint64(len(sites)) {
			return nil, false
		}
		r.Site = sites[site]
	}
	const mostTime = 1<<63 - 1
	bundle, start := int64(0), int64(0)
	for i := range records {
		r := &records[i]
		bundle += in.varint()
		start += in.varint()
		if in.bad || bundle <= 0 || bundle > 1<<32-1 || start < 0 || start > mostTime/usPerNs {
			return nil, false
		}
		r.Bundle, r.Result.Start = uint32(bundle), job.Time(start*usPerNs)
		r.Result.Run = time.Duration(in.scaled(usPerNs, int64(job.MaxWalltime)))
		r.Result.CPUTime = time.Duration(in.scaled(usPerNs, mostTime))
		r.Result.MaxRSSBytes = in.scaled(bytesPerKiB, job.MaxMemoryBytes)
		if r.Result.Validate() != nil {
			return nil, false
		}
	}
	return records, !in.bad && len(in.rest) == 0
}
