package mutants

// levelSearch looks at schedules of sites that are levels.
var levelSearch = []string{"-levels", "-seeds", "300"}

// checkpointMutants are of jobs that go on from what they have saved.
func checkpointMutants() []Mutant {
	return []Mutant{
		{
			Name: "goes-on-before-its-attempt-has-ended", Rule: "an origin has a job go on whose attempt still runs",
			Changes: []Change{{
				"meta/outcome.go", "	if m.Over && o.over != m.Attempt.Number {\n",
				"	if o.rec.Request.Checkpoint && o.rec.Outcome == nil {\n		or.settleOutcome(now, o, job.Outcome{Kind: job.Demoted, Start: m.At, End: now})\n		return\n	}\n	if m.Over && o.over != m.Attempt.Number {\n",
			}},
			Caught: search("300"), Also: [][]string{twoSites("-demotions", "1")}, Breaks: "C1 C2 S2",
		},
		{
			Name: "goes-on-before-its-files-are-home", Rule: "an origin has a job go on before what it saved has come home",
			Changes: []Change{{
				"meta/outcome.go", "	if outcome := o.rec.Outcome; outcome.FilesRemain && o.rec.Holder != or.self {\n",
				"	if outcome := o.rec.Outcome; outcome.FilesRemain && o.rec.Holder != or.self && outcome.Kind != job.Demoted {\n",
			}},
			Caught: search("300"), Breaks: "C5",
		},
		{
			Name: "goes-on-without-what-was-lost", Rule: "a checkpoint whose files were lost on their way counts",
			Changes: []Change{{"store/checkpoint.go", "		d.Sequence, d.Reason = 0, joinReason(d.Reason, c.FilesError)\n", "		d.Reason = joinReason(d.Reason, c.FilesError)\n"}},
			Caught:  search(mostSeeds), Breaks: "C5",
		},
		{
			Name: "checkpoint-left-out", Rule: "a job goes on without the checkpoint that has come home",
			Changes: []Change{{"store/checkpoint.go", "	if len(o.Files) == 0 {\n		d.Sequence = 0\n", "	if len(o.Files) > 0 {\n		d.Sequence = 0\n"}},
			Caught:  search("300"), Breaks: "C3",
		},
		{
			Name: "guests-stay-beyond-the-bound", Rule: "guests that keep a home job waiting for longer than the bound are not told to leave",
			Changes: []Change{{"meta/evict.go", "	if h.cfg.NoHarm.Mode != HarmBounded || h.evictor == nil {\n", "	if h.cfg.NoHarm.Mode != HarmBounded || h.evictor == nil || now > 0 {\n"}},
			Caught:  search(mostSeeds), Breaks: "E3",
		},
		{
			Name: "told-and-not-asked", Rule: "guests that home jobs do not see stay on their processors",
			Changes: []Change{{"meta/host.go", "		h.evict(now, h.leaving)\n", ""}},
			Caught:  search("300"), Breaks: "E3",
		},
		{
			Name: "guests-that-cannot-leave-are-taken", Rule: "a site that has guests leave takes such as cannot",
			Changes: []Change{{"meta/evict.go", "		return job.NotEvictable\n", "		return job.NoReason\n"}},
			Caught:  search("300"), Breaks: "E3",
		},
		{
			Name: "older-checkpoint-accepted", Rule: "a job goes on from its first checkpoint",
			Changes: []Change{{"store/checkpoint.go", "	if later {\n", "	if later && j.Checkpoint == 0 {\n"}},
			Caught:  search("300"), Also: [][]string{twoSites("-demotions", "2")}, Breaks: "C1 C3",
		},
		{
			Name: "older-copy-replaces-a-newer", Rule: "what a job saved while it ran takes the place of a later checkpoint",
			Changes: []Change{{"store/checkpoint.go", "	case sequence <= j.Resume().Sequence:\n", "	case sequence == 0:\n"}},
			Caught:  search(mostSeeds), Breaks: "C1 C8",
		},
		{
			Name: "copy-counts-before-it-is-home", Rule: "what a job saved while it ran counts before its files have come home",
			Changes: []Change{{"meta/saved.go", "	if !m.FilesRemain {\n", "	if m.Sequence > 0 {\n"}},
			Caught:  search(mostSeeds), Breaks: "C5",
		},
		{
			Name: "loss-forgets-what-came-home", Rule: "a job whose host is lost goes on from what an attempt left, and not from what came home while it ran",
			Changes: []Change{{"store/checkpoint.go", "	if s := j.Saved; s != nil && s.Sequence > r.Sequence {\n", "	if s := j.Saved; s != nil && s.Sequence > r.Sequence && j.Holder != \"\" {\n"}},
			Caught:  search(mostSeeds), Breaks: "C1 C3 C8",
		},
		{
			Name: "copied-while-it-saves", Rule: "what a job saves is copied although DONE changes meanwhile",
			Changes: []Change{{"sitesched/runner/saved.go", "	if after, _ := s.doneNow(r); sequence != before || after != before {\n", "	if sequence != before {\n"}},
			Tests:   []string{"./sitesched/runner", "TestCopySaved"},
		},
		{
			Name: "grant-without-the-checkpoint", Rule: "a site is not told what the attempt goes on from",
			Changes: []Change{{"meta/claim.go", "Sent: m.Sent, Resume: or.st.Job(m.Attempt.Job).Resume()})", "Sent: m.Sent})"}},
			Caught:  search("300"), Also: [][]string{twoSites("-asks", "1")}, Breaks: "C1",
		},
		{
			Name: "level-skipped", Rule: "a job that has outgrown its level goes past the next one",
			Changes: []Change{{"store/checkpoint.go", "		j.Level = min(j.Level+1, job.MaxLevel)\n", "		j.Level = min(j.Level+2, job.MaxLevel)\n"}},
			Caught:  levelSearch, Breaks: "V3",
		},
		{
			Name: "moved-job-does-not-rest", Rule: "a job that was moved inside its level is moved again before five periods are over",
			Changes: []Change{{"meta/push.go", "			return level.Rested(now.Sub(e.Time), or.cfg.Level.sharePeriod())\n", "			return level.Rested(now.Sub(e.Time)*level.RestPeriods, or.cfg.Level.sharePeriod())\n"}},
			Caught:  levelSearch, Breaks: "V4",
		},
		{
			Name: "time-used-counted-twice", Rule: "the run time of an attempt that was demoted is counted twice",
			Changes: []Change{{"store/checkpoint.go", "	return min(max(0, d.End.Sub(d.Start)), job.MaxWalltime)\n", "	return 2 * min(max(0, d.End.Sub(d.Start)), job.MaxWalltime)\n"}},
			Caught:  search("300"), Breaks: "C4",
		},
		{
			Name: "demotion-not-on-disk", Rule: "a job goes on from a checkpoint that its origin forgets in a restart",
			Changes: []Change{{"store/codec/record.go", "	m.Demotions, m.CheckpointAttempt = demotionMessages(j.Demotions), j.Checkpoint\n", ""}},
			Caught:  search(mostSeeds), Also: [][]string{twoSites("-demotions", "1", "-crashes", "1")}, Breaks: "C1 C2 C3 C4 C8 S5",
		},
	}
}
