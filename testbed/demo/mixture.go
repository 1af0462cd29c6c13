package demo

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched"
	"kith/testbed/local"
)

var names = strings.Fields("alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi psi omega")

// sites returns n sites of different sizes and policies.
func sites(n, levels int) []local.Site {
	kinds := []func(*config.Config){
		func(c *config.Config) { c.Scheduler.Processors = 4 },
		func(c *config.Config) { c.Scheduler.Processors, c.Scheduler.Backfill = 2, sitesched.Conservative },
		func(c *config.Config) {
			c.Scheduler.Processors, c.Scheduler.Queues, c.Scheduler.Scope = 3, sitesched.Single, sitesched.ScopeHead
		},
		func(c *config.Config) {
			c.Scheduler.Processors, c.Scheduler.Backfill, c.Scheduler.Queues = 1, sitesched.NoBackfill, sitesched.DualStrict
		},
	}
	list := make([]local.Site, n)
	for i := range list {
		name := fmt.Sprint("site-", i+1)
		if i < len(names) {
			name = names[i]
		}
		kind := kinds[i%len(kinds)]
		list[i] = local.Site{Name: name, Tune: func(c *config.Config) {
			kind(c)
			if rank := i - (n - levels) + 1; rank > 0 {
				c.Level.Rank, c.Level.Run = rank, runLimit(rank, levels)
				c.Level.Queue = 10 * c.Level.Run
			}
			// Among neighbours on one machine news may travel faster.
			c.Timing.Load = 500 * time.Millisecond
			c.Executor.Grace = time.Second
		}}
	}
	return list
}

// runLimit is how long a job may run at a level: 5 s at the first, three times as long at each
// below it, 10 min at the last.
func runLimit(rank, levels int) time.Duration {
	limit := 5 * time.Second
	for range rank - 1 {
		limit *= 3
	}
	if rank == levels {
		return max(limit, 10*time.Minute)
	}
	return limit
}

// job returns the i-th job.
func (d *Demo) job(i int) *kithv1.Job {
	if len(d.opt.Command) > 0 {
		return &kithv1.Job{
			Name: fmt.Sprintf("job-%d", i), Command: d.opt.Command, Processors: 1,
			Walltime: durationpb.New(time.Minute), Copies: int32(d.opt.Copies),
		}
	}
	m := mixture[i%len(mixture)]
	j := &kithv1.Job{
		Name: m.name, Processors: m.processors, Walltime: durationpb.New(m.walltime), Copies: int32(d.opt.Copies),
		Environment: map[string]string{"LEDGER": d.ledger},
		Script:      "#!/bin/sh -e\necho \"$KITH_ATTEMPT\" >> \"$LEDGER\"\n" + m.script + "\n",
		Labels:      map[string]string{"demo": m.name},
	}
	if m.input != "" {
		j.Inputs = []*kithv1.InputFile{{Path: "input.txt", Content: &kithv1.InputFile_Data{Data: []byte(strings.Repeat(m.input, 1+i))}}}
		j.Outputs = []*kithv1.OutputFile{{Path: "result.txt"}}
	}
	return j
}

// mixture is what a day at a small site looks like, in seconds: short and
// long, narrow and wide, with and without files. Walltimes are generous, as
// users' are.
var mixture = []struct {
	name       string
	processors int32
	walltime   time.Duration
	input      string
	script     string
}{
	{"hello", 1, 10 * time.Second, "", `echo "hello from $KITH_SITE"`},
	{"nap", 1, 5 * time.Second, "", "sleep 1"},
	{"count-words", 1, 20 * time.Second, "the quick brown fox\n", "wc -w < input.txt > result.txt; cat result.txt"},
	{"wide", 2, 5 * time.Second, "", "sleep 0.6; echo \"$SLURM_CPUS_ON_NODE processors\""},
	{"primes", 1, 30 * time.Second, "", "n=2; while [ $n -lt 300 ]; do d=2; while [ $((d*d)) -le $n ] && [ $((n%d)) -ne 0 ]; do d=$((d+1)); done; [ $((d*d)) -gt $n ] && echo $n; n=$((n+1)); done | tail -n 1"},
	{"sort", 1, 20 * time.Second, "9\n3\n7\n1\n", "sort -n input.txt > result.txt; head -n 1 result.txt"},
	{"wider", 3, 5 * time.Second, "", "sleep 0.4"},
	{"checksum", 1, 10 * time.Second, "", "head -c 1000000 /dev/zero | cksum"},
}
