package job

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrBadTaskSet is returned when a text or bytes are no set of tasks. A set has one form
// of each kind: another one for the same tasks is refused, too.
var ErrBadTaskSet = errors.New("a set of tasks reads 0-99,120: ascending ordinals below 16777216 and ranges of them that do not touch")

// String returns the set as text: "0-99,120", nothing for the empty set. [ParseTaskSet]
// reads it back. It may be long, up to 9 bytes for each range.
func (s TaskSet) String() string { return string(s.Append(nil)) }

// Append appends the text of the set to b and returns the longer slice.
func (s *TaskSet) Append(b []byte) []byte {
	comma := false
	for lo, hi := range s.Ranges {
		if comma {
			b = append(b, ',')
		}
		comma = true
		b = strconv.AppendUint(b, uint64(lo), 10)
		if hi > lo+1 {
			b = append(b, '-')
			b = strconv.AppendUint(b, uint64(hi-1), 10)
		}
	}
	return b
}

// ParseTaskSet reads the text of a set. It accepts only what [TaskSet.String] writes. The
// set takes at most 2.1 MiB of memory, whatever the text. The error wraps [ErrBadTaskSet].
func ParseTaskSet(text string) (TaskSet, error) {
	var s TaskSet
	least := uint64(0) // the next range must not begin below
	for rest, more := text, text != ""; more; {
		var part string
		part, rest, more = strings.Cut(rest, ",")
		loText, hiText, isRange := strings.Cut(part, "-")
		lo, ok := parseOrdinal(loText)
		hi := lo
		if isRange && ok {
			hi, ok = parseOrdinal(hiText)
			ok = ok && hi > lo
		}
		if !ok || lo < least {
			return TaskSet{}, fmt.Errorf("tasks %q, at %q: %w", clip(text), clip(part), ErrBadTaskSet)
		}
		if lo == hi {
			s.Add(uint32(lo))
		} else {
			s.AddRange(uint32(lo), uint32(hi)+1)
		}
		least = hi + 2
	}
	return s, nil
}

// parseOrdinal reads an ordinal as [strconv.AppendUint] writes it.
func parseOrdinal(text string) (uint64, bool) {
	if len(text) == 0 || len(text) > 8 || (text[0] == '0' && len(text) > 1) {
		return 0, false
	}
	n := uint64(0)
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		n = n*10 + uint64(text[i]-'0')
	}
	return n, n < MaxTasks
}

// The binary form is a list of groups from the lowest page on. A group begins with a
// varint: its kind in the lowest two bits, a number above them.
const (
	groupEmpty = 0 // so many pages without tasks; never the last group
	groupFull  = 1 // so many full pages
	groupRuns  = 2 // one page of so many runs; for each the gap before it and its length less 1, as varints
	groupBits  = 3 // one page, 512 bytes: a bit a task, the lowest task in the lowest bit of the first byte; the number is 0

	// bitsBytes is a group of that kind; a page of runs is written so if it would be longer.
	bitsBytes = 1 + pageTasks/8
)

// MaxTaskSetBytes bounds the binary form of a set.
const MaxTaskSetBytes = MaxTasks / pageTasks * bitsBytes

// AppendBinary appends the binary form of the set to b and returns the longer slice. A
// range of tasks takes some bytes, any other page at most 513.
func (s *TaskSet) AppendBinary(b []byte) []byte {
	next, full := 0, 0 // pages that are written, and full ones behind them
	flush := func() {
		if full > 0 {
			b = binary.AppendUvarint(b, uint64(full)<<2|groupFull)
			next, full = next+full, 0
		}
	}
	for i := range s.pages {
		p := &s.pages[i]
		if p.full() && int(p.index) == next+full {
			full++
			continue
		}
		flush()
		if gap := int(p.index) - next; gap > 0 {
			b = binary.AppendUvarint(b, uint64(gap)<<2|groupEmpty)
			next += gap
		}
		if p.full() {
			full++
			continue
		}
		b = p.appendBinary(b)
		next++
	}
	flush()
	return b
}

func (p *page) appendBinary(b []byte) []byte {
	begin := len(b)
	if runs := p.runs(); 1+2*runs <= bitsBytes {
		b = binary.AppendUvarint(b, uint64(runs)<<2|groupRuns)
		at := 0
		for lo, hi, ok := p.run(0); ok; lo, hi, ok = p.run(hi) {
			b = binary.AppendUvarint(b, uint64(lo-at))
			b = binary.AppendUvarint(b, uint64(hi-lo-1))
			at = hi
		}
		if len(b)-begin <= bitsBytes {
			return b
		}
		b = b[:begin]
	}
	var buf bitmap
	b = append(b, groupBits)
	for _, word := range p.bitmap(&buf) {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

// DecodeTaskSet reads the binary form of a set. It accepts only what
// [TaskSet.AppendBinary] writes, and keeps nothing of b. The set takes at most 2.1 MiB of
// memory. The error wraps [ErrBadTaskSet].
func DecodeTaskSet(b []byte) (TaskSet, error) {
	bad := func(what string) (TaskSet, error) {
		return TaskSet{}, fmt.Errorf("tasks in %d bytes, %s: %w", len(b), what, ErrBadTaskSet)
	}
	if len(b) > MaxTaskSetBytes {
		return bad("too long")
	}
	var s TaskSet
	for index, rest := uint64(0), b; len(rest) > 0; {
		head, n := binary.Uvarint(rest)
		if n <= 0 {
			return bad("cut off")
		}
		rest = rest[n:]
		number, pages := head>>2, uint64(1)
		if kind := head & 3; kind == groupEmpty || kind == groupFull {
			pages = number
		}
		if pages > MaxTasks/pageTasks-index {
			return bad("beyond the last page")
		}
		switch head & 3 {
		case groupFull:
			for k := range pages {
				s.pages = append(s.pages, runPage(int(index+k), 0, pageTasks))
			}
			s.count += int(pages) * pageTasks
		case groupRuns, groupBits:
			p, used, ok := decodePage(rest, head, int(index))
			if !ok {
				return bad("with a damaged page")
			}
			rest = rest[used:]
			s.pages = append(s.pages, p)
			s.count += int(p.count)
		}
		index += pages
	}
	// One form a set: what it would be written as decides.
	if again := s.AppendBinary(make([]byte, 0, len(b))); !bytes.Equal(again, b) {
		return bad("in another form than theirs")
	}
	return s, nil
}

// decodePage reads the page that follows the head of its group, and returns how many
// bytes of it there were.
func decodePage(from []byte, head uint64, index int) (p page, used int, ok bool) {
	if head&3 == groupBits {
		if len(from) < pageTasks/8 {
			return page{}, 0, false
		}
		b := new(bitmap)
		for w := range b {
			b[w] = binary.LittleEndian.Uint64(from[w*8:])
		}
		p = packed(index, b)
		return p, pageTasks / 8, p.count > 0
	}
	runs, at := head>>2, uint64(0)
	var b *bitmap
	for k := range runs {
		gap, n := binary.Uvarint(from[used:])
		if n <= 0 {
			return page{}, 0, false
		}
		used += n
		more, n := binary.Uvarint(from[used:])
		if n <= 0 || gap >= pageTasks || more >= pageTasks || at+gap+more >= pageTasks {
			return page{}, 0, false
		}
		used += n
		lo, hi := int(at+gap), int(at+gap+more+1)
		if runs == 1 {
			return runPage(index, lo, hi-lo), used, true
		}
		if k == 0 {
			b = new(bitmap)
		}
		b.setRun(lo, hi)
		at = uint64(hi)
	}
	if b == nil {
		return page{}, 0, false
	}
	return packed(index, b), used, true
}
