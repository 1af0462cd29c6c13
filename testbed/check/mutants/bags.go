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
			Caught:  bagSearch, Breaks: "S3",
		},
		{
			Name: "new-disk-gives-tasks-back", Rule: "tasks of a host that has lost its disk are taken for not begun",
			Changes: []Change{{"meta/bagmend.go", "	if t.Generation != bo.peers.generationOf(t.Site) {\n		bo.lost(now, o, t)\n		return\n	}\n", ""}, {"meta/bagorigin.go", "			if t.Generation != generation && !t.Late {\n				bo.lost(now, o, t)\n			}\n", "			_ = generation\n"}},
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
			Name: "lost-task-runs-again-under-wait", Rule: "a task that its host lost runs again although its bag waits for lost sites",
			Changes: []Change{{"store/applybundle.go", "		if tries.Losses++; b.Request.OnSiteLost == job.Wait || tries.Losses >= MaxTaskLosses {\n", "		if tries.Losses++; tries.Losses >= MaxTaskLosses {\n"}},
			Caught:  bagSearch, Breaks: "S2",
		},
	}
}

// bagSearch looks at schedules with bags.
var bagSearch = []string{"-bags", "-seeds", "1000"}
