package mutants

// memberMutants are of sites whose facts several members keep: of leads, of the answers to their
// batches, and of what the members make of them.
func memberMutants() []Mutant {
	const undecided = "	return a.End(fmt.Errorf(\"%w: %w\", cause, store.ErrUndecided))\n"
	return []Mutant{
		{
			Name: "unknown-taken-for-yes", Rule: "a leader that has lost its term says that its batch stands",
			Changes: []Change{{"store/raftstore/leads/answers.go", undecided, "	return nil\n"}},
			Caught:  memberSeeds, Breaks: "R1",
		},
		{
			Name: "unknown-taken-for-no", Rule: "a leader that has lost its term says that its batch never stands",
			Changes: []Change{{"store/raftstore/leads/answers.go", undecided, "	return a.End(fmt.Errorf(\"%w: %w\", cause, store.ErrDeposed))\n"}},
			Caught:  memberSeeds, Breaks: "R2",
		},
		{
			Name: "effects-of-void-facts", Rule: "what waited for a batch leaves though its leader was deposed",
			Changes: []Change{{"meta/commit/barrier.go", "				r.void, r.effects, r.waiting = err, nil, nil\n			}\n			return nil, err\n", "				return r.effects, nil\n			}\n			return nil, err\n"}},
			Caught:  memberSeeds, Breaks: "R1 S5",
		},
		{
			Name: "answers-without-asking", Rule: "a leader answers without asking whether it still leads, where there is nothing to write",
			Changes: []Change{{"meta/commit/barrier.go", "confirm: b.shared}", "confirm: false}"}},
			Caught:  memberSeeds, Breaks: "R3",
		},
		{
			Name: "lead-is-no-new-life", Rule: "a lead is to other sites the one before",
			Changes: []Change{{"store/apply.go", "	s.site.Incarnation++\n	s.site.Steps += LifeSteps\n", "	if s.site.Incarnation++; s.site.Incarnation > 1 {\n		s.site.Incarnation--\n	}\n	s.site.Steps += LifeSteps\n"}},
			Caught:  memberSeeds, Breaks: "S5",
		},
		{
			Name: "batch-out-of-turn", Rule: "members take any batch of the latest lead",
			Changes: []Change{{"store/raftstore/leads/position.go", "	if p.lead != at.Lead || p.number != at.Number+1 || p.part != at.parts {\n", "	if p.part != at.parts {\n"}},
			Tests:   []string{"./store/raftstore", "TestEarlierLeadIsRefused"},
		},
		{
			Name: "vote-for-whoever-asks", Rule: "in the model of raft, members vote for one whose log lacks what theirs has (R4)",
			Changes: []Change{{"testbed/quorum/election.go", "m.vote != from.id || !m.upToDate(index, at) {", "m.vote != from.id {"}},
			Tests:   []string{"./testbed/quorum", "TestWhatWasAcknowledgedStands"},
		},
		{
			Name: "part-of-a-disk-votes", Rule: "a member that lost its disk gets a part of it back, and votes",
			Changes: []Change{{"store/raftstore/streams.go", "	if a.text == nothing && s.votes(ctx, to.Name) {\n", "	if a.text == nothing && !s.votes(ctx, to.Name) && to.Name == \"\" {\n"}},
			Tests:   []string{"./store/raftstore", "TestMemberThatGotAPartBack"},
		},
		{
			Name: "empty-disk-counts", Rule: "in the model of raft, a member whose disk was replaced votes, and counts for majorities, once it has one entry",
			Changes: []Change{{"testbed/quorum/member.go", "	if m.lacks && m.goal > 0 && m.commit >= m.goal {\n", "	if m.lacks && m.last() > 0 {\n"}},
			Tests:   []string{"./testbed/quorum", "TestWhatWasAcknowledgedStands"},
		},
		{
			Name: "snapshot-lacks-the-last-batch", Rule: "a member that begins with a snapshot takes its last batch for one to come",
			Changes: []Change{{"store/raftstore/leads/position.go", "	return Position{at(0), at(1), at(2), at(3)}, nil\n", "	return Position{at(0), at(1), max(at(2), 1) - 1, at(3)}, nil\n"}},
			Tests:   []string{"./store/raftstore", "TestMemberThatLagsBeyondTheLog"},
		},
		{
			Name: "reads-of-a-deposed-leader", Rule: "a leader says who has a claim without asking whether it still leads",
			Changes: []Change{{"store/raftstore/lead.go", "		return l.confirm()\n", "		return nil\n"}},
			Tests:   []string{"./store/raftstore", "TestAnswersOfADeposedLeader"},
		},
	}
}

// memberSeeds looks at the first schedules with members.
var memberSeeds = []string{"-members", "-seeds", "200"}
