package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
)

// counting is a job that counts in a file to 3, one step in each attempt, and says what it
// finds. Twice it exits with 85.
const counting = `cd "$KITH_CHECKPOINT_DIR" || exit 9
n=$(cat state-n 2>/dev/null || echo 0)
echo "restart=$KITH_RESTART sequence=$KITH_CHECKPOINT_SEQUENCE n=$n"
n=$((n + 1))
echo $n >state-n
[ $n = 3 ] && { echo "sum $n"; exit 0; }
echo $n >DONE.new && mv DONE.new DONE
exit 85`

func saving(text string, paths ...string) *kithv1.Job {
	j := shell(text)
	j.Checkpoint = &kithv1.Checkpoint{Paths: paths}
	return j
}

// TestCheckpoints has a job save what it has done and go on, at its own site and, as a script with a
// checkpoint too large to come with the claim, at another one.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	sites := federation(t, func(c *config.Config) {
		if c.Site == "beta" {
			c.Scheduler.Processors = 4
		} else {
			c.Scheduler.Processors = 2
		}
	}, "alpha", "beta")
	alpha := sites[0]
	for _, processors := range []int32{1, 4} { // 4 only beta has
		j := saving(counting, "state-*")
		if j.Processors, j.Tasks = processors, 1; processors == 4 {
			j.Command, j.Script = nil, "#!/bin/sh\nhead -c 3000000 /dev/urandom >\"$KITH_CHECKPOINT_DIR\"/state-more\n"+counting
			j.Inputs = []*kithv1.InputFile{{Path: "input", Content: &kithv1.InputFile_Data{Data: []byte("one")}}}
		}
		id := alpha.submit(j)
		done := alpha.waitState(id, kithv1.JobStatus_STATE_COMPLETED)
		s := done.GetStatus()
		if s.GetAttempt() != 3 || len(s.GetDemotions()) != 2 {
			t.Fatalf("it ended in attempt %d after %v", s.GetAttempt(), s.GetDemotions())
		}
		for i, d := range s.GetDemotions() {
			if int(d.GetAttempt()) != i+1 || d.GetCheckpointSequence() != uint64(i+1) || d.GetReason() != "" || d.GetStartTime() == nil {
				t.Errorf("demotion %d: %v", i, d)
			}
			if processors == 4 && d.GetSiteId() != "beta" {
				t.Errorf("it ran at %s", d.GetSiteId())
			}
		}
		if out := alpha.output(id, "stdout"); !strings.Contains(out, "restart=1 sequence=2 n=2\nsum 3\n") {
			t.Errorf("the last attempt wrote %q", out)
		}
		for attempt, want := range map[int32]string{1: "n=0\n", 2: "restart=1 sequence=1 n=1\n"} {
			if out := alpha.attemptOutput(id, attempt); !strings.HasSuffix(out, want) {
				t.Errorf("attempt %d wrote %q, want %q at the end", attempt, out, want)
			}
		}
		for _, attempt := range []int32{4, 9} {
			_, err := alpha.read(&kithv1.GetJobOutputRequest{JobId: id, Attempt: attempt})
			if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "no attempt of the job that ended for it to go on") {
				t.Errorf("attempt %d: %v", attempt, err)
			}
		}
		if s.GetUsed().AsDuration() <= 0 || s.GetCheckpointSequence() != 2 {
			t.Errorf("it used %v, checkpoint %d", s.GetUsed(), s.GetCheckpointSequence())
		}
	}
}

// TestBadCheckpoints has jobs whose checkpoints do not count: they go on from the one before,
// and the reason is told.
func TestBadCheckpoints(t *testing.T) {
	t.Parallel()
	alpha := federation(t, nil, "alpha")[0]
	for name, c := range map[string]struct {
		second string // what the second attempt does
		reason string
	}{
		"no DONE":            {`rm DONE; exit 85`, "DONE is missing"},
		"DONE is a folder":   {`rm DONE; mkdir DONE; exit 85`, "DONE is missing or is no file"},
		"DONE shrinks":       {`echo 4 >DONE; exit 85`, "DONE says 4, and before it said 5"},
		"DONE stays":         {`exit 85`, "it saved nothing new: DONE still says 5"},
		"DONE is no number":  {`echo six >DONE; exit 85`, `says "six"`},
		"DONE is 0":          {`echo 0 >DONE; exit 85`, "should be a number from 1 on"},
		"DONE is long":       {`head -c 100 /dev/zero >DONE; exit 85`, "has 100 bytes"},
		"a pattern is unmet": {`rm state; echo 6 >DONE; exit 85`, "files are missing"},
		"a link out":         {`rm state; ln -s /etc/passwd state; echo 6 >DONE; exit 85`, "files are missing"},
		"too many files":     {`for i in $(seq 1100); do : >more-$i; done; echo 6 >DONE; exit 85`, "files are missing"},
		"no folder":          {`cd /; rm -r "$KITH_CHECKPOINT_DIR"; exit 85`, "it wrote none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := saving(`cd "$KITH_CHECKPOINT_DIR" || exit 9
case $KITH_ATTEMPT in
*#1) echo one >state; : >more-0; echo 5 >DONE; exit 85;;
*#2) [ "$(cat state)" = one ] || exit 7; `+c.second+`;;
*#3) [ "$(cat state)$(cat DONE)$KITH_CHECKPOINT_SEQUENCE" = one55 ] || exit 8; echo well;;
esac`, "state", "more-*")
			id := alpha.submit(j)
			s := alpha.waitState(id, kithv1.JobStatus_STATE_COMPLETED, kithv1.JobStatus_STATE_FAILED).GetStatus()
			d := s.GetDemotions()
			if s.GetState() != kithv1.JobStatus_STATE_COMPLETED || len(d) != 2 || d[1].GetCheckpointSequence() != 0 || !strings.Contains(d[1].GetReason(), c.reason) {
				t.Errorf("%v: %v", s.GetOutcome(), d)
			}
		})
	}
}

// TestRunMeAgainForEver has a job say "run me again" as its first act, each time.
func TestRunMeAgainForEver(t *testing.T) {
	t.Parallel()
	alpha := federation(t, nil, "alpha")[0]
	s := alpha.waitState(alpha.submit(saving("exit 85", "state")), kithv1.JobStatus_STATE_FAILED).GetStatus()
	if s.GetAttempt() != 64 || len(s.GetDemotions()) != 63 || !strings.Contains(s.GetReason(), "in its last attempt, of 64") {
		t.Errorf("it failed in attempt %d after %d demotions: %s", s.GetAttempt(), len(s.GetDemotions()), s.GetReason())
	}
	// Without a checkpoint the code is one as any other.
	s = alpha.waitState(alpha.submit(shell("exit 85")), kithv1.JobStatus_STATE_FAILED).GetStatus()
	if s.GetAttempt() != 1 || s.GetOutcome().GetExitCode() != 85 {
		t.Errorf("it failed in attempt %d: %v", s.GetAttempt(), s.GetOutcome())
	}
}

// TestCheckpointOutlivesKills kills the daemon between the attempts of a job.
func TestCheckpointOutlivesKills(t *testing.T) {
	t.Parallel()
	k := newKilled(t)
	gate := filepath.Join(t.TempDir(), "gate")
	wait := fmt.Sprintf("until [ -e '%s'-$KITH_CHECKPOINT_SEQUENCE ]; do sleep 0.05; done\n", gate)
	id := k.submit(saving(wait+counting, "state-*"))
	for _, sequence := range []string{"", "1", "2"} {
		k.eventually("attempt after checkpoint "+sequence, func() bool {
			s := k.get(id).GetStatus()
			return s.GetState() == kithv1.JobStatus_STATE_RUNNING && fmt.Sprint(s.GetCheckpointSequence()) == max(sequence, "0")
		})
		k.kill()
		if err := os.WriteFile(gate+"-"+sequence, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		k.run()
	}
	s := k.waitState(id, kithv1.JobStatus_STATE_COMPLETED).GetStatus()
	if s.GetAttempt() != 3 || len(s.GetDemotions()) != 2 || s.GetDemotions()[1].GetCheckpointSequence() != 2 {
		t.Errorf("it ended in attempt %d after %v", s.GetAttempt(), s.GetDemotions())
	}
	if out := k.output(id, "stdout"); !strings.Contains(out, "sequence=2 n=2\nsum 3\n") {
		t.Errorf("the last attempt wrote %q", out)
	}
}

// TestCheckpointExamples runs the jobs of docs/cli.md.
func TestCheckpointExamples(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "\n## Jobs that save what they have done\n")
	if !ok {
		t.Fatal("the page has no such section")
	}
	example := func(language string) string {
		_, rest, _ := strings.Cut(text, "\n```"+language+"\n")
		body, _, ok := strings.Cut(rest, "\n```\n")
		if !ok {
			t.Fatalf("the section has no example in %s", language)
		}
		return body + "\n"
	}
	alpha := federation(t, nil, "alpha")[0]
	for language, program := range map[string]string{"sh": "sh", "python": "python3", "c": "cc"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("no %s here, in which the example of docs/cli.md is written", program)
			}
			j := &kithv1.Job{Script: example(language), Processors: 1, Walltime: durationpb.New(time.Minute), Environment: map[string]string{"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME")}}
			if language == "c" {
				j.Inputs = []*kithv1.InputFile{{Path: "sum.c", Content: &kithv1.InputFile_Data{Data: []byte(j.GetScript())}}}
				j.Script, j.Command = "", []string{"/bin/sh", "-c", "cc -o sum sum.c && ./sum"}
			}
			j.Checkpoint = &kithv1.Checkpoint{Paths: []string{"state"}}
			id := alpha.submit(j)
			s := alpha.waitState(id, kithv1.JobStatus_STATE_COMPLETED, kithv1.JobStatus_STATE_FAILED).GetStatus()
			if out := alpha.output(id, "stdout"); out != "sum 4501500\n" || len(s.GetDemotions()) != 2 || s.GetCheckpointSequence() != 2000 {
				t.Errorf("%q after %v: %v, %s", out, s.GetDemotions(), s.GetOutcome(), alpha.output(id, "stderr"))
			}
		})
	}
}

// asked is a job that counts until it is asked to save, saves and ends, or only saves; it ends well
// in its third attempt.
const asked = `cd "$KITH_CHECKPOINT_DIR" || exit 9
n=$(cat state 2>/dev/null || echo 0)
save() { echo $n >state; echo $n >DONE.new && mv DONE.new DONE; }
[ "$KITH_CHECKPOINT_SEQUENCE" = 200 ] && { echo "n=$n"; exit 0; }
trap 'n=$((n + 100)); save; %s' USR1
touch "$HOME/ready-$n"; : >"%s-$n"
while :; do sleep 0.02; done`

// ask asks a job to save and go on, and waits until its next attempt runs, or it has ended.
func (s *testSite) askCheckpoint(id string) {
	s.t.Helper()
	before := s.get(id).GetStatus().GetAttempt()
	if _, err := s.jobs.CheckpointJob(s.ctx(), &kithv1.CheckpointJobRequest{JobId: id}); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the next attempt", func() bool {
		st := s.get(id).GetStatus()
		return st.GetAttempt() > before && st.GetState() == kithv1.JobStatus_STATE_RUNNING || st.GetState() >= kithv1.JobStatus_STATE_COMPLETED && st.GetState() != kithv1.JobStatus_STATE_BLOCKED
	})
}

// TestAskCheckpoint has users ask jobs to save and go on elsewhere: at their own site and at
// another one, jobs that exit and such that only save, one that does not answer, one that begins
// again, and those that are refused.
func TestAskCheckpoint(t *testing.T) {
	t.Parallel()
	sites := federation(t, func(c *config.Config) {
		if c.Site == "beta" {
			c.Scheduler.Processors = 8
		} else {
			c.Scheduler.Processors = 4
		}
	}, "alpha", "beta")
	alpha := sites[0]
	for i, c := range []struct {
		name, after string
		processors  int32
	}{{"exits", "exit 85", 1}, {"goes on", ":", 1}, {"exits elsewhere", "exit 85", 8}, {"goes on elsewhere", ":", 8}} {
		t.Run(c.name, func(t *testing.T) {
			ready := filepath.Join(t.TempDir(), "ready")
			j := saving(fmt.Sprintf(asked, c.after, ready), "state")
			j.Processors, j.Tasks = c.processors, 1
			id := alpha.submit(j)
			for n := 0; n < 200; n += 100 {
				alpha.eventually("the job is ready", func() bool { _, err := os.Stat(fmt.Sprintf("%s-%d", ready, n)); return err == nil })
				alpha.eventually("it is known to run", func() bool { return alpha.get(id).GetStatus().GetState() == kithv1.JobStatus_STATE_RUNNING })
				alpha.askCheckpoint(id)
			}
			s := alpha.waitState(id, kithv1.JobStatus_STATE_COMPLETED).GetStatus()
			d := s.GetDemotions()
			if out := alpha.output(id, "stdout"); out != "n=200\n" || len(d) != 2 || d[1].GetCheckpointSequence() != 200 || d[0].GetCause() != kithv1.Demotion_CAUSE_REQUESTED || d[0].GetReason() != "" {
				t.Errorf("job %d: %q after %v", i, out, d)
			}
			if acts := s.GetActs(); len(acts) != 3 || acts[2].GetKind() != kithv1.JobAct_KIND_CHECKPOINT {
				t.Errorf("acts %v", acts)
			}
		})
	}
	run := func(j *kithv1.Job) string {
		id := alpha.submit(j)
		alpha.waitState(id, kithv1.JobStatus_STATE_RUNNING)
		return id
	}
	// One that does not answer: what it saved after its grace does not count.
	ready := filepath.Join(t.TempDir(), "late")
	j := saving(`cd "$KITH_CHECKPOINT_DIR"; trap : USR1; trap 'echo 9 >DONE; exit 85' TERM
[ "$KITH_RESTART" ] && { cat DONE 2>/dev/null; exit 0; }
: >state; : >'`+ready+`'; while :; do sleep 0.02; done`, "state")
	j.Checkpoint.Grace = durationpb.New(200 * time.Millisecond)
	id := run(j)
	alpha.eventually("the job is ready", func() bool { _, err := os.Stat(ready); return err == nil })
	alpha.askCheckpoint(id)
	s := alpha.waitState(id, kithv1.JobStatus_STATE_COMPLETED).GetStatus()
	if d := s.GetDemotions(); len(d) != 1 || d[0].GetCheckpointSequence() != 0 || !strings.Contains(d[0].GetReason(), "had not saved anything 200ms after") || !strings.Contains(d[0].GetReason(), "DONE says 9") {
		t.Errorf("too late: %v", d)
	}
	if out := alpha.output(id, "stdout"); out != "" {
		t.Errorf("it found %q", out)
	}
	// One that may begin again, and others.
	j = shell(`case $KITH_ATTEMPT in *#1) sleep 60;; esac; echo again`)
	j.OnSiteLost = kithv1.Job_ON_SITE_LOST_RERUN
	id = run(j)
	alpha.askCheckpoint(id)
	s = alpha.waitState(id, kithv1.JobStatus_STATE_COMPLETED).GetStatus()
	if d := s.GetDemotions(); len(d) != 1 || d[0].GetCause() != kithv1.Demotion_CAUSE_REQUESTED || alpha.output(id, "stdout") != "again\n" {
		t.Errorf("begun again: %v", d)
	}
	refused := func(id, reason string) {
		t.Helper()
		_, err := alpha.jobs.CheckpointJob(alpha.ctx(), &kithv1.CheckpointJobRequest{JobId: id})
		if status.Code(err) != codes.FailedPrecondition && status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", id, err)
		}
	}
	refused(id, "has ended")
	refused("alpha.1.999999", "no such job")
	id = run(shell("sleep 60"))
	refused(id, "writes no checkpoints and may not begin again")
	j = saving("sleep 60", "state")
	j.Hold = true
	refused(alpha.submit(j), "does not run")
}

// TestAskBeforeWalltime has a job asked before its limit, again and again, until it is done.
func TestAskBeforeWalltime(t *testing.T) {
	t.Parallel()
	alpha := federation(t, nil, "alpha")[0]
	j := saving(`cd "$KITH_CHECKPOINT_DIR"; n=$(cat DONE 2>/dev/null || echo 0); [ $n = 2 ] && exit 0
trap 'n=$((n + 1)); echo $n >D; mv D DONE; exit 85' HUP; while :; do sleep 0.02; done`, "DONE")
	j.Walltime = durationpb.New(2 * time.Second)
	j.Checkpoint.Signal, j.Checkpoint.BeforeWalltime = "HUP", durationpb.New(time.Second)
	s := alpha.waitState(alpha.submit(j), kithv1.JobStatus_STATE_COMPLETED, kithv1.JobStatus_STATE_FAILED, kithv1.JobStatus_STATE_TIMEOUT).GetStatus()
	d := s.GetDemotions()
	if s.GetState() != kithv1.JobStatus_STATE_COMPLETED || len(d) != 2 || d[1].GetCause() != kithv1.Demotion_CAUSE_WALLTIME || d[1].GetCheckpointSequence() != 2 {
		t.Errorf("%v after %v", s.GetOutcome(), d)
	}
}

// TestAskOutlivesKills kills the host's daemon after the ask: the job saves without it, and goes on
// when it is back.
func TestAskOutlivesKills(t *testing.T) {
	t.Parallel()
	k := newKilled(t)
	dir := t.TempDir()
	j := saving(`cd "$KITH_CHECKPOINT_DIR"; [ "$KITH_RESTART" ] && { cat DONE; exit 0; }
trap ': >'"'`+dir+`/got'"'; until [ -e '`+dir+`/gate' ]; do sleep 0.02; done; echo 7 >D; mv D DONE; exit 85' USR1; : >'`+dir+`/ready'; while :; do sleep 0.02; done`, "DONE")
	id := k.submit(j)
	exists := func(name string) func() bool {
		return func() bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
	}
	k.eventually("the job is ready", exists("ready"))
	k.waitState(id, kithv1.JobStatus_STATE_RUNNING)
	if _, err := k.jobs.CheckpointJob(k.ctx(), &kithv1.CheckpointJobRequest{JobId: id}); err != nil {
		t.Fatal(err)
	}
	k.eventually("it was asked", exists("got"))
	k.kill()
	if err := os.WriteFile(filepath.Join(dir, "gate"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.run()
	s := k.waitState(id, kithv1.JobStatus_STATE_COMPLETED).GetStatus()
	if d := s.GetDemotions(); len(d) != 1 || d[0].GetCause() != kithv1.Demotion_CAUSE_REQUESTED || d[0].GetCheckpointSequence() != 7 || k.output(id, "stdout") != "7\n" {
		t.Errorf("%v", d)
	}
}

// TestCopiedWhileItRuns has two jobs save again and again while they run, at their own site and, with more than
// comes with a message, at another one: what they saved comes home, unchanged chunks do not travel
// again, and what is damaged is dropped with its reason.
func TestCopiedWhileItRuns(t *testing.T) {
	t.Parallel()
	sites := federation(t, func(c *config.Config) {
		if c.Scheduler.Processors = 2; c.Site == "beta" {
			c.Scheduler.Processors = 4
		}
	}, "alpha", "beta")
	alpha, beta := sites[0], sites[1]
	for _, processors := range []int32{1, 4} { // 4 only beta has
		dir := t.TempDir()
		before, _ := beta.d.files.Moved()
		j := saving(`cd "$KITH_CHECKPOINT_DIR" || exit 9
head -c 9000000 /dev/urandom >state-more
n=0
until [ -e '`+dir+`/end' ]; do
  [ -e '`+dir+`/bad' ] && { echo 1 >D; mv D DONE; : >'`+dir+`/is-bad'; sleep 0.1; continue; }
  n=$((n + 1)); echo $n >s; mv s state-n; echo $n >D; mv D DONE; sleep 0.3
done`, "state-*")
		j.Processors, j.Tasks, j.Checkpoint.Every = processors, 1, durationpb.New(time.Second)
		gate := func(name string) {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		id := alpha.submit(j)
		saved := func() uint64 { return alpha.get(id).GetStatus().GetSavedSequence() }
		alpha.eventually("a checkpoint is home", func() bool { return saved() > 0 })
		first := saved()
		sent, _ := beta.d.files.Moved()
		if far := processors > 1; far != (sent-before >= 9_000_000) {
			t.Errorf("%d bytes travelled with the first checkpoint of a job of %d processors", sent-before, processors)
		}
		alpha.eventually("two later ones", func() bool { return saved() > first+6 })
		if again, _ := beta.d.files.Moved(); again > sent {
			t.Errorf("%d bytes of an unchanged file of 9,000,000 travelled again", again-sent)
		}
		gate("bad")
		alpha.eventually("the reason", func() bool {
			return strings.Contains(alpha.get(id).GetStatus().GetSaveTrouble(), "DONE says 1, and before it said")
		})
		if s := alpha.get(id).GetStatus(); s.GetSavedSequence() <= first || s.GetSavedAttempt() != 1 || s.GetCheckpointSequence() != 0 || s.GetSavedTime() == nil {
			t.Errorf("%v", s)
		}
		gate("end")
		alpha.waitState(id, kithv1.JobStatus_STATE_COMPLETED)
	}
}
