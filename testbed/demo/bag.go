package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kithv1 "kith/proto/gen/kith/v1"
)

// BagResult is what came of a bag of tasks.
type BagResult struct {
	Bag            string `json:"bag"`
	TasksSubmitted int    `json:"tasks_submitted"`
	TasksCompleted int    `json:"tasks_completed"`
	TasksFailed    int    `json:"tasks_failed"`
	// Runs are counted from what the tasks themselves wrote down, and so are those that ran
	// more than once or never.
	Runs      int             `json:"runs"`
	RanTwice  int             `json:"ran_twice"`
	NeverRan  int             `json:"never_ran"`
	Seconds   float64         `json:"seconds"`
	Sites     []BagSiteResult `json:"sites"`
	LastState string          `json:"last_state"`
}

// BagSiteResult is what one site did for a bag.
type BagSiteResult struct {
	Site       string `json:"site"`
	Processors int32  `json:"processors"`
	Tasks      int64  `json:"tasks"`
}

// Good reports whether every task ran exactly once and succeeded.
func (r *BagResult) Good() bool {
	return r.TasksCompleted == r.TasksSubmitted && r.Runs == r.TasksSubmitted && r.RanTwice == 0 && r.NeverRan == 0
}

// RunBag submits a bag of so many tasks at the first site, waits for its end and counts.
// see learns how far it is; nil for no one.
func (d *Demo) RunBag(ctx context.Context, tasks int, see func(*kithv1.BagStatus)) (*BagResult, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, d.opt.Patience)
	defer cancel()
	ledger := filepath.Join(d.opt.Dir, "tasks")
	command := d.opt.Command
	if len(command) == 0 {
		command = []string{"true"}
	}
	// A task signs with its index in one write, which none interrupts.
	sign := []string{"/bin/sh", "-c", `echo {{index}} >> "$0" && exec "$@"`, strings.ReplaceAll(ledger, "{{", "{{{{")}
	for _, word := range command {
		sign = append(sign, strings.ReplaceAll(word, "{{", "{{{{"))
	}
	origin := d.fed.Nodes()[0]
	submitted, err := origin.Bags.SubmitBag(ctx, &kithv1.SubmitBagRequest{RequestId: "demo-bag", Bag: &kithv1.Bag{
		Indices: fmt.Sprintf("1-%d", tasks), Job: &kithv1.Job{Name: "demo", Command: sign, Processors: 1, Walltime: durationpb.New(10 * time.Minute)},
	}})
	if err != nil {
		return nil, fmt.Errorf("submit a bag at %s: %w", origin.Name, err)
	}
	last, err := followBag(ctx, origin.Bags, submitted.GetBagId(), see)
	if err != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("watch bag %s: %w", submitted.GetBagId(), err)
	}
	r := &BagResult{
		Bag: submitted.GetBagId(), TasksSubmitted: tasks, Seconds: time.Since(began).Seconds(),
		TasksCompleted: int(last.GetTasks().GetCompleted()), TasksFailed: int(last.GetTasks().GetFailed()),
		LastState: strings.TrimPrefix(last.GetState().String(), "STATE_"),
	}
	d.countBag(r, last, ledger)
	return r, nil
}

// followBag returns the last status of a bag, also with an error.
func followBag(ctx context.Context, bags kithv1.BagServiceClient, id string, see func(*kithv1.BagStatus)) (last *kithv1.BagStatus, err error) {
	stream, err := bags.WatchBag(ctx, &kithv1.WatchBagRequest{BagId: id})
	for err == nil {
		var r *kithv1.WatchBagResponse
		if r, err = stream.Recv(); err != nil {
			break
		}
		if last = r.GetBag().GetStatus(); see != nil {
			see(last)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return last, err
}

// countBag sums up from the ledger and what the origin says of the sites.
func (d *Demo) countBag(r *BagResult, last *kithv1.BagStatus, ledger string) {
	signed := make(map[int]int)
	text, _ := os.ReadFile(ledger) // none: no task ran
	for line := range strings.Lines(string(text)) {
		if index, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			signed[index]++
			r.Runs++
		}
	}
	for index := 1; index <= r.TasksSubmitted; index++ {
		switch n := signed[index]; {
		case n == 0:
			r.NeverRan++
		case n > 1:
			r.RanTwice++
		}
	}
	ran := make(map[string]int64)
	for _, s := range last.GetSites() {
		ran[s.GetSiteId()] = s.GetCompleted() + s.GetFailed() + s.GetLost()
	}
	for _, n := range d.fed.Nodes() {
		r.Sites = append(r.Sites, BagSiteResult{Site: n.Name, Processors: n.Config.Scheduler.Processors, Tasks: ran[n.Name]})
	}
}
