package job

import "math/bits"

const (
	pageShift = 12
	pageTasks = 1 << pageShift // ordinals of a page
	pageWords = pageTasks / 64
)

// page is the ordinals of a [TaskSet] that lie in one stretch of pageTasks; a page
// that would be empty is not in the set. Positions count from the page's begin.
//
// What is one run of positions is kept as its bounds: a full page, the tasks that one
// grant cut off the cursor of a bag, a single task. Anything else is a bitmap.
type page struct {
	bits  *bitmap // nil: the positions from first on, count of them
	index uint16  // which stretch
	first uint16
	count uint16 // 1 to pageTasks
}

func runPage(index, first, count int) page {
	return page{index: uint16(index), first: uint16(first), count: uint16(count)}
}

// packed returns the positions in b as a page, which keeps b unless they are one run.
// There may be none: then the page must not stay in a set.
func packed(index int, b *bitmap) page {
	lo := b.next(0)
	if hi := b.nextClear(lo); b.next(hi) == pageTasks {
		return runPage(index, lo, hi-lo)
	}
	return page{bits: b, index: uint16(index), count: uint16(b.count())}
}

func (p *page) full() bool { return p.count == pageTasks }

// base returns the ordinal at position 0.
func (p *page) base() uint32 { return uint32(p.index) << pageShift }

// end returns the position behind the run of a page without a bitmap.
func (p *page) end() int { return int(p.first) + int(p.count) }

// bitmap returns the positions as a bitmap: the page's own, or buf, filled.
func (p *page) bitmap(buf *bitmap) *bitmap {
	if p.bits != nil {
		return p.bits
	}
	*buf = bitmap{}
	buf.setRun(int(p.first), p.end())
	return buf
}

// spread gives a page of one run a bitmap of its own.
func (p *page) spread() {
	if p.bits == nil {
		p.bits = p.bitmap(new(bitmap))
	}
}

func (p *page) clone() page {
	c := *p
	if p.bits != nil {
		b := *p.bits
		c.bits = &b
	}
	return c
}

func (p *page) has(i int) bool {
	if p.bits == nil {
		return i >= int(p.first) && i < p.end()
	}
	return p.bits.has(i)
}

// add adds position i and reports whether it was missing.
func (p *page) add(i int) bool {
	if p.has(i) {
		return false
	}
	if p.bits == nil {
		switch i {
		case p.end():
			p.count++
			return true
		case int(p.first) - 1:
			p.first--
			p.count++
			return true
		}
		p.spread()
	}
	p.count++
	p.bits[i/64] |= 1 << (i % 64)
	if p.full() {
		p.bits, p.first = nil, 0
	}
	return true
}

// remove removes position i and reports whether it was there. The page may be empty
// then: the caller takes it out of the set.
func (p *page) remove(i int) bool {
	if !p.has(i) {
		return false
	}
	if p.bits == nil {
		switch i {
		case int(p.first):
			p.first++
			p.count--
			return true
		case p.end() - 1:
			p.count--
			return true
		}
		p.spread()
	}
	p.bits[i/64] &^= 1 << (i % 64)
	p.count--
	return true
}

// run returns the first run of positions at or after i, as long as it goes in this page.
func (p *page) run(i int) (lo, hi int, ok bool) {
	if p.bits == nil {
		lo = max(i, int(p.first))
		return lo, p.end(), lo < p.end()
	}
	lo = p.bits.next(i)
	if lo == pageTasks {
		return 0, 0, false
	}
	return lo, p.bits.nextClear(lo), true
}

// runs counts the runs of the page.
func (p *page) runs() int {
	if p.bits == nil {
		return 1
	}
	return p.bits.runs()
}

// cut removes the n lowest positions and returns them as a page; n is at least 1 and
// less than there are.
func (p *page) cut(n int) page {
	if p.bits == nil {
		taken := runPage(int(p.index), int(p.first), n)
		p.first += uint16(n)
		p.count -= uint16(n)
		return taken
	}
	taken, rest := new(bitmap), *p.bits
	left := n
	for w := range rest {
		word := rest[w]
		if c := bits.OnesCount64(word); c <= left {
			taken[w], rest[w] = word, 0
			left -= c
			continue
		}
		for range left {
			word &= word - 1
		}
		taken[w], rest[w] = rest[w]&^word, word
		break
	}
	*p = packed(int(p.index), &rest)
	return packed(int(p.index), taken)
}

// bitmap is a page's positions, one bit each.
type bitmap [pageWords]uint64

func (b *bitmap) has(i int) bool { return b[i/64]>>(i%64)&1 != 0 }

// mask returns the bits of word w that lie in [lo, hi).
func mask(w, lo, hi int) uint64 {
	m := ^uint64(0)
	if at := lo - w*64; at > 0 {
		m <<= at
	}
	if over := (w+1)*64 - hi; over > 0 {
		m = m << over >> over
	}
	return m
}

// setRun adds the positions from lo to before hi, which is above lo.
func (b *bitmap) setRun(lo, hi int) {
	for w := lo / 64; w <= (hi-1)/64; w++ {
		b[w] |= mask(w, lo, hi)
	}
}

func (b *bitmap) clearRun(lo, hi int) {
	for w := lo / 64; w <= (hi-1)/64; w++ {
		b[w] &^= mask(w, lo, hi)
	}
}

func (b *bitmap) count() int {
	n := 0
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}

// next returns the first position at or after i that is set, pageTasks if there is none.
func (b *bitmap) next(i int) int {
	if i >= pageTasks {
		return pageTasks
	}
	w := i / 64
	word := b[w] &^ (1<<(i%64) - 1)
	for word == 0 {
		if w++; w == pageWords {
			return pageTasks
		}
		word = b[w]
	}
	return w*64 + bits.TrailingZeros64(word)
}

// nextClear returns the first position at or after i that is not set, pageTasks if
// there is none.
func (b *bitmap) nextClear(i int) int {
	if i >= pageTasks {
		return pageTasks
	}
	w := i / 64
	word := ^b[w] &^ (1<<(i%64) - 1)
	for word == 0 {
		if w++; w == pageWords {
			return pageTasks
		}
		word = ^b[w]
	}
	return w*64 + bits.TrailingZeros64(word)
}

func (b *bitmap) runs() int {
	n, before := 0, uint64(0)
	for _, word := range b {
		n += bits.OnesCount64(word &^ (word<<1 | before))
		before = word >> 63
	}
	return n
}
