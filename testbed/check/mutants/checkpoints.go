package mutants

// checkpointMutants are of jobs that go on from what they have saved.
func checkpointMutants() []Mutant {
	return []Mutant{
		{
			Name: "goes-on-before-its-attempt-has-ended", Rule: "an origin has a job go on whose attempt still runs",
			Changes: []Change{{
				"meta/outcome.go", "	if m.Over && o.over != m.Attempt.Number {\n",
				"	if o.rec.Request.Checkpoint && o.rec.Outcome == nil {\n		or.settleOutcome(now, o, job.Outcome{Kind: job.Demoted, Start: m.At, End: now})\n		return\n	}\n	if m.Over && o.over != m.Attempt.Number {\n",
			}},
			Caught: search("300"), Breaks: "C2 S2",
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
			Name: "older-checkpoint-accepted", Rule: "a job goes on from its first checkpoint",
			Changes: []Change{{"store/checkpoint.go", "	if later {\n", "	if later && j.Checkpoint == 0 {\n"}},
			Caught:  search("300"), Breaks: "C1 C3",
		},
		{
			Name: "grant-without-the-checkpoint", Rule: "a site is not told what the attempt goes on from",
			Changes: []Change{{"meta/claim.go", "Sent: m.Sent, Resume: or.st.Job(m.Attempt.Job).Resume()})", "Sent: m.Sent})"}},
			Caught:  search("300"), Breaks: "C1",
		},
		{
			Name: "time-used-counted-twice", Rule: "the run time of an attempt that was demoted is counted twice",
			Changes: []Change{{"store/checkpoint.go", "			used += min(max(0, d.End.Sub(d.Start)), job.MaxWalltime)\n", "			used += 2 * min(max(0, d.End.Sub(d.Start)), job.MaxWalltime)\n"}},
			Caught:  search("300"), Breaks: "C4",
		},
		{
			Name: "demotion-not-on-disk", Rule: "a job goes on from a checkpoint that its origin forgets in a restart",
			Changes: []Change{{"store/codec/record.go", "	m.Demotions, m.CheckpointAttempt = demotionMessages(j.Demotions), j.Checkpoint\n", ""}},
			Caught:  search(mostSeeds), Breaks: "C1 C2 C3 C4",
		},
	}
}
