package chaos

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kithv1 "kith/proto/gen/kith/v1"
)

// task is a job of the workload with what should become of it.
type task struct {
	request  string // its request_id
	origin   int
	policy   kithv1.Job_OnSiteLost
	job      *kithv1.Job
	code     int32             // with which it ends
	runsOut  bool              // sleeps longer than its walltime
	outputs  map[string]string // sha256 by path
	cancel   time.Duration     // after its acknowledgement; 0: never
	vandal   bool              // damages its own folder
	counts   *counter          // nil if it does not count
	again    bool              // submitted once more with the same request_id
	duration time.Duration
}

// folders of a run that jobs use.
type folders struct{ ledger, taskLedger, locks, secret, counts string }

// maker makes the workload of one origin from a seed.
type maker struct {
	rng     *rand.Rand
	origin  int
	width   int32
	sites   int
	longest time.Duration
	tame    bool // no job damages its folder
	count   bool // most jobs count
	folders folders
	made    int
}

func newMaker(opt *Options, origin int, width int32, longest time.Duration, f folders) *maker {
	return &maker{
		rng: rand.New(rand.NewPCG(opt.Seed, 100+uint64(origin))), origin: origin, width: width, sites: opt.Sites, longest: longest, folders: f,
	}
}

// sign is what every job does first: it signs the ledger and takes the job's
// lock, which the kernel gives back when the last of its processes has ended.
const sign = `echo "start $KITH_ATTEMPT $KITH_SITE" >>"$CHAOS_LEDGER"
exec 9>>"$CHAOS_LOCKS/$KITH_JOB_ID"
if ! flock -n 9; then
	echo "overlap $KITH_ATTEMPT $KITH_SITE" >>"$CHAOS_LEDGER"
	[ "$CHAOS_RACE" ] || exit 97
fi
`

// next makes the next job.
func (m *maker) next() *task {
	r := m.rng
	m.made++
	t := &task{request: fmt.Sprintf("chaos-%d-%d", m.origin, m.made), origin: m.origin, outputs: map[string]string{}}
	env := map[string]string{"CHAOS_LEDGER": m.folders.ledger, "CHAOS_LOCKS": m.folders.locks}
	switch n := r.IntN(10); {
	case n < 5:
		t.policy = kithv1.Job_ON_SITE_LOST_WAIT
	case n < 8:
		t.policy = kithv1.Job_ON_SITE_LOST_RERUN
	default:
		t.policy = kithv1.Job_ON_SITE_LOST_RACE
		env["CHAOS_RACE"] = "yes"
	}
	t.duration = m.lasting(t.policy)
	width := int32(1)
	if r.IntN(3) == 0 {
		width = 1 + r.Int32N(m.width)
	}
	walltime := 3*t.duration + 30*time.Second
	script := "#!/bin/sh\n" + sign
	switch n := r.IntN(20); {
	case n == 0:
		t.code = 3
	case n == 1:
		t.runsOut, walltime, t.duration = true, time.Second, time.Minute
	case n == 2:
		t.cancel = 1 + time.Duration(r.IntN(4000))*time.Millisecond
	}
	t.again = r.IntN(20) == 0
	t.job = &kithv1.Job{
		Name: t.request, Processors: width, Walltime: durationpb.New(walltime), Copies: 1 + r.Int32N(int32(m.sites)),
		OnSiteLost: t.policy, Environment: env, Labels: map[string]string{"request": t.request},
	}
	script += fmt.Sprintf("sleep %.2f\n", t.duration.Seconds())
	if r.IntN(4) == 0 {
		script += m.files(t)
	}
	script += "echo \"done $KITH_JOB_ID\"\necho \"end $KITH_ATTEMPT $KITH_SITE\" >>\"$CHAOS_LEDGER\"\n"
	t.job.Script = script + fmt.Sprintf("exit %d\n", t.code)
	if !m.tame && r.IntN(6) == 0 && t.code == 0 && !t.runsOut && t.cancel == 0 && len(t.outputs) == 0 {
		m.vandalize(t)
	}
	if m.count && r.IntN(10) < countOfTen {
		m.counting(t)
	}
	return t
}

// lasting draws how long a job runs. Some live through a lease and more, most
// of all those for which that matters.
func (m *maker) lasting(p kithv1.Job_OnSiteLost) time.Duration {
	long := 8
	if p != kithv1.Job_ON_SITE_LOST_WAIT {
		long = 3
	}
	if m.rng.IntN(long) == 0 {
		return min(m.longest, time.Duration(4000+m.rng.IntN(20_000))*time.Millisecond)
	}
	return time.Duration(100+m.rng.IntN(1400)) * time.Millisecond
}

// files gives a job an input, and outputs that can be told by their content.
func (m *maker) files(t *task) string {
	size := 100 + m.rng.IntN(20_000)
	if m.rng.IntN(8) == 0 {
		size = 700_000
	}
	var in bytes.Buffer
	for in.Len() < size {
		fmt.Fprintf(&in, "%016x %s\n", m.rng.Uint64(), t.request)
	}
	t.job.Inputs = []*kithv1.InputFile{{Path: "in.txt", Content: &kithv1.InputFile_Data{Data: in.Bytes()}}}
	t.job.Outputs = []*kithv1.OutputFile{{Path: "out.txt"}, {Path: "zeros"}}
	zeros := m.rng.IntN(100_000)
	if m.rng.IntN(20) == 0 {
		zeros = 3 << 20
	}
	t.outputs["out.txt"] = sum([]byte(strings.ToUpper(in.String())))
	t.outputs["zeros"] = sum(bytes.Repeat([]byte("0"), zeros))
	return fmt.Sprintf("tr a-z A-Z <in.txt >out.txt\nhead -c %d /dev/zero | tr '\\0' 0 >zeros\n", zeros)
}

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

// load is how many processor seconds a job takes on average: the mean of its
// width times the mean of its duration, for the pace of submission.
func load(width int32, longest time.Duration) float64 {
	meanWidth := (2 + (1+float64(width))/2) / 3
	long, short := min(14, longest.Seconds()), 0.85
	waits, others := (long+7*short)/8, (long+2*short)/3
	return meanWidth * (waits + others) / 2
}
