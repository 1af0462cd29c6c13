package chaos

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// goodCount is a job that counted to 4 in two attempts, at which its host asked it after 2.
type goodCount struct {
	*good
	story     string
	demotions []*kithv1.Demotion
}

func newGoodCount() *goodCount {
	g := &goodCount{
		good: goodJob(), demotions: []*kithv1.Demotion{{Attempt: 1, CheckpointSequence: 1, Cause: kithv1.Demotion_CAUSE_EVICTED}},
		story: `from #1 0 0 0 0
n #1 1
n #1 2
save #1 1 2 3
saved #1 1
left #1
from #2 1 1 2 3
n #2 3
n #2 4
`,
	}
	g.job.counts = &counter{to: 4}
	g.now.Status.Attempt, g.job.ended.Status.Attempt = 2, 2
	g.ledger, g.stdout = "start a.1.7#1 b\nstart a.1.7#2 b\nend a.1.7#2 b\n", "done a.1.7\nsum 10\n"
	return g
}

func (g *goodCount) check(t *testing.T) *Result {
	t.Helper()
	l, err := readLedger(strings.NewReader(g.ledger))
	if err != nil {
		t.Fatal(err)
	}
	g.now.Status.Demotions = g.demotions
	c := &checker{result: &Result{}, ledger: l, unguarded: map[job.ID]bool{}, severed: g.cut, signed: func(string) (io.ReadCloser, error) {
		if g.story == "" {
			return nil, fs.ErrNotExist
		}
		return io.NopCloser(strings.NewReader(strings.ReplaceAll(g.story, "#", "a.1.7#"))), nil
	}}
	c.check(g.job, g.now, func(string) (string, error) { return sum([]byte(g.stdout)), g.err })
	return c.result
}

// change replaces a line of the story, or leaves it out.
func (g *goodCount) change(line, by string) {
	if by != "" {
		by += "\n"
	}
	g.story = strings.Replace(g.story, line+"\n", by, 1)
}

// again makes it a job whose second attempt counts 2 again.
func (g *goodCount) again() {
	g.change("save #1 1 2 3", "save #1 1 1 1")
	g.change("from #2 1 1 2 3", "from #2 1 1 1 1\nn #2 2")
}

// Whatever is changed in the story of a job that counted, the checker says so.
func TestStoriesOfJobsThatCount(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*goodCount)
		want   string // problems, by their kind
	}{
		"nothing":                        {func(*goodCount) {}, ""},
		"a number left out":              {func(g *goodCount) { g.change("n #2 3", "") }, "miscounted"},
		"a number twice in an attempt":   {func(g *goodCount) { g.change("n #2 3", "n #2 3\nn #2 3") }, "miscounted"},
		"a number again without a loss":  {(*goodCount).again, "miscounted"},
		"not to its end":                 {func(g *goodCount) { g.change("n #2 4", "") }, "miscounted"},
		"the wrong sum":                  {func(g *goodCount) { g.stdout = "done a.1.7\nsum 9\n" }, "damaged"},
		"from what none saved":           {func(g *goodCount) { g.change("from #2 1 1 2 3", "from #2 1 1 2 4") }, "miscounted"},
		"from the beginning":             {func(g *goodCount) { g.change("from #2 1 1 2 3", "from #2 0 0 0 0\nn #2 1\nn #2 2") }, "miscounted miscounted"},
		"from another checkpoint":        {func(g *goodCount) { g.change("from #2 1 1 2 3", "from #2 2 2 2 3") }, "miscounted"},
		"files of an earlier checkpoint": {func(g *goodCount) { g.change("from #2 1 1 2 3", "from #2 1 0 2 3") }, "miscounted"},
		"a checkpoint that its origin lost": {
			func(g *goodCount) {
				g.demotions[0].CheckpointSequence = 0
				g.change("from #2 1 1 2 3", "from #2 0 0 0 0\nn #2 1\nn #2 2")
			},
			"miscounted miscounted",
		},
		"the same with a reason": {
			func(g *goodCount) {
				g.demotions[0].CheckpointSequence, g.demotions[0].Reason = 0, "disk full"
				g.change("from #2 1 1 2 3", "from #2 0 0 0 0\nn #2 1\nn #2 2")
			}, "",
		},
		"a number again, stopped after it saved": {func(g *goodCount) { g.again(); g.change("left #1", "") }, ""},
		"a number again, with its host": {func(g *goodCount) {
			g.again()
			g.demotions[0].Cause = kithv1.Demotion_CAUSE_HOST_LOST
			g.job.policy = kithv1.Job_ON_SITE_LOST_RERUN
		}, ""},
		"two at a time":          {func(g *goodCount) { g.change("n #2 3", "n #1 3\nn #2 3") }, "overlap"},
		"an attempt begins late": {func(g *goodCount) { g.change("n #2 3", "from #1 0 0 0 0\nn #2 3") }, "overlap"},
		"an older checkpoint than before": {
			func(g *goodCount) {
				g.demotions = append(g.demotions, &kithv1.Demotion{Attempt: 2, Reason: "lost"})
				g.now.Status.Attempt, g.job.ended.Status.Attempt = 3, 3
				g.ledger = "start a.1.7#1 b\nstart a.1.7#2 b\nstart a.1.7#3 b\nend a.1.7#3 b\n"
				g.story += "from #3 0 0 0 0\nn #3 1\nn #3 2\nn #3 3\nn #3 4\n"
			}, "miscounted miscounted",
		},
		"ran again under wait, and was not demoted": {func(g *goodCount) { g.demotions = nil }, "double miscounted"},
		"completed, and counted nothing":            {func(g *goodCount) { g.story = "" }, "lost"},
		"ended by its level": {
			func(g *goodCount) {
				g.job.job = &kithv1.Job{WalltimeUnknown: true}
				g.now.Status.State, g.job.ended.Status.State = kithv1.JobStatus_STATE_TIMEOUT, kithv1.JobStatus_STATE_TIMEOUT
			}, "other",
		},
		"ended by its level, the next one not trusted": {
			func(g *goodCount) {
				g.job.job, g.cut = &kithv1.Job{WalltimeUnknown: true}, cutAt(0)
				g.now.Status.State, g.job.ended.Status.State = kithv1.JobStatus_STATE_CANCELLED, kithv1.JobStatus_STATE_CANCELLED
			}, "",
		},
		"no entry": {func(g *goodCount) { g.change("n #2 3", "n #2 three") }, "other"},
	} {
		g := newGoodCount()
		c.change(g)
		r := g.check(t)
		var got []string
		for _, x := range []struct {
			n    int
			what string
		}{{r.DoubleStarts, "double"}, {r.LostJobs, "lost"}, {r.Overlaps, "overlap"}, {r.DamagedOutputs, "damaged"}, {r.Miscounted, "miscounted"}, {r.OtherProblems, "other"}} {
			for range x.n {
				got = append(got, x.what)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: found %q, want %q: %v", name, got, c.want, r.Problems)
		}
	}
	g := newGoodCount()
	g.again()
	g.demotions[0].Reason = "dropped"
	if d := g.check(t).Demotions; fmt.Sprint(d) != "{1 map[evicted:1] 1 5 1 1}" {
		t.Errorf("counted %+v", d)
	}
}

// A job that counts saves when it is asked and goes on from that.
func TestCountingJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := folders{ledger: filepath.Join(dir, "ledger"), locks: dir, counts: filepath.Join(dir, "counts")}
	if err := os.Mkdir(f.counts, 0o700); err != nil {
		t.Fatal(err)
	}
	m := newMaker(&Options{Seed: 1, Sites: 4}, 0, 4, time.Second, f)
	m.count = true
	var made *task
	for made = m.next(); made.counts == nil || !strings.Contains(made.job.GetScript(), "stop=0 step=0"); made = m.next() {
		if m.made > 100 {
			t.Fatal("no such job comes")
		}
	}
	script := filepath.Join(dir, "script")
	text := strings.Replace(made.job.GetScript(), fmt.Sprintf("to=%d", made.counts.to), "to=5", 1)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(attempt int, sequence string, asked bool) (string, int) {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", script)
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "KITH_CHECKPOINT_DIR=" + dir, "KITH_JOB_ID=a.1.7", fmt.Sprintf("KITH_ATTEMPT=a.1.7#%d", attempt), "KITH_SITE=b",
			"KITH_CHECKPOINT_SEQUENCE=" + sequence, "CHAOS_LEDGER=" + f.ledger, "CHAOS_LOCKS=" + f.locks, "CHAOS_COUNTS=" + f.counts,
		}
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for asked {
			if text, _ := os.ReadFile(f.countsOf("a.1.7")); strings.Contains(string(text), "n a.1.7#1 2\n") {
				if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
					t.Fatal(err)
				}
				asked = false
			}
			time.Sleep(5 * time.Millisecond)
		}
		if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Fatal(err)
		}
		return out.String(), cmd.ProcessState.ExitCode()
	}
	if out, code := run(1, "", true); code != 85 || out != "" {
		t.Fatalf("asked, it ended with %d: %s", code, out)
	}
	if out, code := run(2, "1", false); code != 0 || out != "done a.1.7\nsum 15\n" {
		t.Fatalf("it ended with %d: %s", code, out)
	}
	signed, err := os.Open(f.countsOf("a.1.7"))
	if err != nil {
		t.Fatal(err)
	}
	defer signed.Close() //nolint:errcheck // It was only read.
	s, err := readStory(signed, jobID(t, "a.1.7"))
	if err != nil || len(s.attempts) != 2 || len(s.wrong)+len(s.writers) > 0 {
		t.Fatalf("it signed %+v, %v", s, err)
	}
	if x := s.attempts[0]; !x.left || x.whole != 1 || x.last >= 5 || s.attempts[1].from != x.saves[0] || s.attempts[1].last != 5 {
		t.Errorf("it signed %+v", s)
	}
}

// Of the jobs of a run with demotions most count, all of them are asked, and each kind comes up.
func TestCountingJobs(t *testing.T) {
	m := newMaker(&Options{Seed: rand.Uint64(), Sites: 4}, 0, 4, 10*time.Second, folders{})
	m.count, m.tame = true, true
	kinds := map[string]int{}
	const n = 1000
	for range n {
		x := m.next()
		if x.counts == nil {
			continue
		}
		kinds["count"]++
		for what, is := range map[string]bool{
			"asked": x.counts.asks > 0, "copied": x.job.GetCheckpoint().GetEvery() != nil, "unknown": x.job.GetWalltimeUnknown(),
			"deaf": strings.Contains(x.job.GetScript(), "trap ''"), "by itself": !strings.Contains(x.job.GetScript(), "stop=0"),
		} {
			if is {
				kinds[what]++
			}
		}
		if x.policy == kithv1.Job_ON_SITE_LOST_RACE || x.code != 0 || x.vandal {
			t.Fatalf("%+v", x)
		}
	}
	if kinds["count"] < n*6/10 || kinds["asked"] != kinds["count"] || min(kinds["copied"], kinds["unknown"], kinds["deaf"], kinds["by itself"]) < 40 {
		t.Errorf("of %d jobs: %v", n, kinds)
	}
}
