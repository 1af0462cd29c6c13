package sim

import (
	"time"

	"kith/meta"
	"kith/meta/commit"
)

// flush seals what has gathered, and lets the effects go once it is durable.
func (s *Site) flush() {
	if s.barrier.UnderWay() {
		return
	}
	var closing []closed
	if !s.deposed {
		closing = s.w.watch.closing(s, s.barrier.Held())
	}
	ready, ok := s.barrier.Next()
	if s.records != nil {
		if ok {
			s.records.Sealed()
		}
		s.records.Turn()
	}
	if !ok {
		return
	}
	if s.quorum != nil && !ready.Empty() {
		s.propose(&ready, closing)
		return
	}
	d := &s.w.cfg.Disk
	if ready.Empty() || d.Sync+d.SyncJitter+s.slow == 0 && !s.diskFull() {
		s.commit(&ready, closing)
		return
	}
	delay := d.Sync + s.slow
	if d.SyncJitter > 0 {
		delay += time.Duration(s.w.rng.Int64N(int64(d.SyncJitter)))
	}
	pending := new(commit.Ready)
	*pending = ready
	s.pending, s.closing = pending, closing
	life := s.life
	var synced func()
	synced = func() {
		switch {
		case s.life != life || s.engine == nil || s.pending != pending:
			return // see tear, or done already
		case s.frozen:
			s.hold(synced)
			return
		case s.diskFull():
			s.w.trace("%s: commit fails, the disk is full", s.cfg.ID)
			s.w.agenda.add(s.w.now.Add(fullRetry), message, 0, call(synced))
			return
		}
		s.pending = nil
		s.commit(pending, closing)
		if s.engine != nil {
			s.flush()
		}
	}
	s.synced = synced
	s.w.agenda.add(s.w.now.Add(delay), message, 0, call(synced))
}

// commit makes a batch durable and carries out what waited for it.
func (s *Site) commit(ready *commit.Ready, closing []closed) {
	effects, err := ready.Commit()
	if err != nil {
		s.w.watch.violate("commit at %s: %v", s.cfg.ID, err)
		return
	}
	if s.quorum != nil && s.lead.Number() != s.quorum.Latest() {
		s.w.watch.violate("R3: effects of lead %d of site %s leave unasked, and lead %d has begun", s.lead.Number(), s.cfg.ID, s.quorum.Latest())
	}
	s.w.watch.depends.committed(closing)
	// Callbacks may feed the site again while its effects are carried out.
	barrier := s.barrier
	barrier.Done()
	s.carryAll(effects, closing) // which keeps none of them
	barrier.Recycle(effects)
}

// carryAll carries out the effects of a batch, which closes jobs: what is said in it may
// come from before their end.
func (s *Site) carryAll(effects []meta.Effect, closing []closed) {
	life := s.life
	for i, f := range effects {
		if s.engine == nil || s.life != life {
			break // killed between two effects
		}
		if c := s.w.cfg.CrashBefore; c != nil && !s.frozen && c(s.w, s, f) {
			s.Crash()
			break
		}
		if s.frozen {
			s.stall(effects[i:], closing)
			return
		}
		s.carry(f)
	}
	if !s.deposed { // or it was noted when the next one began
		s.w.watch.durable(closing)
	}
}

// carry carries out one effect.
func (s *Site) carry(f meta.Effect) {
	if s.deposed && !s.mayLeave(f) {
		return
	}
	if s.w.cfg.Trace != nil {
		s.tell(f)
	}
	switch f := f.(type) {
	case meta.Reply:
		if done := s.waiters[f.Token]; done != nil {
			delete(s.waiters, f.Token)
			done(f)
		} else {
			s.answered(&f)
		}
	case meta.Send:
		s.w.net.send(s, f)
	case meta.Grant:
		s.w.watch.granted(s, f)
		s.w.net.send(s, meta.Send{To: f.To, Message: f.Message(resumePayload(f.Resume))}) // simulated jobs run nothing else
	case meta.Launch:
		s.stage(f)
	case meta.Extend:
		s.extend(f)
	case meta.Kill:
		s.kill(f)
	case meta.AskCheckpoint:
		s.askCheckpoint(f)
	case meta.CopySaved:
		s.copySaved(f)
	case meta.FetchSaved:
		s.fetchSaved(f)
	case meta.Unstage:
		if s.staged[f.Attempt] != nil {
			delete(s.staged, f.Attempt)
			s.soon(meta.AttemptMissing{Attempt: f.Attempt})
		}
	case meta.Adopt:
		s.adopt(f)
	case meta.Clear:
		s.cleared(f.Attempt)
	case meta.Fetch:
		s.fetch(f)
	case meta.Unfetch:
		delete(s.fetching, f.Attempt)
		delete(s.fetchingSaved, f.Attempt)
	case meta.GrantTasks:
		s.grantTasks(f)
	case meta.FetchTasks:
		s.fetchTasks(f)
	case meta.Foresee:
		s.soon(meta.Foreseen{Number: f.Number, Inquiry: f.Inquiry, Answer: s.w.stage.Play(f.Inquiry)})
	case meta.Changed:
		s.w.watch.changed(s, f)
	case meta.TrustChanged:
		s.trustChanged(f)
	}
}
