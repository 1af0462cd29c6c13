package sim

// numbered are the waiting jobs of one generation of an origin, by sequence number: to find
// each by its id would take most of the time of a look.
type numbered struct {
	generation uint32
	jobs       []*waiting
}

// add adds a job, of the generation that all later ones are of.
func (n *numbered) add(x *waiting) {
	if x.id.Generation != n.generation {
		*n = numbered{generation: x.id.Generation}
	}
	for uint64(len(n.jobs)) <= x.id.Seq { // an origin numbers its jobs one by one
		n.jobs = append(n.jobs, nil)
	}
	n.jobs[x.id.Seq] = x
}

// lookForCopies brings the records of all jobs up to date, and notes at which sites their
// attempts have copies. That does not change within a look.
func (k *keeper) lookForCopies() {
	for _, x := range k.jobs {
		clear(x.here)
		switch o := x.o; {
		case o.engine == nil:
			x.rec = nil
		case x.rec == nil || x.life != o.life:
			x.rec, x.life = o.state.Job(x.id), o.life
		}
	}
	for _, s := range k.w.sites {
		if s.state == nil {
			continue
		}
		for c := range s.state.Copies() {
			id := &c.ID.Job
			o := k.w.byID[id.Origin]
			if o == nil {
				continue
			}
			n := &k.numbered[o.index]
			if id.Generation != n.generation || id.Seq >= uint64(len(n.jobs)) {
				continue
			}
			if x := n.jobs[id.Seq]; x != nil && x.rec != nil && x.rec.Attempt == c.ID.Number {
				x.here[s.index] = true
			}
		}
	}
}
