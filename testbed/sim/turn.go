package sim

// The turns in which touched sites make their pass: the origins of what was
// submitted in this instant, then those that copies came to, in the order of
// coming, which for one job is the order of rank (spec 001 section 2.5), then
// all others; within a turn by name.
const (
	originTurn uint64 = iota << turnShift
	hostTurn
	otherTurn

	turnShift = 32
)

// touch makes the site have a pass at the end of this instant.
func (s *Site) touch() {
	if s.deposed {
		s.wants = true
		return
	}
	if !s.touched {
		s.touched, s.turn = true, min(s.turn, otherTurn)
		s.w.touched = append(s.w.touched, s)
	}
}

// rush makes the site's pass in this instant come in an earlier turn.
func (s *Site) rush(turn uint64) { s.turn = min(s.turn, turn) }
