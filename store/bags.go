package store

import (
	"fmt"
	"slices"

	"kith/internal/hashed"
	"kith/internal/job"
)

// bags is all that a state knows of bags and bundles.
type bags struct {
	byID     Index[job.ID, Bag]
	order    []*Bag // by id
	requests Index[hashed.Text, Bag]
	granted  map[claimKey][]job.AttemptID // live bundles that are not late
	held     Index[job.AttemptID, HeldBundle]
	runs     map[uint64]*HeldBundle // by HeldBundle.Run
}

// claimKey names a claim of a host for tasks.
type claimKey struct {
	site       job.SiteID
	generation uint32
	stamp      uint64
}

func (t *TaskBundle) claim() claimKey { return claimKey{t.Site, t.Generation, t.Stamp} }

func newBags() bags {
	return bags{
		byID:     NewIndex(func(b *Bag) job.ID { return b.ID }),
		requests: NewIndex(func(b *Bag) hashed.Text { return hashed.Text(b.RequestID) }),
		held:     NewIndex(func(h *HeldBundle) job.AttemptID { return h.ID }),
		granted:  make(map[claimKey][]job.AttemptID),
		runs:     make(map[uint64]*HeldBundle),
	}
}

// BagChanges lists what was changed of bags and bundles, see [Changes].
type BagChanges struct {
	Bags    []*Bag
	Bundles []job.AttemptID
	Pages   []PageOf
	Results []ResultOf
	// TaskFiles are in the order in which tasks ended; one without a set has none any more.
	TaskFiles []FilesOf
	// Forgotten bags had numbers, pages and results, whatever is listed beside.
	ForgottenBags []job.ID
	Held          []*HeldBundle
	// HeldBatches are batches that were added or acknowledged. What counts is whether the
	// bundle has them now.
	HeldBatches   []HeldBatch
	HeldPayloads  []HeldPayload
	ForgottenHeld []job.AttemptID
}

// PageOf names one page of the sets of a bag: the tasks from Page*[PageTasks] on.
type PageOf struct {
	Bag  job.ID
	Page uint32
}

// ResultOf is a result to be written.
type ResultOf struct {
	Bag job.ID
	TaskRecord
}

// FilesOf is what a task left, to be written.
type FilesOf struct {
	Bag job.ID
	TaskFiles
}

// HeldBatch names a batch of a held bundle.
type HeldBatch struct {
	Bundle job.AttemptID
	Number uint32
}

// HeldPayload is what a bundle runs, to be written.
type HeldPayload struct {
	Bundle job.AttemptID
	Data   []byte
}

func (c *BagChanges) noBags() bool {
	return len(c.Bags) == 0 && len(c.Bundles) == 0 && len(c.Results) == 0 && len(c.ForgottenBags) == 0 &&
		len(c.TaskFiles) == 0 && len(c.Held) == 0 && len(c.HeldBatches) == 0 && len(c.HeldPayloads) == 0 && len(c.ForgottenHeld) == 0
}

// settle marks what is listed as written, and lists the pages that have changed.
func (c *BagChanges) settle(s *State) {
	for _, b := range c.Bags {
		b.dirty = false
		for page := range b.pages.All {
			c.Pages = append(c.Pages, PageOf{b.ID, page})
		}
		b.pages.Clear()
	}
	for _, id := range c.Bundles {
		if t := s.TaskBundle(id); t != nil {
			t.dirty = false
		}
	}
	for _, h := range c.Held {
		h.dirty = false
	}
}

// Bag returns the record of a bag submitted here, nil if there is none.
func (s *State) Bag(id job.ID) *Bag { return s.bags.byID.Get(id) }

// BagCount returns how many bags are recorded, ended ones included.
func (s *State) BagCount() int { return s.bags.byID.Len() }

// Bags yields the bags in the order of ids. The state must not be changed meanwhile.
func (s *State) Bags(yield func(*Bag) bool) {
	for _, b := range s.bags.order {
		if !yield(b) {
			return
		}
	}
}

// BagOfRequest returns the bag that was submitted under a request id.
func (s *State) BagOfRequest(requestID string) *Bag {
	if requestID == "" {
		return nil
	}
	return s.bags.requests.Get(hashed.Text(requestID))
}

// TaskBundle returns a live bundle of a bag submitted here, nil if there is none.
func (s *State) TaskBundle(id job.AttemptID) *TaskBundle {
	if b := s.Bag(id.Job); b != nil {
		return b.Live[id.Number]
	}
	return nil
}

// BundlesOfClaim returns the bundles that a claim of a host got and that are live: what it
// gets again when it repeats the claim. The caller must not change them.
func (s *State) BundlesOfClaim(site job.SiteID, generation uint32, stamp uint64) []job.AttemptID {
	return s.bags.granted[claimKey{site, generation, stamp}]
}

// Held returns the record of a bundle that this host holds, nil if there is none.
func (s *State) Held(id job.AttemptID) *HeldBundle { return s.bags.held.Get(id) }

// HeldBundles returns the bundles that this host holds, in the order of their ids.
func (s *State) HeldBundles() []*HeldBundle {
	all := slices.Collect(s.bags.held.All)
	slices.SortFunc(all, func(a, b *HeldBundle) int { return a.ID.Compare(b.ID) })
	return all
}

func (s *State) insertBag(b *Bag) {
	s.bags.byID.Put(b)
	s.bags.order = append(s.bags.order, b)
	if b.RequestID != "" {
		s.bags.requests.Put(b)
	}
}

func (s *State) removeBag(b *Bag) {
	s.bags.byID.Delete(b.ID)
	s.bags.order = slices.DeleteFunc(s.bags.order, func(o *Bag) bool { return o == b })
	if b.RequestID != "" {
		s.bags.requests.Delete(hashed.Text(b.RequestID))
	}
}

func (s *State) touchBag(b *Bag) {
	b.Version++
	if !b.dirty {
		b.dirty = true
		s.changes.Bags = append(s.changes.Bags, b)
	}
}

func (s *State) touchBundle(b *Bag, t *TaskBundle) {
	if !t.dirty {
		t.dirty = true
		s.changes.Bundles = append(s.changes.Bundles, job.AttemptID{Job: b.ID, Number: t.Number})
	}
}

func (s *State) addBundle(b *Bag, t *TaskBundle) {
	b.putLive(t)
	if t.Late {
		b.setLate(t)
	} else {
		b.join(t.Number, &t.Tasks)
		s.bags.granted[t.claim()] = append(s.bags.granted[t.claim()], job.AttemptID{Job: b.ID, Number: t.Number})
	}
}

// forgetClaim takes a bundle from the answers to its claim.
func (s *State) forgetClaim(b *Bag, t *TaskBundle) {
	id := job.AttemptID{Job: b.ID, Number: t.Number}
	left := slices.DeleteFunc(slices.Clone(s.bags.granted[t.claim()]), func(a job.AttemptID) bool { return a == id })
	if len(left) == 0 {
		delete(s.bags.granted, t.claim())
	} else {
		s.bags.granted[t.claim()] = left
	}
}

// dropBundle forgets a bundle that has nothing to report any more.
func (s *State) dropBundle(b *Bag, t *TaskBundle) {
	if t.Late {
		b.late = slices.DeleteFunc(b.late, func(o *TaskBundle) bool { return o == t })
	} else {
		s.forgetClaim(b, t)
	}
	b.dropLive(t.Number)
	s.touchBundle(b, t)
}

func (s *State) touchHeld(h *HeldBundle) {
	if !h.dirty {
		h.dirty = true
		s.changes.Held = append(s.changes.Held, h)
	}
}

func (s *State) insertHeld(h *HeldBundle) {
	s.bags.held.Put(h)
	s.bags.runs[h.Run] = h
}

// ---- restoring, for back ends ----

// RestoreBag adds a bag. Bags must come in the order of their ids, and before all else
// about them. What comes belongs to the state.
func (s *State) RestoreBag(b Bag) error {
	if s.Bag(b.ID) != nil || s.Job(b.ID) != nil || (len(s.bags.order) > 0 && s.bags.order[len(s.bags.order)-1].ID.Compare(b.ID) >= 0) {
		return fmt.Errorf("bag %v out of order: %w", b.ID, ErrCorrupt)
	}
	b.makeMaps()
	s.insertBag(&b)
	return nil
}

// PageSets are one page of the sets of a bag.
type PageSets struct {
	Again, Done, Failed, Cancelled, Stopping job.TaskSet
	Tries                                    map[uint32]Tries
}

// Page returns what [PageSets] has to tell of a page of b.
func (b *Bag) Page(page uint32) PageSets {
	lo := page * PageTasks
	hi := lo + PageTasks
	within := func(set *job.TaskSet) job.TaskSet {
		part := job.TaskRange(lo, hi)
		part.RetainAll(set)
		return part
	}
	p := PageSets{within(&b.Again), within(&b.Done), within(&b.Failed), within(&b.Cancelled), within(&b.Stopping), nil}
	if tried := within(&b.tried); !tried.Empty() {
		p.Tries = make(map[uint32]Tries, tried.Count())
		for task := range tried.All {
			p.Tries[task] = b.Tries[task]
		}
	}
	return p
}

// RestorePage adds a page of the sets of a bag.
func (s *State) RestorePage(id job.ID, p PageSets) error {
	b := s.Bag(id)
	if b == nil {
		return fmt.Errorf("page of bag %v: %w: %w", id, ErrUnknown, ErrCorrupt)
	}
	b.Again.AddAll(&p.Again)
	b.Done.AddAll(&p.Done)
	b.Failed.AddAll(&p.Failed)
	b.Cancelled.AddAll(&p.Cancelled)
	b.Stopping.AddAll(&p.Stopping)
	for task, tries := range p.Tries {
		b.setTries(task, tries)
	}
	return nil
}

// RestoreTaskBundle adds a live bundle of a bag.
func (s *State) RestoreTaskBundle(id job.ID, t TaskBundle) error {
	b := s.Bag(id)
	if b == nil || b.Live[t.Number] != nil {
		return fmt.Errorf("bundle %v#%d twice or without its bag: %w", id, t.Number, ErrCorrupt)
	}
	s.addBundle(b, &t)
	return nil
}

// RestoreHeld adds a bundle that this host holds.
func (s *State) RestoreHeld(h HeldBundle) error {
	if s.Held(h.ID) != nil || s.bags.runs[h.Run] != nil {
		return fmt.Errorf("held bundle %v twice: %w", h.ID, ErrCorrupt)
	}
	s.insertHeld(&h)
	return nil
}

// RestoreHeldBatch adds a batch of a held bundle that the origin has yet to acknowledge.
// Those of a bundle come after it, in the order of their numbers.
func (s *State) RestoreHeldBatch(id job.AttemptID, b TaskBatch) error {
	h := s.Held(id)
	if h == nil {
		return fmt.Errorf("batch of held bundle %v: %w: %w", id, ErrUnknown, ErrCorrupt)
	}
	h.Unacked = append(h.Unacked, b)
	return nil
}

// checkBags is [State.Check] for bags and bundles.
func (s *State) checkBags() error {
	for _, b := range s.bags.order {
		if err := s.checkBag(b); err != nil {
			return fmt.Errorf("bag %v: %w: %w", b.ID, err, ErrCorrupt)
		}
	}
	for _, h := range s.HeldBundles() {
		if err := s.checkHeld(h); err != nil {
			return fmt.Errorf("held bundle %v: %w: %w", h.ID, err, ErrCorrupt)
		}
	}
	return nil
}

func (s *State) checkBag(b *Bag) error {
	tasks := b.Tasks()
	switch {
	case b.ID.Origin != s.site.ID || b.ID.Generation == s.site.Generation && b.ID.Seq >= s.site.NextSeq:
		return fmt.Errorf("it is not of this site, or its number is not below the next, %d", s.site.NextSeq)
	case b.State < job.BagOpen || b.State > job.BagBlocked:
		return fmt.Errorf("its state is %d", uint8(b.State))
	case tasks == 0 || b.Next > tasks:
		return fmt.Errorf("it has %d tasks, of which %d were given out", tasks, b.Next)
	}
	// Below Next every task is in one place.
	seen := job.TaskSet{}
	add := func(what string, set *job.TaskSet) error {
		if seen.Intersects(set) {
			return fmt.Errorf("a task is in %s and elsewhere", what)
		}
		seen.AddAll(set)
		return nil
	}
	for _, part := range []struct {
		what string
		set  *job.TaskSet
	}{{"again", &b.Again}, {"done", &b.Done}, {"failed", &b.Failed}, {"cancelled", &b.Cancelled}} {
		if err := add(part.what, part.set); err != nil {
			return err
		}
	}
	given, err := b.checkCopies()
	if err != nil {
		return err
	}
	for t := range b.Bundles {
		if t.Number == 0 || t.Number > b.Number || t.Site == "" || t.Tasks.Empty() {
			return fmt.Errorf("bundle %d of %d at %q has %d tasks", t.Number, b.Number, t.Site, t.Tasks.Count())
		}
	}
	if err := add("a bundle", &given); err != nil {
		return err
	}
	if last, any := seen.Last(); any && last >= b.Next || seen.Count() != int(b.Next) {
		return fmt.Errorf("%d tasks are somewhere, %d were given out", seen.Count(), b.Next)
	}
	if !given.Covers(&b.Stopping) {
		return fmt.Errorf("a task is to be stopped that is with no site")
	}
	if b.given != given.Count() {
		return fmt.Errorf("%d tasks are with sites, %d are counted", given.Count(), b.given)
	}
	if ended := b.EndedCount() == int(tasks); ended != b.State.Resolved() {
		return fmt.Errorf("it is %v with %d of %d tasks ended", b.State, b.EndedCount(), tasks)
	}
	if b.State == job.BagBlocked && job.Waiting(s.after[b.ID]) == 0 {
		return fmt.Errorf("it is %v and waits for nothing", b.State)
	}
	return nil
}

// checkCopies returns the tasks with sites, and an error if they are with more than they may
// be, or with one twice.
func (b *Bag) checkCopies() (given job.TaskSet, err error) {
	copies := make(map[uint32]holders)
	at := make(map[job.SiteID]*job.TaskSet)
	for t := range b.Bundles {
		if t.Late {
			continue
		}
		if at[t.Site] == nil {
			at[t.Site] = &job.TaskSet{}
		}
		if at[t.Site].Intersects(&t.Tasks) || b.MaxReplicas == 0 && given.Intersects(&t.Tasks) {
			return given, fmt.Errorf("a task of bundle %d is in another one", t.Number)
		}
		at[t.Site].AddAll(&t.Tasks)
		given.AddAll(&t.Tasks)
		if b.MaxReplicas > 0 {
			for task := range t.Tasks.All {
				h := copies[task]
				if h.n > b.MaxReplicas {
					return given, fmt.Errorf("task %d is with more sites than the first one and %d replicas", task, b.MaxReplicas)
				}
				h.by[h.n] = t.Number
				h.n++
				copies[task] = h
			}
		}
	}
	twins := 0
	for task, h := range copies {
		if counted := b.copies[task]; h.n != counted.n || !slices.Equal(h.by[:h.n], counted.by[:h.n]) {
			return given, fmt.Errorf("task %d is in bundles %v, %v are counted", task, h.by[:h.n], counted.by[:min(int(counted.n), len(counted.by))])
		}
		twins += int(h.n) - 1
	}
	if len(copies) != len(b.copies) || twins != b.twins {
		return given, fmt.Errorf("%d tasks with %d replicas are with sites, %d and %d are counted", len(copies), twins, len(b.copies), b.twins)
	}
	return given, nil
}

func (s *State) checkHeld(h *HeldBundle) error {
	if h.ID.Number == 0 || h.Run == 0 || h.Run > s.site.Runs {
		return fmt.Errorf("its number is %d, that of its runs %d of %d", h.ID.Number, h.Run, s.site.Runs)
	}
	if h.Tasks.Empty() && len(h.Unacked) == 0 {
		return fmt.Errorf("it has neither tasks nor batches")
	}
	last := uint32(0)
	for _, batch := range h.Unacked {
		if batch.Number <= last || batch.Number > h.Batch {
			return fmt.Errorf("batch %d behind %d, the latest is %d", batch.Number, last, h.Batch)
		}
		last = batch.Number
	}
	return nil
}
