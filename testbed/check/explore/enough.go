package explore

// enough returns a site whose moves are enough to look at in s, -1 if there is
// none. They are if whatever the other sites do meanwhile
//
//   - leaves each of them as it is, because steps at different sites commute,
//   - brings the site nothing new: what they send queues behind what is on its
//     way already, and none of them breaks a stream to it,
//   - and the observer sees no difference: no job starts or ends.
//
// In every way the world can go from s, the first move at that site is then one
// of those, and can as well come first (a persistent set, in the words of the
// literature). That bounds are shared does no harm: a way that keeps within
// them does so in any order.
func (w *world) enough(s *state, list []move) int {
	if s.left[aCut] > 0 || s.left[aReboot] > 0 || s.left[aRevoke] > 0 {
		return -1
	}
	best, fewest := -1, len(list)
	for i := range w.cfg.Sites {
		if n := w.at(i, list); n > 0 && n < fewest && w.undisturbed(s, i) && w.silent(s, i, list) {
			best, fewest = i, n
		}
	}
	return best
}

// at counts the moves at a site.
func (w *world) at(i int, list []move) int {
	n := 0
	for k := range list {
		if int(list[k].site) == i {
			n++
		}
	}
	return n
}

// undisturbed reports whether nothing that others do makes a new move possible
// at a site.
func (w *world) undisturbed(s *state, i int) bool {
	if !w.local(s, i).up {
		return false
	}
	for j := range w.cfg.Sites {
		if !w.cfg.linked(i, j) {
			continue
		}
		x := &s.streams[j][i]
		if !w.local(s, j).up || s.dies(j) || len(x.old) == 0 && x.mark == noMark {
			return false
		}
	}
	return true
}

// silent reports whether the observer sees none of the moves at a site.
func (w *world) silent(s *state, i int, list []move) bool {
	for k := range list {
		m := &list[k]
		if int(m.site) != i || m.kind == lose || m.kind == duplicate {
			continue
		}
		if w.sites.take(w.local(s, i), m.step).visible {
			return false
		}
	}
	return true
}
