package hierarchy

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// A task begins below the levels that do less for one task than nine of ten of its user's earlier ones did, at
// the last level at most; of a user of whom little is known, or where nothing is guessed, at the first.
func TestTasksBeginByGuesses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		earlier int
		hours   float64
		fate    fate
		want    int
	}{
		"short":               {30, 0.01, done, q1},
		"longer":              {30, 1, done, q2},
		"Q3 is of level 2":    {30, 600, done, q2},
		"more than level 2":   {30, 1300, done, q4},
		"more than the last":  {30, 1e6, done, q4},
		"killed at the limit": {30, 1, killed, q4},
		"little is known":     {leastForGuess - 1, 1300, done, q1},
	} {
		list := make([]submitted, 40)
		for i := range list {
			list[i] = submitted{at: 1, work: 1e10}
		}
		p, err := newPlay(production(), list, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if q := p.begins(p.tasks[0]); q != q1 {
			t.Errorf("%s: begins at queue %d where nothing is guessed", name, q)
		}
		p.guesses = newGuesses(kindred, list, rand.New(rand.NewPCG(1, 2)))
		for i := range p.guesses.names {
			p.guesses.names[i] = "ada"
		}
		for i := range c.earlier {
			x := p.tasks[i+1]
			x.done, x.fate = c.hours*3600*hourly, c.fate
			p.guesses.ended(x)
		}
		if q := p.begins(p.tasks[0]); q != c.want {
			t.Errorf("%s: begins at queue %d", name, q)
		}
	}
}

// Users send tasks of one class, or of any; and those of tasks stay theirs where there are more long ones.
func TestUsersOfTasks(t *testing.T) {
	t.Parallel()
	list, more := generate(1000, 1, rand.New(rand.NewPCG(1, 0))), generate(1000, 2, rand.New(rand.NewPCG(1, 0)))
	for _, who := range []users{kindred, various} {
		names, of := newGuesses(who, list, rand.New(rand.NewPCG(1, 4))).names, map[string]map[int]bool{}
		if got := newGuesses(who, more, rand.New(rand.NewPCG(1, 4))).names; strings.Join(got[:len(names)], " ") != strings.Join(names, " ") {
			t.Errorf("%d: other users with more long tasks", who)
		}
		mixed := 0
		for i, name := range names {
			if of[name] == nil {
				of[name] = map[int]bool{}
			}
			of[name][classOf(list[i].work)] = true
		}
		for _, kinds := range of {
			if len(kinds) > 1 {
				mixed++
			}
		}
		if len(of) != usersOfClass*len(classes) || mixed > 0 != (who == various) {
			t.Errorf("%d: %d users, %d with tasks of several classes", who, len(of), mixed)
		}
	}
	if newGuesses(nobody, list, nil) != nil {
		t.Error("nobody is known, and something is guessed")
	}
}

// Two tasks whose time at the last level is over in the same instant, with a third one beside them, end
// once each: what comes later is played.
func TestTasksEndOnce(t *testing.T) {
	t.Parallel()
	const long = 1e5 * 3600 * hourly
	list := []submitted{{at: 1, work: long}, {at: 1, work: long}, {at: seconds(47 * 3600), work: long / 20}, {at: seconds(100 * 3600), work: 1e10}}
	p, err := newPlay(production(), list, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.queues {
		p.queues[i].limits.EstimateShare, p.queues[i].steady = 0, true
	}
	p.guesses = newGuesses(kindred, list, rand.New(rand.NewPCG(1, 2)))
	for range leastForGuess {
		p.guesses.ended(&task{done: long, fate: killed})
	}
	ada := p.guesses.names[0]
	p.guesses.names = []string{ada, ada, ada, "bob"}
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, want := range []fate{killed, killed, done, done} {
		if x := p.tasks[i]; x.fate != want || len(x.visits) == 0 || (x.visits[0] == q4) != (i < 3) {
			t.Errorf("task %d ended as %d after queues %v", i, x.fate, x.visits)
		}
	}
	if p.open != 0 {
		t.Errorf("%d tasks are open", p.open)
	}
}
