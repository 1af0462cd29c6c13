package mutants

// bagMutants are bugs in what bags rest on: each is caught by the search with bags.
func bagMutants() []Mutant {
	return []Mutant{
		{
			Name: "task-granted-twice", Rule: "a task that waits again is given to one site after the other",
			Changes: []Change{{"store/applybundle.go", "	b.noteAll(&again)\n	b.Again.RemoveAll(&again)\n", "	b.noteAll(&again)\n"}},
			Caught:  bagSearch, Breaks: "crash",
		},
		{
			Name: "repeated-ask-gets-new-bundles", Rule: "a claim for tasks that is repeated gets tasks again",
			Changes: []Change{{"meta/bagclaim.go", "	if bo.answers.New(site, generation, m.Stamp) {\n", "	if bo.answers.New(site, generation, m.Stamp) || len(bo.open) > 0 {\n"}},
			Caught:  bagSearch, Breaks: "S1",
		},
		{
			Name: "empty-answer-is-none", Rule: "a claim for tasks that got none gets some when it is repeated",
			Changes: []Change{{"meta/bagclaim.go", "	if bo.answers.New(site, generation, m.Stamp) {\n", "	if bo.answers.New(site, generation, m.Stamp) || len(bo.st.BundlesOfClaim(site, generation, m.Stamp)) == 0 {\n"}},
			Caught:  bagSearch, Breaks: "S1",
		},
		{
			Name: "begun-tasks-returned", Rule: "a restarted host gives back the tasks of its bundles, of which some run",
			Changes: []Change{{"meta/taskback.go", "		for task := range rec.Tasks.All {\n", "		th.drop(now, b, rec.Tasks.Clone())\n		for task := range rec.Tasks.All {\n"}},
			Caught:  bagExploration, Also: [][]string{bagSearch}, Breaks: "S2 S6", // given out again, to its host too
		},
		{
			Name: "bundle-not-on-disk", Rule: "a host begins tasks of a bundle that is not on its disk",
			Changes: []Change{{"store/applyheld.go", "HeldPayload{Bundle: c.Bundle, Data: c.Payload})\n	s.touchHeld(h)\n", "HeldPayload{Bundle: c.Bundle, Data: c.Payload})\n"}},
			Caught:  bagSearch, Breaks: "S6",
		},
		{
			Name: "started-task-recalled", Rule: "a task that runs goes back when tasks are recalled",
			Changes: []Change{{
				"meta/taskback.go", "		th.drop(now, b, b.line.stock.Recall(m.Bundle, m.Most))\n",
				"		back := b.line.stock.Recall(m.Bundle, m.Most)\n		if len(b.runs) > 0 && back.Empty() {\n			back.Add(b.sorted()[0].task)\n		}\n		th.drop(now, b, back)\n",
			}},
			Caught: bagSearch, Breaks: "crash",
		},
		{
			Name: "result-without-its-bundle", Rule: "a result counts although its bundle does not have the task",
			Changes: []Change{{"store/applybundle.go", "	if !t.Tasks.Has(task) || t.Late && r.Kind", "	if t.Late && r.Kind"}},
			Caught:  bagSearch, Breaks: "S3 L2",
		},
		{
			Name: "new-disk-gives-tasks-back", Rule: "tasks of a host that has lost its disk are taken for not begun",
			Changes: []Change{{"meta/bagmend.go", "	if bo.peers.hasForgotten(t.Site, t.Generation, t.Stamp) {\n		bo.lost(now, o, t)\n		return\n	}\n", ""}, {"meta/bagorigin.go", "			if t.Generation != generation && !t.Late {\n				bo.lost(now, o, t)\n			}\n", "			_ = generation\n"}},
			Caught:  bagSearch, Breaks: "S2",
		},
		{
			Name: "late-result-overwrites", Rule: "a bundle that was taken back still tells of tasks that have ended",
			Changes: []Change{{"store/applybundle.go", "		if t.Tasks.Intersects(tasks) {\n", "		if false {\n"}},
			Caught:  bagSearch, Breaks: "S3",
		},
		{
			Name: "bundle-revoked-before-its-lease-is-over", Rule: "an origin gives tasks out again while their host may run them",
			Changes: []Change{{"meta/bagclaim.go", "	end := now.Add(bo.cfg.Timing.heldFor(term))\n", "	end := now.Add(bo.cfg.Timing.heldFor(term) / 2)\n"}},
			Caught:  bagSearch, Breaks: "S2",
		},
		{
			Name: "done-without-a-result", Rule: "a task is done and its result is not written",
			Changes: []Change{{"store/applybundle.go", "	s.keepResult(b, t, r, files)\n	s.end(b, task, set)\n", "	if set != &b.Done {\n		s.keepResult(b, t, r, files)\n	}\n	s.end(b, task, set)\n"}},
			Caught:  bagSearch, Breaks: "S5",
		},
		{
			Name: "results-acknowledged-before-they-are-home", Rule: "a host may forget results that its origin has not recorded",
			Changes: []Change{{
				"meta/bagresults.go", "		bo.emit(FetchTasks{Bundle: m.Bundle, Batch: m.Batch, From: from, Run: m.Run, Files: m.Files})\n",
				"		bo.emit(FetchTasks{Bundle: m.Bundle, Batch: m.Batch, From: from, Run: m.Run, Files: m.Files})\n		bo.acknowledge(now, from, TaskResultsAck{Bundle: m.Bundle, Batch: m.Batch})\n",
			}},
			Caught: bagSearch, Breaks: "S2",
		},
		{
			Name: "bag-cancellation-not-on-disk", Rule: "a client is told that a bag will be cancelled, which is not on disk",
			Changes: []Change{{"store/codec/bags.go", "CancelRequested: m.GetCancelRequested(), ", ""}},
			Caught:  bagSearch, Breaks: "S5",
		},
		{
			Name: "missed-deadline-runs-again-at-once", Rule: "tasks that miss their deadline run again before their site has stopped them",
			Changes: []Change{{"meta/bagdeadline.go", "	if o.rec.Request.OnSiteLost == job.Race {\n", "	if o.rec.Request.OnSiteLost != job.Wait {\n"}},
			Caught:  bagSearch, Breaks: "S2",
		},
		{
			Name: "deadline-of-what-has-ended", Rule: "the deadline passes of a bundle that has ended",
			Changes: []Change{
				{"meta/bagdeadline.go", "		if o, t := bo.due(b.id); t != nil {\n", "		if o, t := bo.due(b.id); o != nil {\n"},
				{"meta/bagdeadline.go", "	if t == nil || t.Late {\n		return nil, nil\n	}\n	return o, t\n", "	return o, t\n"},
			},
			Caught: bagSearch, Breaks: "crash",
		},
		{
			Name: "blame-on-the-wrong-host", Rule: "the origin's own host is blamed for what fails at others",
			Changes: []Change{{"meta/bagstanding.go", "	s := bo.policies.host(t.Site, t.Node)\n	s.Result(blamed, now)\n", "	s := bo.policies.host(bo.self, t.Node)\n	s.Result(blamed, now)\n"}},
			Caught:  []string{"-black-hole"}, Breaks: "hole",
		},
		{
			Name: "lost-task-runs-again-under-wait", Rule: "a task that its host lost runs again although its bag waits for lost sites",
			Changes: []Change{{"store/bag.go", "	return t.Losses >= MaxTaskLosses || t.Losses > 0 && b.Request.OnSiteLost == job.Wait\n", "	return t.Losses >= MaxTaskLosses\n"}},
			Caught:  bagSearch, Breaks: "S2",
		},
		{
			Name: "replica-beside-itself", Rule: "a site gets the replica of a task that it has",
			Changes: []Change{
				{"meta/bags/replicas.go", "		if !here.Has(task) {\n			tasks.Add(task)\n		}\n", "		tasks.Add(task)\n		_ = here\n"},
				{"store/applybundle.go", "		case here.Has(task):\n			return fmt.Errorf(\"replica of", "		case here.Has(task) && false:\n			return fmt.Errorf(\"replica of"},
			},
			Caught: bagSearch, Also: [][]string{replicaExploration}, Breaks: "S2 S5",
		},
		{
			Name: "tail-not-on-disk", Rule: "the tail of a bag is over with a restart",
			Changes: []Change{{"store/codec/bags.go", ", TailSince: job.Time(m.GetTailSinceNs()),", ","}},
			Caught:  bagSearch, Also: [][]string{replicaExploration}, Breaks: "S5",
		},
		{
			Name: "replaced-policies-kept", Rule: "what a bag stated before is asked after it was replaced",
			Changes: []Change{{"meta/bagpolicy.go", "		bo.forgetPolicies(o)\n		bo.leavePolicies(o)\n		bo.indexDeadlines(now, o)\n", "		bo.indexDeadlines(now, o)\n"}},
			Caught:  bagSearch, Breaks: "policy",
		},
		{
			Name: "replicas-that-run-not-counted", Rule: "each draw has the tenth of a user's places for replicas, whatever runs",
			Changes: []Change{{"meta/bagtail.go", "	return bags.MostReplicas(places) - replicas\n", "	_ = replicas\n	return bags.MostReplicas(places)\n"}},
			Caught:  bagSearch, Breaks: "policy",
		},
		{
			Name: "concurrency-of-each-bundle", Rule: "what a host has does not count when its policies say how many tasks it may have",
			Changes: []Change{{"meta/bags/desk.go", "	d.has = d.ask.Running + d.ask.Stock\n", "	d.has = 0\n"}},
			Caught:  policyExploration, Also: [][]string{bagSearch}, Breaks: "policy",
		},
		{
			Name: "budget-stays", Rule: "a budget that is taken away stays",
			Changes: []Change{{"store/bagbudget.go", "	case c.Budget == b.Budget: // repeated\n", "	case c.Budget == b.Budget || c.Budget == 0:\n"}},
			Caught:  bagSearch, Breaks: "L1",
		},
		{
			Name: "what-runs-has-ended", Rule: "what is submitted while the job runs that it is to wait for does not wait",
			Changes: []Change{{"store/dependency.go", "j.State.Terminal(), j.State == job.Completed", "j.State.Terminal() || j.State == job.Running, j.State == job.Completed"}},
			Caught:  bagSearch, Breaks: "S7",
		},
		{
			Name: "failed-is-ok", Rule: "what is to follow a success follows a failure",
			Changes: []Change{{"internal/job/dependency.go", "c == AfterOK && !ok || ", ""}},
			Caught:  bagSearch, Breaks: "S7",
		},
		{
			Name: "blocked-forgotten-after-a-restart", Rule: "a restarted origin does not know what waits for a job that has not ended",
			Changes: []Change{{"meta/dependency.go", "				d.wait(id, a.On)\n", ""}},
			Caught:  bagSearch, Breaks: "L1",
		},
		{
			Name: "singleton-beside-another", Rule: "a singleton does not wait for what was submitted before it",
			Changes: []Change{{"meta/dependency.go", "			if d.firstOf(r) != nil {\n", "			if d.firstOf(r) != nil && false {\n"}},
			Caught:  bagSearch, Breaks: "S7",
		},
		{
			Name: "demoted-bag-runs-on", Rule: "tasks of a bag that went down a level run at the next one before their sites have stopped them",
			Changes: []Change{{
				"store/baglevel.go", "	b.Level, b.Since, b.Begun, b.Limit = c.To, c.Time, 0, 0\n",
				"	b.Level, b.Since, b.Begun, b.Limit = c.To, c.Time, 0, 0\n	for t := range b.Bundles {\n		all := t.Tasks.Clone()\n		s.returnTasks(b, t, &all)\n		s.settleBundle(b, t)\n	}\n",
			}},
			Caught: leveledBagSearch, Breaks: "S2",
		},
		{
			Name: "bag-skips-a-level", Rule: "a bag that has outgrown its level goes down by two",
			Changes: []Change{{"meta/baglevel.go", "		bo.lower(now, o, r.Level+1, why, by)\n", "		bo.lower(now, o, r.Level+2, why, by)\n"}},
			Caught:  leveledBagSearch, Breaks: "V3",
		},
		{
			Name: "task-longer-than-its-level", Rule: "a host runs a task of a bag for longer than its level lets any job run",
			Changes: []Change{{"meta/taskrun.go", "		l.Walltime = min(l.Walltime, most)\n", "		_ = most\n"}},
			Caught:  leveledBagSearch, Breaks: "V1",
		},
	}
}

// bagExploration looks at every order of steps of a bag of two tasks with one crash.
var bagExploration = []string{"-sites", "2", "-jobs", "0", "-tasks", "2", "-copies", "1", "-losses", "0", "-duplicates", "0"}

// replicaExploration begins right before a task is given to a second site, and kills a daemon.
var replicaExploration = []string{
	"-busy=false", "-sites", "2", "-jobs", "0", "-tasks", "1", "-copies", "1", "-replicas", "1", "-timeouts", "1", "-losses", "0", "-duplicates", "0",
}

// policyExploration has a bag whose policies want one task at a host, and none at its own site.
var policyExploration = []string{"-policies", "-sites", "3", "-jobs", "0", "-tasks", "2", "-copies", "1", "-crashes", "0", "-losses", "0", "-duplicates", "0"}

// bagSearch looks at schedules with bags.
var bagSearch = []string{"-bags", "-seeds", "1000"}

// leveledBagSearch looks at schedules with bags that go from level to level.
var leveledBagSearch = []string{"-bags", "-levels", "-seeds", "300"}
