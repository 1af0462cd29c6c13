package chaos

import (
	"errors"
	"io/fs"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// undemoted counts the attempts that signed and did not end with the job to go on, by its origin.
func undemoted(runs map[uint32]run, now *kithv1.Job) int {
	n := len(runs)
	for _, d := range now.GetStatus().GetDemotions() {
		if _, ran := runs[uint32(d.GetAttempt())]; ran { //nolint:gosec // Not negative.
			n--
		}
	}
	return n
}

// demotions checks a job whose attempts ended for it to go on (C8): by what it signed it has counted each
// number once, or again after a loss that its origin tells of; each attempt went on from what an earlier one
// had saved, and never from something older than the one before.
func (c *checker) demotions(j *submitted, id job.ID, now *kithv1.Job) {
	r, st := &c.result.Demotions, now.GetStatus()
	for _, d := range st.GetDemotions() {
		if r.Causes == nil {
			r.Causes = make(map[string]int)
		}
		r.Causes[causeName(d.GetCause())]++
	}
	if len(st.GetDemotions()) > 0 {
		r.Demoted++
	}
	if j.counts == nil || now == nil {
		return
	}
	r.Counting++
	file, err := c.signed(j.id)
	if errors.Is(err, fs.ErrNotExist) { // none of its attempts came so far
		if st.GetState() == kithv1.JobStatus_STATE_COMPLETED {
			c.problem(&c.result.LostJobs, "job %s ended as %s, and has counted nothing", j.id, brief(st))
		}
		return
	}
	if err != nil {
		c.problem(&c.result.OtherProblems, "%v", err)
		return
	}
	defer file.Close() //nolint:errcheck // It was only read.
	s, err := readStory(file, id)
	if err != nil {
		c.problem(&c.result.OtherProblems, "%v", err)
		return
	}
	if !c.unguarded[id] {
		for _, text := range s.writers {
			c.problem(&c.result.Overlaps, "job %s: %s", j.id, text)
		}
	}
	for _, text := range s.wrong {
		c.problem(&c.result.Miscounted, "job %s: %s", j.id, text)
	}
	c.story(j, st, s)
}

// story checks how the attempts of a job follow each other.
func (c *checker) story(j *submitted, st *kithv1.JobStatus, s *story) {
	r := &c.result.Demotions
	demotions := make(map[uint32]*kithv1.Demotion)
	for _, d := range st.GetDemotions() {
		demotions[uint32(d.GetAttempt())] = d //nolint:gosec // Not negative.
	}
	wrong := func(format string, args ...any) {
		c.problem(&c.result.Miscounted, "job %s: "+format, append([]any{j.id}, args...)...)
	}
	most := uint64(0)
	for i := range s.attempts {
		x := &s.attempts[i]
		r.Numbers += int(x.last - x.from.at)
		home := uint64(0) // the latest checkpoint of earlier attempts, by the origin
		for n, d := range demotions {
			if n < x.attempt {
				home = max(home, d.GetCheckpointSequence())
			}
		}
		switch {
		case x.used < home || x.used > home && !j.counts.copied:
			wrong("attempt %d goes on from checkpoint %d, and %d had come home", x.attempt, x.used, home)
		case x.used == 0 && x.from != state{}, x.used > 0 && x.from.seq < x.used:
			wrong("attempt %d found %v as checkpoint %d", x.attempt, x.from, x.used)
		case x.used > 0 && !s.known(i, x.from):
			wrong("attempt %d goes on from %v, which none before saved", x.attempt, x.from)
		}
		if x.from.at > most {
			wrong("attempt %d goes on from %d, and only %d numbers were counted", x.attempt, x.from.at, most)
		}
		if i > 0 {
			c.follows(j, s, i, demotions[s.attempts[i-1].attempt], wrong)
		}
		most = max(most, x.last)
	}
	if st.GetState() == kithv1.JobStatus_STATE_COMPLETED && (most != uint64(j.counts.to) || s.attempts[len(s.attempts)-1].last != most) {
		wrong("it has completed, and counted to %d of %d", most, j.counts.to)
	}
}

// stranded reports whether a job of a hierarchy may have ended for want of a lower level: its origin or its host
// was not trusted by another site for a while, or did not trust it, so that it was of no level to it.
func (c *checker) stranded(j *submitted, id job.ID, st *kithv1.JobStatus) bool {
	if !j.job.GetWalltimeUnknown() {
		return false
	}
	from, to := life(st)
	for _, s := range c.severed {
		for _, at := range []string{string(id.Origin), st.GetHostSiteId()} {
			if (s.by == at || s.other == at) && s.meets(from, to) {
				return true
			}
		}
	}
	return false
}

// follows checks an attempt against the one before, of which d says how it ended; nil if it did not end for the
// job to go on.
func (c *checker) follows(j *submitted, s *story, i int, d *kithv1.Demotion, wrong func(string, ...any)) {
	before, x := &s.attempts[i-1], &s.attempts[i]
	if x.used < before.used || x.from.at < before.from.at {
		wrong("attempt %d goes on from %d (checkpoint %d), and attempt %d had from %d (%d)", x.attempt, x.from.at, x.used, before.attempt, before.from.at, before.used)
	}
	lost := d == nil || d.GetCause() == kithv1.Demotion_CAUSE_HOST_LOST
	if lost && j.policy == kithv1.Job_ON_SITE_LOST_WAIT {
		return // history says so
	}
	told := lost || d.GetReason() != ""
	if !told && before.whole > 0 && d.GetCheckpointSequence() < before.whole {
		wrong("attempt %d had saved %d, its origin has %d and tells of no loss", before.attempt, before.whole, d.GetCheckpointSequence())
	}
	if x.from.at >= before.last {
		return
	}
	c.result.Demotions.Repeated += int(before.last - x.from.at)
	c.result.Demotions.Losses++
	// Who saves and goes on is stopped some numbers after what it saved.
	if !told && (before.left || before.whole == 0) {
		wrong("attempt %d counts again from %d what attempt %d had counted to %d, without a loss", x.attempt, x.from.at, before.attempt, before.last)
	}
}
