package sim

import "kith/store"

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

// tenants counts the copies at a site: those of each origin, by index, those of all other
// sites, and those that wait and whose origin it does not know to be out of reach.
type tenants struct {
	its  []int
	all  int
	load int32
}

// lookForCopies brings the records of all jobs up to date, notes at which sites their
// attempts have copies, and counts these. That does not change within a look.
func (k *keeper) lookForCopies() {
	for _, x := range k.jobs {
		clear(x.here)
		x.begun = k.begun[x.id] > 0
		switch o := x.o; {
		case o.engine == nil:
			x.rec = nil
		case x.rec == nil || x.life != o.life:
			x.rec, x.life = o.state.Job(x.id), o.life
		}
	}
	for _, s := range k.w.sites {
		t := &k.tenants[s.index]
		t.all, t.load = 0, 0
		clear(t.its)
		if s.state == nil {
			continue
		}
		for c := range s.state.Copies() {
			id := &c.ID.Job
			o := k.w.site(id.Origin)
			if o != s {
				t.all++
			}
			if c.Phase == store.CopyQueued && (o == nil || !k.away(o, s)) {
				t.load++
			}
			if o == nil {
				continue
			}
			t.its[o.index]++
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
