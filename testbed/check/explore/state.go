package explore

import (
	"encoding/binary"
	"slices"

	"kith/internal/job"
)

// state is a state of the world.
type state struct {
	locals  [maxSites]int32
	streams [maxSites][maxSites]stream // from, to
	// attached says of each site, by bits, to which others what it sends gets through.
	attached [maxSites]uint8
	// ghosts are doubled messages that have yet to arrive again.
	ghosts []ghost
	left   [spendings]uint8
	// doomed is the site whose daemon may still die, anySite if each may; it
	// means nothing once none may.
	doomed uint8
	watch
}

// anySite stands for each of them.
const anySite = 0xff

// stream is one way between two sites. old is what arrives next. A mark says
// that the receiver has yet to notice that the stream broke, or that there is a
// new one; new is what was sent over the new one.
type stream struct {
	old, new []int32
	mark     mark
}

type mark uint8

const (
	noMark mark = iota
	downMark
	upMark
)

type ghost struct {
	from, to uint8
	msg      int32
}

// spending is something that is bounded.
type spending uint8

const (
	free spending = iota
	aCrash
	aReboot
	aLoss
	aDuplicate
	aCut
	aTimeout
	aWait
	aCancel
	aFail
	aRevoke
	aDemotion
	anAsk

	spendings = 13
)

// watch is what the observer remembers.
type watch struct {
	acked  uint8 // by bits, the jobs that a client was told of
	closed [2]job.State
	seen   []seenAttempt // in order
	tasks  [maxTasks]seenTask
}

// seenAttempt is what was seen of an attempt.
type seenAttempt struct {
	attempt job.AttemptID
	holder  int8 // who got it
	started bool
	demoted bool // it ended for its job to go on
}

func (w *watch) find(a job.AttemptID) (int, bool) {
	return slices.BinarySearchFunc(w.seen, a, func(s seenAttempt, a job.AttemptID) int { return s.attempt.Compare(a) })
}

// encode appends the state as bytes: equal states give equal ones.
func (s *state) encode(b []byte, c *Config) []byte {
	n := c.Sites
	for i := range n {
		b = binary.AppendUvarint(b, uint64(s.locals[i]))
		b = append(b, s.attached[i])
	}
	for i := range n {
		for j := range n {
			if c.linked(i, j) {
				b = s.streams[i][j].encode(b)
			}
		}
	}
	b = append(b, byte(len(s.ghosts)))
	for _, g := range s.ghosts {
		b = append(b, g.from<<4|g.to)
		b = binary.AppendUvarint(b, uint64(g.msg))
	}
	b = append(b, s.left[1:]...)
	if s.left[aCrash] > 0 {
		b = append(b, s.doomed)
	}
	b = append(b, s.acked, byte(s.closed[0]), byte(s.closed[1]), byte(len(s.seen)))
	for i := range s.seen {
		x := &s.seen[i]
		b = attemptCode(b, x.attempt)
		flags := byte(0)
		if x.started {
			flags |= 1
		}
		if x.demoted {
			flags |= 2
		}
		b = append(b, byte(x.holder)<<2|flags)
	}
	for k := range c.Tasks {
		b = append(b, s.tasks[k].code())
	}
	return b
}

func (x *stream) encode(b []byte) []byte {
	b = append(b, byte(x.mark)<<6|byte(len(x.old)), byte(len(x.new)))
	for _, m := range x.old {
		b = binary.AppendUvarint(b, uint64(m))
	}
	for _, m := range x.new {
		b = binary.AppendUvarint(b, uint64(m))
	}
	return b
}

// reader reads numbers off a slice of bytes.
type reader struct{ b []byte }

func (r *reader) byte() byte {
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.b)
	r.b = r.b[n:]
	return v
}

func (r *reader) messages(n int) []int32 {
	if n == 0 {
		return nil
	}
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(r.number())
	}
	return list
}

// decode reads what encode has written, and returns how long it was.
func (s *state) decode(b []byte, c *Config) int {
	*s = state{ghosts: s.ghosts[:0], watch: watch{seen: s.seen[:0]}}
	r := &reader{b}
	n := c.Sites
	for i := range n {
		s.locals[i] = int32(r.number())
		s.attached[i] = r.byte()
	}
	for i := range n {
		for j := range n {
			if c.linked(i, j) {
				head, fresh := r.byte(), int(r.byte())
				x := &s.streams[i][j]
				x.mark = mark(head >> 6)
				x.old = r.messages(int(head & 63))
				x.new = r.messages(fresh)
			}
		}
	}
	for range r.byte() {
		g := r.byte()
		s.ghosts = append(s.ghosts, ghost{g >> 4, g & 15, int32(r.number())})
	}
	for i := range s.left[1:] {
		s.left[1+i] = r.byte()
	}
	if s.left[aCrash] > 0 {
		s.doomed = r.byte()
	}
	s.acked, s.closed[0], s.closed[1] = r.byte(), job.State(r.byte()), job.State(r.byte())
	for range r.byte() {
		origin, seq := r.byte(), r.byte()
		a := job.AttemptID{Job: job.ID{Origin: siteID(int(origin)), Generation: 1, Seq: uint64(seq)}, Number: uint32(r.number())}
		flags := r.byte()
		s.seen = append(s.seen, seenAttempt{a, int8(flags) >> 2, flags&1 != 0, flags&2 != 0})
	}
	for k := range c.Tasks {
		s.tasks[k] = taskOfCode(r.byte())
	}
	return len(b) - len(r.b)
}

// dies reports whether the daemon of a site may die.
func (s *state) dies(i int) bool {
	return s.left[aCrash] > 0 && (s.doomed == anySite || int(s.doomed) == i)
}

// clone returns a state that can be changed: lists are replaced, never changed in place.
func (s *state) clone() *state {
	c := *s
	c.ghosts, c.seen = slices.Clone(s.ghosts), slices.Clone(s.seen)
	return &c
}

// appended returns a list with one more message, without touching the old one.
func appended(list []int32, m int32) []int32 {
	return append(slices.Clip(list), m)
}
