package mutants

import "slices"

// All lists the mutants.
func All() []Mutant {
	return slices.Concat(first(), wideMutants(), trustMutants(), bagMutants(), checkpointMutants(), estimateMutants(), memberMutants())
}

func first() []Mutant {
	return []Mutant{
		{
			Name: "grant-without-commit", Rule: "a grant leaves although it is not on disk",
			Changes: []Change{{
				"store/apply.go", "	if err := s.move(j, job.Grant); err != nil {\n		return err\n	}\n",
				"	to, ok := j.State.Next(job.Grant)\n	if !ok {\n		return ErrState\n	}\n	j.State = to\n",
			}},
			Caught: twoSites("-crashes", "1"), Breaks: "S5",
		},
		{
			Name: "effects-before-commit", Rule: "effects leave before their facts are on disk",
			Changes: []Change{{"meta/commit/early.go", "	return afterCommit\n}", "	return atOnce\n}"}},
			Caught:  twoSites("-crashes", "1"), Also: [][]string{search("100"), {"-scenario", "origin-killed-before-its-disk-is-done"}}, Breaks: "S5",
		},
		{
			Name: "grant-forgotten-by-a-restart", Rule: "a restarted origin grants a taken claim to another site",
			Changes: []Change{{
				"store/codec/codec.go", "	return r.state.RestoreJob(j)\n",
				"	if j.State == job.Claimed {\n		j.State, j.Holder = job.Queued, \"\"\n	}\n	return r.state.RestoreJob(j)\n",
			}},
			Caught: twoSites("-crashes", "1"), Breaks: "S5",
		},
		{
			Name: "begin-not-on-disk", Rule: "a host starts a job before it has written that it does",
			Changes: []Change{{
				"store/applyhost.go", "	cp.Phase, cp.Begun, cp.BootID, cp.GoesOn = CopyBegun, c.Time, c.BootID, c.GoesOn\n	s.touchCopy(cp)\n",
				"	cp.Phase, cp.Begun, cp.BootID, cp.GoesOn = CopyBegun, c.Time, c.BootID, c.GoesOn\n",
			}},
			Caught: twoSites("-crashes", "1"), Breaks: "S5",
		},
		{
			Name: "copy-accepted-before-commit", Rule: "a host says that it has a copy that is not on its disk",
			Changes: []Change{{"store/applyhost.go", "	cp := s.insertCopy(queued, &c.Request)\n	s.touchCopy(cp)\n", "	s.insertCopy(queued, &c.Request)\n"}},
			Caught:  twoSites("-crashes", "1"), Breaks: "S5",
		},
		{
			Name: "submission-not-on-disk", Rule: "a client is told of a job that is not on disk",
			Changes: []Change{{"store/apply.go", "	s.changes.Payloads = append(s.changes.Payloads, SideRecord{Job: c.ID, Data: c.Payload})\n	s.touchJob(j)\n", "	s.changes.Payloads = append(s.changes.Payloads, SideRecord{Job: c.ID, Data: c.Payload})\n"}},
			Caught:  search("100"), Breaks: "S5",
		},
		{
			Name: "restart-forgets-begun-attempts", Rule: "a restarted host takes what it had begun for waiting",
			Changes: []Change{{
				"store/codec/codec.go", "	return r.state.RestoreCopy(c)\n",
				"	if c.Phase == store.CopyBegun {\n		c.Phase = store.CopyQueued\n	}\n	return r.state.RestoreCopy(c)\n",
			}},
			Caught: twoSites("-crashes", "1"), Breaks: "S5",
		},
		{
			Name: "start-without-grant", Rule: "a host starts what it may only claim",
			Changes: []Change{{"meta/hostclaim.go", "		c.status, c.granted = claiming, nil\n		h.sendClaim(now, c)\n", "		h.begin(now, c, nil)\n"}},
			Caught:  twoSites(), Breaks: "S1",
		},
		{
			Name: "second-grant", Rule: "a taken claim is granted to any site that asks",
			Changes: []Change{{"store/apply.go", "	case j.State.Claim() == job.ClaimTaken:\n		return fmt.Errorf(\"attempt %v is with %s: %w\", c.Attempt, j.Holder, ErrTaken)\n", "	case j.State.Claim() == job.ClaimTaken:\n		return nil\n"}},
			Caught:  twoSites(), Breaks: "S1",
		},
		{
			Name: "stale-claim-granted", Rule: "the claim of an attempt that is over is granted",
			Changes: []Change{{"store/apply.go", "func (c GrantClaim) apply(s *State) error {\n	j, err := s.latest(c.Attempt)\n", "func (c GrantClaim) apply(s *State) error {\n	j, err := s.known(c.Attempt.Job)\n"}},
			Caught:  search(mostSeeds), Breaks: "S1 L2",
		},
		{
			Name: "results-not-fenced", Rule: "the result of any attempt is taken for that of the latest",
			Changes: []Change{{"meta/outcome.go", "	if j.Attempt != m.Attempt.Number || j.Holder != from {\n", "	if j.State.Claim() != job.ClaimTaken && !j.State.Terminal() {\n"}},
			Caught:  search("3000"), Breaks: "S2",
		},
		{
			Name: "result-acknowledged-before-it-is-recorded", Rule: "a host may forget an outcome that its origin has not recorded",
			Changes: []Change{{
				"meta/outcome.go", "	if j.Outcome == nil {\n		or.recordOutcome(now, or.open.Get(j.ID), m.Outcome)\n	}\n}\n",
				"	or.peers.send(from, ResultAck{Attempt: m.Attempt, Accepted: true})\n	if j.Outcome == nil && j.Started != 0 {\n		or.recordOutcome(now, or.open.Get(j.ID), m.Outcome)\n	}\n}\n",
			}},
			Caught: twoSites("-losses", "1"), Breaks: "S2",
		},
		{
			Name: "results-not-repeated", Rule: "a result that a broken stream swallowed is never told again",
			Changes: []Change{{"meta/host.go", "			h.peers.request(now, site, outKey{result, c.rec.ID})\n", ""}},
			Caught:  twoSites("-crashes", "1"), Breaks: "L1",
		},
		{
			Name: "claim-never-times-out", Rule: "a claim without an answer keeps its processors for ever",
			Changes: []Change{{"meta/hostclaim.go", "		if h.over(&d) {\n			continue\n		}\n		c := h.copies.Get(d.attempt)\n", "		if h.over(&d) || d.at <= now {\n			continue\n		}\n		c := h.copies.Get(d.attempt)\n"}},
			Caught:  twoSites("-losses", "1"), Breaks: "L1",
		},
		{
			Name: "withdrawals-lost-for-ever", Rule: "a withdrawal is never sent, and strays are never found",
			Changes: []Change{
				{"meta/claim.go", "	case or.peers.request(now, site, outKey{withdrawal, a}):\n", "	case false:\n"},
				{"meta/antientropy.go", "	or.recall(now, from, outKey{withdrawal, a})\n", ""},
			},
			Caught: search("1000"), Breaks: "L2",
		},
		{
			Name: "begun-copies-dropped", Rule: "a withdrawal drops a copy that has begun",
			Changes: []Change{
				{"meta/host.go", "c != nil && c.rec.Phase == store.CopyQueued {\n			h.drop(now, c)\n", "c != nil {\n			h.drop(now, c)\n"},
				{"store/applyhost.go", "	if cp.Phase != CopyQueued {\n		return fmt.Errorf(\"copy %v has begun: %w\", c.Attempt, ErrState)\n	}\n	s.forgetCopy(cp)\n", "	s.forgetCopy(cp)\n"},
			},
			Caught: search("3000"), Breaks: "S6",
		},
		{
			Name: "any-grant-will-do", Rule: "a grant counts although it does not answer a claim of this copy",
			Changes: []Change{{"meta/hostclaim.go", "	case c.claimed == 0:\n		return false\n	case m.Sent != 0:\n		return m.Sent >= c.claimed\n", "	case m.Attempt.Number > 0:\n		return true\n"}},
			Caught:  twoSites("-duplicates", "2"), Breaks: "S2",
		},
		{
			Name: "old-give-backs-believed", Rule: "a holder that gave the copy back once is taken to have done so again",
			Changes: []Change{{"meta/placed.go", "	return stamp > o.rec.HolderStamp || o.rec.HolderGeneration != or.peers.generationOf(o.rec.Holder)\n", "	return true\n"}},
			Caught:  []string{"-scenario", "late-give-back"}, Breaks: "S3",
		},
		{
			Name: "new-disk-gets-the-old-grant", Rule: "a host that lost its disk gets the grant again that it may have used",
			Changes: []Change{{"store/apply.go", "j.Holder == c.Site && j.HolderGeneration == c.Generation:\n", "j.Holder == c.Site:\n"}},
			Caught:  []string{"-scenario", "claim-after-a-lost-folder"}, Breaks: "S2",
		},
		{
			Name: "loss-runs-again-under-wait", Rule: "a job that its host lost is run again although it may still run",
			Changes: []Change{{"meta/attempts.go", "	return o.rec.Request.OnSiteLost != job.Wait && o.rec.Begun()+1 < job.MaxAttempts\n", "	return o.rec.Begun()+1 < job.MaxAttempts\n"}},
			Caught:  search("3000"), Breaks: "S2",
		},
		{
			Name: "lease-clock-from-the-wrong-end", Rule: "a host counts its lease from when the answer came",
			Changes: []Change{{"meta/hostlease.go", "	until := sent.Add(term)\n", "	until := now.Add(term)\n"}},
			Caught:  []string{"-scenario", "answers-late-under-a-lease"}, Breaks: "S2",
		},
		{
			Name: "origin-does-not-wait-for-the-lease", Rule: "an origin takes a claim back before the lease has ended",
			Changes: []Change{{"meta/lease.go", "	o.lease = now.Add(or.cfg.Timing.heldFor(term))\n", "	o.lease = now.Add(or.cfg.Timing.heldFor(term) / 2)\n"}},
			Caught:  search("3000"), Breaks: "S2",
		},
		{
			Name: "lease-forgotten-by-a-restart", Rule: "a restarted origin takes leases for ended",
			Changes: []Change{{"meta/restore.go", "or.grantLease(now, o)", "or.revoke(now, o, job.LeaseExpired, false)"}},
			Caught:  search("3000"), Breaks: "S2",
		},
		{
			Name: "no-margin-for-clocks", Rule: "an origin waits for the lease's term only, whatever clocks differ by",
			Changes: []Change{{"meta/lease.go", "	return term + drift + t.LeaseMargin\n", "	_ = drift\n	return term\n"}},
			Caught:  search(mostSeeds), Breaks: "S2",
		},
		{
			Name: "lease-outlives-its-claim", Rule: "the lease of a holder that gave the claim back is held against the next one",
			Changes: []Change{
				{"meta/placed.go", "		o.at, o.lease = nil, 0\n		if holder != or.self &&", "		o.at = nil\n		if holder != or.self &&"},
				{"meta/lease.go", "o.rec.State.Claim() == job.ClaimTaken && o.rec.Holder != or.self && o.rec.Outcome == nil", "o.rec.State.Claim() == job.ClaimTaken && o.rec.Outcome == nil"},
			},
			Caught: search(mostSeeds), Breaks: "S2",
		},
		{
			Name: "cancellation-not-on-disk", Rule: "a client is told that a job will be cancelled, which is not on disk",
			Changes: []Change{{"store/codec/codec.go", "	return r.state.RestoreJob(j)\n", "	j.CancelRequested = false\n	return r.state.RestoreJob(j)\n"}},
			Caught:  search("3000"), Breaks: "S5",
		},
		{
			Name: "remote-starts-ignore-local-plans", Rule: "a remote copy may delay local jobs",
			Changes: []Change{{"sitesched/dualqueue.go", "	case s.cfg.Backfill.plans() || s.cfg.Scope == ScopeAll && s.blocked != gap:\n", "	case s.cfg.Backfill.plans():\n"}},
			Caught:  search("3000"), Breaks: "S4",
		},
		{
			Name: "elder-takes-no-notice-of-local-jobs", Rule: "where a remote copy has waited long, remote starts move guarantees of local jobs",
			Changes: []Change{{"sitesched/elder.go", "	s.promised(now, f, around)\n", "	if f.build(now, s.free, &s.run); around {\n		s.planLocal(now)\n	}\n"}},
			Caught:  search("2000"), Breaks: "S4",
		},
		{
			Name: "processors-used-twice", Rule: "a start does not take its processors from the free ones",
			Changes: []Change{{"sitesched/occupancy.go", "	s.free -= int64(r.charge)\n	s.run.insert(", "	s.run.insert("}},
			Caught:  twoSites(), Breaks: "S6",
		},
	}
}

// twoSites explores a world of two sites and one job, with what may go wrong.
func twoSites(bounds ...string) []string {
	return append([]string{"-sites", "2", "-copies", "2", "-crashes", "0", "-losses", "0", "-duplicates", "0", "-timeouts", "0"}, bounds...)
}

// mostSeeds is the most that any mutant takes.
const mostSeeds = "6000"

// search looks at so many schedules of faults at most.
func search(seeds string) []string { return []string{"-seeds", seeds} }
