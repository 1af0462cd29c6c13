package level

// Ladder are the levels that sites in reach offer. The zero value has none.
//
// Ranks may have gaps, and the first need not be 1: a level without a site that could take the
// task is passed over. That is no reason to call a task overdue, but one to tell somebody
// ([Ladder.Skipped]).
type Ladder struct {
	widest [MaxRank + 1]int32 // by rank; 0 if no site has it
}

// Add adds a site with a rank that takes tasks of up to so many processors. What is no rank
// or has no processors is left out. Several sites may have one rank.
func (d *Ladder) Add(rank uint8, processors int32) {
	if rank >= 1 && rank <= MaxRank {
		d.widest[rank] = max(d.widest[rank], processors)
	}
}

// At returns the first level at or below a rank that has a site for so many processors, false if
// there is none. A task begins At(1), or lower if its user says so.
func (d *Ladder) At(rank uint8, processors int32) (uint8, bool) {
	for r := max(rank, 1); r <= MaxRank; r++ {
		if d.widest[r] >= max(processors, 1) {
			return r, true
		}
	}
	return 0, false
}

// Below returns the level to which a task of so many processors goes from a rank, false if it is on the last one for it.
func (d *Ladder) Below(rank uint8, processors int32) (uint8, bool) {
	if rank >= MaxRank {
		return 0, false
	}
	return d.At(rank+1, processors)
}

// Skipped appends the ranks from from up to, but not at, to that have no site for so many processors.
func (d *Ladder) Skipped(from, to uint8, processors int32, list []uint8) []uint8 {
	for r := max(from, 1); r < min(to, MaxRank+1); r++ {
		if d.widest[r] < max(processors, 1) {
			list = append(list, r)
		}
	}
	return list
}
