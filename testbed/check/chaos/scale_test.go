package chaos

import (
	"strings"
	"testing"
	"time"
)

// A small federation with four ill sites loses nothing and runs nothing twice. How
// idle its sites are depends on the machine and is not looked at here.
func TestScale(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it takes half a minute")
	}
	t.Parallel()
	r, err := RunScale(t.Context(), ScaleOptions{
		Dir: t.TempDir(), Sites: 7, Jobs: 100, Processors: 4, JobTime: 100 * time.Millisecond, Observe: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Sound() {
		t.Errorf("%d jobs lost, %d started twice: %s", r.Lost, r.DoubleStarts, strings.Join(r.Problems, "; "))
	}
	if r.Drained < r.Ideal {
		t.Errorf("drained in %.2f s, faster than %.2f s with no processor idle", r.Drained, r.Ideal)
	}
	if r.PeakMemory == 0 || r.LateSubmit == 0 {
		t.Errorf("nothing was looked at: %+v", r)
	}
}

// What is too small or too large is refused with its field, value and remedy.
func TestScaleOptions(t *testing.T) {
	bad := ScaleOptions{Sites: 5, Jobs: 1, Processors: 0, JobTime: time.Hour}
	err := bad.Validate()
	for _, want := range []string{"sites 5: choose 7 to 50", "jobs 1: choose", "processors 0: choose", "job time 1h0m0s: choose"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if good := DefaultScaleOptions(); good.Validate() != nil {
		t.Error(good.Validate())
	}
}

// The share of idle processors is counted only while more jobs wait than there are
// processors, and a row of free looks ends where a site had none.
func TestScaleSum(t *testing.T) {
	r := &scaleRun{opt: ScaleOptions{Processors: 2, Observe: func(string) {}}, healthy: 2, names: []string{"a", "b"}}
	w := &scaleWatch{r: r}
	began := time.Now()
	for i, l := range []scaleLook{
		{waiting: 9, free: []int{0, 2}, unsigned: []int{0, 2}},
		{waiting: 9, free: []int{0, 2}, unsigned: []int{1, 2}},
		{waiting: 9, free: []int{0, 1}, unsigned: []int{0, 1}},
		{waiting: 9, free: []int{0, 0}, unsigned: []int{0, 0}},
		{waiting: 4, free: []int{2, 2}, unsigned: []int{2, 2}}, // no more than there are processors
	} {
		l.at = began.Add(time.Duration(i) * time.Second)
		w.seen = append(w.seen, l)
	}
	w.sum()
	if want := 3.0 / 12; r.report.Idle != want {
		t.Errorf("idle share %v, want %v", r.report.Idle, want)
	}
	if want := 4.0 / 12; r.report.IdleByLedger != want {
		t.Errorf("idle share by the ledger %v, want %v", r.report.IdleByLedger, want)
	}
	if r.report.LongestIdle != 2 {
		t.Errorf("longest idle %v s, want 2", r.report.LongestIdle)
	}
}

// What 99 of 100 do not exceed is nothing where nothing was measured.
func TestScaleFigures(t *testing.T) {
	if got := p99(nil); got != 0 {
		t.Errorf("p99 of nothing is %v", got)
	}
	if got := p99([]time.Duration{3 * time.Second, time.Second, 2 * time.Second}); got != 3 {
		t.Errorf("p99 is %v s, want 3", got)
	}
}
