package mutants

// wideMutants are planted in code that was wrong once, where only wide schedules look.
func wideMutants() []Mutant {
	// once has sites tell of free processors once a second: the seeds of rare mutants are of that time.
	once := Change{"meta/dry.go", "pause := max(dryPause, ", "pause := max(2*dryPause, "}
	untold := Change{"meta/dry.go", "d.Startable() > h.dry.free && !d", "d.Startable() > h.dry.free && now < 0 && !d"}
	pauses := Change{"meta/placed.go", "		if !or.conserving() || slices.ContainsFunc(o.refused, func(r refusal) bool { return !ofState(r.reason) }) {\n", "		if o.rec != nil {\n"}
	return []Mutant{
		{
			Name: "no-top-up", Rule: "a job that has fewer than K copies never gets another",
			Changes: []Change{{"meta/conserve.go", "	or.topUp(now)\n}", "}"}},
			Caught:  wideSeed("19"), Breaks: "L5",
		},
		{
			Name: "lost-there-for-good", Rule: "a job gets no copy at a site that lost it until another site changes",
			Changes: []Change{{"meta/conserve.go", "	return o.lost.avoidsAny(now) || ", "	return "}},
			Caught:  wideSeed("333"), Breaks: "L5",
		},
		{
			Name: "withdrawn-there-for-good", Rule: "a job that lacks a copy while a withdrawal of it is unanswered gets none there until another site changes",
			Changes: []Change{{"meta/conserve.go", "slices.ContainsFunc(able, func(s job.SiteID) bool { return or.withdrawing(o, s) }) ||\n", "\n"}},
			Caught:  wideSeed("811"), Breaks: "L5",
		},
		{
			Name: "moved-and-never-back", Rule: "a job gets no copy at the site that one was moved from, for minutes, though it would start there",
			Changes: []Change{{"meta/conserve.go", "<< o.moves), moved: true, at: now, early: now.Add(pause)})", "<< o.moves)})"}},
			Tests:   []string{"./meta", "TestTranscripts"},
		},
		{
			Name: "idle-sites-not-fed", Rule: "an idle site gets no copies of jobs that wait elsewhere",
			Changes: []Change{{"meta/conserve.go", "	or.feedIdle(now) //", "	//"}},
			Caught:  wideSeed("1"), Breaks: "L4",
		},
		{
			Name: "work-not-conserved", Rule: "nothing is moved or added at all",
			Changes: []Change{{"meta/conserve.go", "	c.next, c.last = job.Never, now\n	if !or.conserving() {", "	c.next, c.last = job.Never, now\n	if or.conserving() {\n		return\n	}\n	if !or.conserving() {"}},
			Caught:  wideSeed("1"), Breaks: "L4",
		},
		{
			Name: "refusals-never-expire", Rule: "a site that was full once gets no copy of the same attempt again",
			Changes: []Change{{"meta/dealings.go", "	case ofState(why):\n		return now\n", "	case ofState(why):\n		return job.Never\n"}},
			Caught:  wideSeed("36"), Breaks: "L5",
		},
		{
			Name: "sent-not-counted", Rule: "an origin does not count what it has just sent",
			Changes: []Change{{"meta/dealings.go", "		s.Count(&o.rec.Request, 1)\n", ""}},
			Caught:  []string{"-scenario", "burst-at-idle-sites"}, Breaks: "job 13",
		},
		{
			Name: "stays-aside", Rule: "what was set aside is never brought back",
			Changes: []Change{{"meta/hostaside.go", "	delete(h.aside, origin)\n	h.site.BringBack(now, origin)\n", "	delete(h.aside, origin)\n"}},
			Caught:  wideSeed("4"), Breaks: "L4",
		},
		{
			Name: "start-failure-is-an-outcome", Rule: "a job fails because its host cannot start processes",
			Changes: []Change{{"meta/starting.go", "	h.pauseStarts(now, ev.Reason)\n	if c.killed {", "	if h.end(now, c, job.Outcome{Kind: job.Failure, End: now, Reason: ev.Reason}); true {\n		return\n	}\n	if c.killed {"}},
			Caught:  wideSeed("3"), Breaks: "L1",
		},
		{
			Name: "silent-origin-keeps-claiming", Rule: "claims back off by copy, not by origin",
			Changes: []Change{{"meta/hostclaim.go", "		h.unanswered(now, c)\n		h.putBack(now, c)\n", "		h.putBack(now, c)\n"}},
			Caught:  wideSeed("228"), Breaks: "L4",
		},
		{
			Name: "own-site-not-noticed", Rule: "an origin does not notice that it has run dry itself",
			Changes: []Change{{"meta/engine.go", "		e.origin.idleHere(now)\n", ""}},
			Caught:  wideSeed("185"), Breaks: "L4",
		},
		{
			Name: "own-site-fed-when-dry-only", Rule: "an origin's free processors do not count while anything waits there",
			Changes: []Change{{"meta/feed.go", "	if !own.Draining && !own.NotStarting {\n		or.addTarget", "	if isDry(own) {\n		or.addTarget"}},
			Caught:  wideSeed("179"), Breaks: "L4",
		},
		{
			Name: "pause-outlasts-fullness", Rule: "a job that full sites refused waits out a growing pause though one has run dry, or a copy has left it",
			Changes: []Change{pauses, {"meta/origin.go", "!o.wantedBy(willing) && (!room || !o.crowded):\n", "(len(willing) == 0 || !room || true):\n"}},
			Caught:  wideSeed("369"), Breaks: "L5",
		},
		{
			Name: "pause-outlasts-room", Rule: "a job that full sites refused waits out a growing pause though a copy has left one",
			Changes: []Change{pauses, {"meta/origin.go", "&& (!room || !o.crowded):\n", "&& (!room || !o.crowded || true):\n"}},
			Caught:  wideSeed("369"), Breaks: "L5",
		},
		{
			Name: "reminder-of-another-copy", Rule: "what reminds of a granted claim counts for another copy of that attempt, which claimed later",
			Changes: []Change{{"meta/hostclaim.go", "	return m.Stamp == 0 || m.Stamp+uint64(c.reclaimed) >= c.stamp\n", "	return true\n"}},
			Tests:   []string{"./meta", "TestTranscripts"},
		},
		{
			Name: "refusal-outlasts-restart", Rule: "a site that refused a copy for what the job is gets none after a restart with another configuration",
			Changes: []Change{{"meta/placed.go", "(anew && !r.moved || r.reason == job.Forgotten)", "r.reason == job.Forgotten"}},
			Caught:  wideSeed("40003626"), Breaks: "L5",
		},
		{
			Name: "pause-outlasts-drain", Rule: "a job that others refused waits out a growing pause though its own site was resumed",
			Changes: []Change{{"meta/engine.go", "		e.origin.retrySoon(now, e.self)\n	}\n	e.reply", "		e.origin.conserveSoon(now)\n	}\n	e.reply"}},
			Caught:  wideSeed("40008620"), Breaks: "L5",
		},
		{
			Name: "declined-copies-cost", Rule: "a site that was full once, and refuses copies for what their jobs are, is offered one with each pause",
			Changes: []Change{{"meta/placed.go", "	case m.Accepted, forGood(m.Reason): //", "	case m.Accepted: //"}},
			Caught:  wideSeed("43003320"), Breaks: "L5",
		},
		{
			Name: "claim-kept-beside-its-origin", Rule: "an attempt whose input came late keeps its claim beside its own idle origin, where copies of others wait",
			Changes: []Change{once, {"meta/hosthold.go", "(!d.Load.Blocked || ", "(isDry(d) || p == nil && "}},
			Caught:  wideSeed("43003115"), Breaks: "L4",
		},
		{
			Name: "freed-processors-unseen", Rule: "a site that a copy was moved from gets one back for minutes only when nothing waits there, whatever comes free",
			Changes: []Change{{"meta/feed.go", "isDry(t.load), t.freed)", "isDry(t.load), 0)"}},
			Caught:  wideSeed("50001807"), Breaks: "L4",
		},
		{
			Name: "strays-stay", Rule: "a host keeps a copy that it refused first and took when it was sent again",
			Changes: []Change{{"meta/placed.go", "	if !or.peers.link(from).waits(outKey{withdrawal, a}) {\n", "	if false {\n"}},
			Tests:   []string{"./meta", "TestTranscripts"},
		},
		{
			Name: "place-lost-for-a-refusal", Rule: "a job is moved to a site that has refused it for what it is before",
			Changes: []Change{{"meta/openjob.go", "r.until == job.Never && forGood(r.reason) && !ofLevel(r.reason) }", "r.until == job.Never && false }"}},
			Tests:   []string{"./meta", "TestTranscripts"},
		},
		{
			Name: "place-not-given-back", Rule: "a job that was refused where it was moved waits out a pause though the site that it left has answered",
			Changes: []Change{{"meta/claim.go", "		or.place(now, o) // it alone", "		// it alone"}},
			Tests:   []string{"./meta", "TestTranscripts"},
		},
		{
			Name: "dropped-by-a-late-withdrawal", Rule: "a copy that a host has dropped and nobody wanted withdrawn is not sent again",
			Changes: []Change{{"meta/claim.go", "o.rec.State == job.Queued && !awaited && i >= 0", "o.rec.State == job.Queued && awaited && i >= 0"}},
			Caught:  wideSeed("52001366"), Breaks: "L5",
		},
		{
			Name: "unsent-copy-costs", Rule: "a copy that does not leave counts as what a full site was offered",
			Changes: []Change{{"meta/claim.go", "	case !sent:\n		or.noteUnsent(now, site)\n", "	case !sent:\n"}},
			Tests:   []string{"./meta", "TestTranscripts"},
		},
		{
			Name: "refused-before-room", Rule: "a refusal of what was offered before a copy left counts after that",
			Changes: []Change{once, {"meta/placed.go", "	case !or.noteAnswered(from) && ofCount(m.Reason): //", "	case !or.noteAnswered(from) && false: //"}},
			Caught:  wideSeed("58508205"), Breaks: "L4",
		},
		{
			Name: "grants-from-anybody", Rule: "a host starts what another site than the job's origin grants",
			Changes: []Change{heardFromAnybody("verdict")},
			Caught:  wideSeed("1322"), Breaks: "L2",
		},
		{
			Name: "copies-from-anybody", Rule: "a host takes copies of a job from another site than its origin",
			Changes: []Change{heardFromAnybody("place-copy")},
			Caught:  wideSeed("1"), Breaks: "L2",
		},
		{
			Name: "withdrawals-from-anybody", Rule: "any site may have a host drop another's copies",
			Changes: []Change{heardFromAnybody("withdraw")},
			Caught:  wideSeed("24"), Breaks: "L5",
		},
		{
			Name: "stops-from-anybody", Rule: "any site may stop what a host runs for another",
			Changes: []Change{heardFromAnybody("stop")},
			Caught:  wideSeed("85"), Breaks: "L5",
		},
		{
			Name: "start-pause-never-ends", Rule: "a host that could not start does not try again, and spins",
			Changes: []Change{{"meta/starting.go", "	s.pausing = false\n	h.passing = true\n", "	h.passing = true\n"}},
			Caught:  wideSeed("3"), Breaks: "spin",
		},
		{
			Name: "restart-keeps-what-does-not-fit", Rule: "a site that comes back smaller keeps copies that it can never run",
			Changes: []Change{{"meta/restore.go", "if c.outgrown = h.outgrown(rec.Request); c.outgrown != job.NoReason {", "if c.outgrown = job.NoReason; c.outgrown != job.NoReason {"}},
			Caught:  wideSeed("185"), Breaks: "L4",
		},
		{
			Name: "launched-beside-what-runs", Rule: "a site that comes back smaller launches what it had begun, whatever runs there",
			Changes: []Change{once, {"meta/outgrown.go", "	case h.site.Overfull(now):\n", "	case h.site.Overfull(now) && now < 0:\n"}},
			Caught:  wideSeed("10050419"), Breaks: "S6",
		},
		{
			Name: "wider-than-all-goes-on", Rule: "a run of tasks that takes more than a site has left goes on with the next one",
			Changes: []Change{{"sitesched/load.go", "s.room() < 0 || s.outgrown > 0", "s.room() < 0"}},
			Caught:  wideSeed("10076130"), Breaks: "S6",
		},
		{
			Name: "given-up-has-not-begun", Rule: "a host that admitted an origin again is believed that nothing of what it has given up had begun",
			Changes: []Change{{"meta/peers.go", "l.givenUp != 0 && step <= l.givenUp", "l.givenUp != 0 && step < 0"}},
			Caught:  wideSeed("10090151"), Breaks: "S2",
		},
		{
			Name: "late-grant-kept", Rule: "a host whose grant comes late keeps the claim although others could start sooner",
			Changes: []Change{{"meta/hostclaim.go", "		if c.granted != nil && c.status == waiting && h.copies.Get(c.rec.ID) == c {\n", "		if c.granted != nil && c.status == launched {\n"}},
			Caught:  wideSeed("14"), Breaks: "L4",
		},
		{
			Name: "elders-not-respected", Rule: "younger copies of other sites overtake one that has waited long, without end",
			Changes: []Change{{"sitesched/dualqueue.go", "	case s.cfg.Patience > 0 && s.passElders(now):\n", "	case s.cfg.Patience < 0 && s.passElders(now):\n"}},
			Caught:  []string{"-scenario", "wide-job-among-narrow-ones"}, Breaks: "L4",
		},
		{
			Name: "kill-waits-for-the-disk", Rule: "a job that fills the disk of its host cannot be cancelled",
			Changes: []Change{{"meta/commit/early.go", "			return atOnce\n		}\n	case meta.Send:\n", "			return afterCommit\n		}\n	case meta.Send:\n"}},
			Caught:  wideSeed("190"), Breaks: "L1",
		},
		{
			Name: "away-origins-are-load", Rule: "copies of origins out of reach count as load",
			Changes: []Change{{"sitesched/load.go", "int32(s.local.live + s.remote.live), //", "int32(s.local.live + s.remote.live + s.away), //"}},
			Caught:  wideSeed("4"), Breaks: "L4",
		},
		{
			Name: "probe-stays-queued", Rule: "the copy that was to claim stays in the queue when its origin goes out of reach",
			Changes: []Change{{"meta/hostsilent.go", "	case !s.probe.Job.IsZero(): // the copy that was", "	case !s.probe.Job.IsZero() && now < 0: // the copy that was"}},
			Caught:  wideSeed("73"), Breaks: "L4",
		},
		{
			Name: "one-offer-a-load", Rule: "a site that took no copy of a job that started elsewhere is offered the next with its next load, which comes in its time only",
			Changes: []Change{{"meta/dealings.go", "	s.Count(&o.rec.Request, -1)\n	or.conserveAtFree(now, site)\n", "	s.Count(&o.rec.Request, -1)\n"}, untold},
			Caught:  wideSeed("2636"), Breaks: "L4",
		},
		{
			Name: "withdrawn-answers-nothing", Rule: "an origin stays set aside for long when the copy that was to claim is withdrawn, whether it has claimed or not",
			Changes: []Change{
				once,
				{"meta/hostsilent.go", "c == nil && s.left == m.Attempt", "c == nil && now < 0 && s.left == m.Attempt"},
				{"meta/hostsilent.go", "	pause := h.cfg.Timing.Claim //", "	pause := h.cfg.Timing.Backoff //"},
			},
			Caught: append(wideSeed("4868"), "-hostile"), Breaks: "L4",
		},
		{
			Name: "freed-processors-untold", Rule: "a site tells of more free processors with its next load only",
			Changes: []Change{untold},
			Caught:  wideSeed("34315"), Breaks: "L4",
		},
		{
			Name: "own-starts-underrated", Rule: "an origin takes a job back only where that delays none of those that wait there, though it would start",
			Changes: []Change{{"sitesched/atonce.go", "s.cfg.Backfill != EASY ||", "s.cfg.Backfill == EASY ||"}},
			Caught:  []string{"-scenario", "taken-back-beside-those-that-wait"}, Breaks: "L4",
		},
		{
			Name: "unanswered-and-kept", Rule: "a host that is busy when its claim has run out keeps the copy, which may be its own, until it is free",
			Changes: []Change{{"meta/antientropy.go", "case doubts[l.site]:", "case doubts[l.site] && now < 0:"}},
			Caught:  []string{"-scenario", "answer-lost-and-host-busy"}, Breaks: "job 2",
		},
		{
			Name: "kill-waits-for-the-revocation", Rule: "a job that fills the disk of its host runs on when its origin is revoked",
			Changes: []Change{{"meta/revoke.go", "Lease: true, Early: true})", "Lease: true})"}},
			Caught:  wideSeed("25451"), Breaks: "L1",
		},
		{
			Name: "stale-output-collected", Rule: "what a stale attempt leaves is collected to its end, though nobody wants it",
			Changes: []Change{{"meta/peers.go", "Stop{Attempt: key.attempt, Stale: stale(", "Stop{Attempt: key.attempt, Stale: p == nil && stale("}},
			Caught:  wideSeed("1458"), Breaks: "L2",
		},
		{
			Name: "reload-changes-nothing-elsewhere", Rule: "a site that has taken up another configuration is not asked again",
			Changes: []Change{{"cluster/view.go", "	if p.Digest.Settings == p.settings ||", "	if p.Digest.Settings != 0 || p.Digest.Settings == p.settings ||"}},
			Caught:  wideSeed("401"), Breaks: "L5",
		},
		{
			Name: "guests-barred-unsaid", Rule: "tasks are offered to a site that takes no such guests, and to no other",
			Changes: []Change{{"meta/place/filter.go", "c.Digest.Bars(r.Job.Request); why", "c.Digest.Bars(r.Job.Request); c.Digest.KeptFree < 0 && why"}},
			Caught:  wideSeed("2563853"), Breaks: "L1",
		},
		{
			Name: "slack-is-no-guest", Rule: "a site that bounds guests takes no tasks, as their pilots are longer than that",
			Changes: []Change{{"meta/taskhost.go", "	r.Walltime = shape.Shortest() + 1\n", ""}},
			Tests:   []string{"./meta", "TestTranscripts"},
		},
		{
			Name: "full-sites-wait-with-the-others", Rule: "a job that a site refuses for what it is is offered to full ones less and less often, too",
			Changes: []Change{{"meta/origin.go", "	if or.conserving() { // the pauses", "	if or.conserving() && now < 0 { // the pauses"}},
			Tests:   []string{"./meta", "TestTranscripts"},
		},
		{
			Name: "held-beside-what-waits", Rule: "a host keeps an attempt that waits for its turn, though it may start elsewhere before what waits there",
			Changes: []Change{{"meta/hosthold.go", "(!d.Load.Blocked ||", "(isDry(d) ||"}},
			Tests:   []string{"./meta", "TestTranscripts"},
		},
		{
			Name: "freed-and-taken-unheard", Rule: "processors that came free and were taken before a site said so are no reason to move a copy back there",
			Changes: []Change{{"cluster/view.go", " || d.TimesFreed != p.Digest.TimesFreed {", " {"}},
			Tests:   []string{"./meta", "TestTranscripts"},
		},
		{
			Name: "made-way-and-back", Rule: "a job that made way for a site's own before it had started is offered to that site again at once",
			Changes: []Change{{"meta/placed.go", "(reason == job.MadeWay || ", "("}},
			Caught:  wideSeed("80021220"), Breaks: "L4",
		},
		{
			Name: "wide-probe-keeps-its-turn", Rule: "the copy that is to see whether its origin answers waits for room, though a narrower one has come",
			Changes: []Change{{"meta/hostsilent.go", "|| !c.narrower(p) {", "|| now > 0 {"}},
			Tests:   []string{"./meta", "TestTranscripts"},
		},
		{
			Name: "ends-soon-by-any-clock", Rule: "a guest that an earlier daemon began stays if it is to end soon by the clock of this one",
			Changes: []Change{{"meta/evict.go", "	if c.adopted {\n", "	if c.adopted && now < 0 {\n"}},
			Caught:  wideSeed("83057007"), Breaks: "E3",
		},
		{
			Name: "cannot-start-and-back", Rule: "a job that a site could not start is offered to that site again at once",
			Changes: []Change{{"meta/placed.go", " || reason == job.CannotStart) {", ") {"}},
			Tests:   []string{"./meta", "TestTranscripts"},
		},
		{
			Name: "low-disk-ignored", Rule: "a site whose disk is low on room takes work of others as before",
			Changes: []Change{{"meta/lowdisk.go", "	h.starting.low = job.ClipReason(ev.Low)\n", "	_ = job.ClipReason\n"}},
			Caught:  wideSeed("90000648"), Breaks: "L4",
		},
		{
			Name: "low-disk-puts-pilots-back", Rule: "a pilot whose turn comes when the disk has run low is put back, and proposed again in that instant, without end",
			Changes: []Change{{"meta/pilot.go", "		th.unqueue(now, p) // put back, it would be proposed again in this instant\n", "		th.host.site.Postpone(now, id, now)\n		th.host.passing = true\n"}},
			Caught:  []string{"-scenario", "low-disk-while-a-pilot-waits"}, Breaks: "crash",
		},
		{
			Name: "low-disk-keeps-copies", Rule: "a site whose disk runs low on room keeps what waits there for others",
			Changes: []Change{{"meta/lowdisk.go", "		h.returnCopies(now, job.DiskLow)\n", "		h.passing = true\n"}},
			Tests:   []string{"./meta", "TestTranscripts"},
		},
		{
			Name: "pause-outlasts-low-disk", Rule: "a site that could not start jobs for want of room waits out its pause though there is room again",
			Changes: []Change{{"meta/lowdisk.go", "		h.starting.until = now //", "		h.starting.until = max(h.starting.until, now) //"}},
			Tests:   []string{"./meta", "TestTranscripts"},
		},
		{
			Name: "mute-site-first", Rule: "jobs are offered to idle sites that leave such offers unanswered, before others",
			Changes: []Change{{"meta/peers.go", "	return l != nil && l.mute\n", "	return l != nil && l.mute && !l.up\n"}},
			Caught:  wideSeed("83029026"), Breaks: "L4",
		},
		{
			Name: "place-lost-with-the-attempt", Rule: "a job that another site could not start goes to the end of its own site's queue",
			Changes: []Change{{"meta/losses.go", "	if o.rec.Request.Level > 0 {\n", "	if now > 0 {\n"}},
			Tests:   []string{"./meta", "TestWaitsSince"},
		},
		{
			Name: "one-copy-too-many", Rule: "a site takes one copy more of an origin than its limit says",
			Changes: []Change{{"meta/host.go", "	case h.remote[from] >= h.cfg.Limits.CopiesPerOrigin:\n", "	case h.remote[from] > h.cfg.Limits.CopiesPerOrigin:\n"}},
			Caught:  wideSeed("22"), Breaks: "limits",
		},
		{
			Name: "ties-by-name", Rule: "of sites that are alike all origins choose the one whose name comes first",
			Changes: []Change{{"meta/place/candidate.go", "	if r.Policy.Draws {\n", "	if r.Policy.Draws && len(r.Sites) == 0 {\n"}},
			Caught:  []string{"-scenario", "equal-sites-are-drawn"}, Breaks: "job 12",
		},
	}
}

// wideSeed plays one wide schedule.
func wideSeed(seed string) []string { return []string{"-wide", "-seeds", "1", "-first-seed", seed} }
