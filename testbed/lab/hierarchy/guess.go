package hierarchy

import (
	"math/rand/v2"

	"kith/internal/forecast"
	"kith/internal/job"
)

// A task without an estimator has a bound all the same where its site guesses one (forecast.bounds of
// kithd): the 90 % quantile of what its user's earlier tasks did, once enough of them have ended. By it a
// task begins at a lower level, and that is all. The trace of the source has no users, so they are made
// up here, in the two ways between which real ones are.

// users says who sends the tasks.
type users uint8

const (
	// nobody is known: nothing is guessed.
	nobody users = iota
	// kindred users each send tasks of one class of lengths.
	kindred
	// various users send tasks of any length.
	various
)

const (
	guessQuantile = 0.9
	leastForGuess = 10
	usersOfClass  = 8
	// guessWidth is the width of tasks in the history of run times, which has no room for some of these
	// on one processor.
	guessWidth = 500
)

// guesses are what is guessed of the tasks of a play.
type guesses struct {
	history *forecast.History
	names   []string // by task
}

// newGuesses draws the users of tasks; nil if nobody is known.
func newGuesses(who users, list []submitted, rng *rand.Rand) *guesses {
	if who == nobody {
		return nil
	}
	g := &guesses{history: forecast.NewHistory()}
	for _, x := range list {
		class := rng.IntN(len(classes))
		if who == kindred {
			class = classOf(x.work)
		}
		g.names = append(g.names, string(rune('A'+class))+string(rune('a'+rng.IntN(usersOfClass))))
	}
	return g
}

// classOf is the class of a task by its time on one processor.
func classOf(work float64) int {
	for i, c := range classes {
		if work <= c.longest*hourly {
			return i
		}
	}
	return len(classes) - 1
}

// guess is what a task does at most by the forecast; 0 if little is known of its user.
func (g *guesses) guess(t *task) float64 {
	name := g.names[t.id]
	if g.history.JobsOf(name) < leastForGuess {
		return 0
	}
	var d forecast.Dist
	g.history.Runs(&forecast.Question{User: name, Procs: guessWidth, Limit: job.MaxWalltime}, &d)
	return d.Quantile(guessQuantile).Seconds() * guessWidth * hourly
}

// ended learns what a task has done.
func (g *guesses) ended(t *task) {
	g.history.Ended(&forecast.Past{
		User: g.names[t.id], Procs: guessWidth, Limit: job.MaxWalltime, Run: seconds(t.done / hourly / guessWidth).Sub(0), Stopped: t.fate == killed,
	})
}

// begins is the queue where a task begins: that of the first level, or, by a guess, one of a level of
// which a queue does as much for one task. At the last level no guess counts.
func (p *play) begins(t *task) int {
	q := 0
	if p.guesses == nil {
		return q
	}
	for guess := p.guesses.guess(t); p.queues[q].next >= 0 && p.does(q) < guess; {
		q = p.queues[q].next
	}
	return q
}

// does is the most that a queue does for one task, or one of its level that takes what leaves it.
func (p *play) does(q int) float64 {
	most := float64(p.queues[q].limits.TaskLimit(share))
	if k := p.queues[q].sibling; k >= 0 {
		most = max(most, float64(p.queues[k].limits.TaskLimit(share)))
	}
	return most
}
