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

// TestCheckpoints has a job save what it has done and go on, at its own site and at another
// one, also if its daemon is killed in between.
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
		j.Processors, j.Tasks = processors, 1
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
				t.Skipf("no %s here", program)
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
