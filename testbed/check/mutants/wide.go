package mutants

// wideMutants are planted in code that was wrong once, where only wide schedules look.
func wideMutants() []Mutant {
	return []Mutant{
		{
			Name: "no-top-up", Rule: "a queued job that lost a copy never gets another",
			Changes: []Change{{"meta/conserve.go", "	or.topUp(now)\n	or.feedIdle(now)\n", "	or.feedIdle(now)\n"}},
			Caught:  wideSeed("369"), Breaks: "L4",
		},
		{
			Name: "idle-sites-not-fed", Rule: "an idle site gets no copies of jobs that wait elsewhere",
			Changes: []Change{{"meta/conserve.go", "	or.topUp(now)\n	or.feedIdle(now)\n", "	or.topUp(now)\n"}},
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
			Caught:  wideSeed("36"), Breaks: "L4",
		},
		{
			Name: "sent-not-counted", Rule: "an origin does not count what it has just sent",
			Changes: []Change{{"meta/dealings.go", "		s.Count(&o.rec.Request, 1)\n", ""}},
			Caught:  wideSeed("513"), Breaks: "L4",
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
			Name: "pause-outlasts-fullness", Rule: "a job that a full site refused waits out its pause though that site has run dry",
			Changes: []Change{{"meta/origin.go", "		case now < o.retryAt && !dry:\n", "		case now < o.retryAt && (!dry || true):\n"}},
			Caught:  wideSeed("369"), Breaks: "L4",
		},
	}
}

// wideSeed plays one wide schedule.
func wideSeed(seed string) []string { return []string{"-wide", "-seeds", "1", "-first-seed", seed} }
