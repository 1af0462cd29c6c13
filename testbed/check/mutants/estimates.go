package mutants

// estimateMutants are of jobs that bring an estimator.
func estimateMutants() []Mutant {
	return []Mutant{
		{
			Name: "estimate-demotes-from-the-last-level", Rule: "a job goes down by its estimate although no level is below",
			Changes: []Change{
				{"meta/levelestimate.go", "h.lastLevel(now, rec.Request)) == level.Reject:\n", "h.lastLevel(now, rec.Request)) == level.Reject && rec == nil:\n"},
				{"meta/levelorigin.go", "	return !below && !open && !or.unheard(now)\n", "	return !below && !open && j == nil\n"},
			},
			Caught: levelSearch, Breaks: "B3",
		},
		{
			Name: "later-bound-replaces-a-lower", Rule: "a later bound that is higher takes the place of a lower one",
			Changes: []Change{{"internal/estimate/bound.go", "	if !b.known || work < b.least {\n", "	if !b.known || work != b.least {\n"}},
			Caught:  levelSearch, Breaks: "B2",
		},
		{
			Name: "bound-not-carried", Rule: "the next attempt of a job is not told of its bound",
			Changes: []Change{{"store/level.go", "		p.Used, p.Done, p.Bound = j.usedAt(j.Level), j.Done(), j.Bound()\n", "		p.Used, p.Done = j.usedAt(j.Level), j.Done()\n"}},
			Caught:  levelSearch, Breaks: "B2",
		},
		{
			Name: "asked-is-taken-for-estimated", Rule: "what was asked to leave its level while its estimator ran counts as ended by that",
			Changes: []Change{{"meta/levelestimate.go", "	case !h.estimate(now, rec).Exceeds(o.Bound):\n", "	case o.Bound < 0:\n"}},
			Caught:  []string{"-levels", "-seeds", "3000"}, Breaks: "B4",
		},
		{
			Name: "estimate-against-the-whole-level", Rule: "a job's estimate is held against what its level does with all its processors",
			Changes: []Change{{"meta/levelestimate.go", "	if most, limited := l.MostLeft(task.Bound, last); limited && !rec.Last() {\n", "	if most, limited := l.MostLeft(0, last); limited && !rec.Last() {\n"}},
			Caught:  levelSearch, Breaks: "B4",
		},
		{
			Name: "guess-at-the-last-level", Rule: "a job goes past the last level by a guess of the forecast",
			Changes: []Change{{"meta/levelguess.go", "at != r.Level || !below || or", "at != r.Level || below && !here || or"}},
			Caught:  levelSearch, Breaks: "B6",
		},
		{
			Name: "nonsense-counts", Rule: "what an estimator prints that is no bound counts as one",
			Changes: []Change{{"internal/estimate/reader.go", "	return err == nil && work > 0 && work <= MostWork && r.Add(work)\n", "	return (err == nil || work != 0) && r.Add(max(1, min(work, MostWork)))\n"}},
			Caught:  levelSearch, Breaks: "B2 B5",
		},
	}
}
