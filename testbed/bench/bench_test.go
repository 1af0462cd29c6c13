package bench

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/testbed/local"
)

func TestMain(m *testing.M) {
	if handled, code := local.Main(os.Args); handled {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// TestMeasures runs every measure with little work: each must finish, count
// what it should and report figures. What the figures are is not tested.
func TestMeasures(t *testing.T) {
	opt := Options{
		Dir:    t.TempDir(),
		Starts: 3, Jobs: 30, Sites: 3, Copies: 2, Claims: 200, InFlight: 64, Queued: 300,
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := Run(ctx, opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		if !slices.ContainsFunc(r.Figures, func(f Figure) bool { return f.Measure == name }) {
			t.Errorf("measure %s reports no figure", name)
		}
	}
	for _, f := range r.Figures {
		if f.Value <= 0 || f.Unit == "" || f.Name == "" {
			t.Errorf("figure %+v: nothing was measured", f)
		}
	}
	if m := r.Machine; m.ForkExecSerial <= 0 || m.ForkExecParallel <= 0 || m.SyncMedian <= 0 || m.Processors <= 0 {
		t.Errorf("the machine's limits were not measured: %+v", m)
	}
}

func TestUnknownMeasure(t *testing.T) {
	_, err := Run(t.Context(), Options{Dir: t.TempDir()}, []string{"sped"})
	if err == nil || !strings.Contains(err.Error(), `"sped"`) || !strings.Contains(err.Error(), "throughput") {
		t.Errorf("error is %v, want one that names the value and the choices", err)
	}
}

func TestReached(t *testing.T) {
	target := 10.0
	for _, c := range []struct {
		figure Figure
		want   bool
	}{
		{Figure{Value: 1}, true},
		{Figure{Value: 9, Target: &target}, false},
		{Figure{Value: 10, Target: &target}, true},
		{Figure{Value: 10, Target: &target, AtMost: true}, true},
		{Figure{Value: 11, Target: &target, AtMost: true}, false},
	} {
		if got := c.figure.Reached(); got != c.want {
			t.Errorf("%+v: reached %v, want %v", c.figure, got, c.want)
		}
	}
}

func TestParseDate(t *testing.T) {
	if got, err := parseDate("12.000000345\n"); err != nil || !got.Equal(time.Unix(12, 345)) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "12", "x.1", "1.y"} {
		if _, err := parseDate(text); err == nil {
			t.Errorf("%q was taken for a time", text)
		}
	}
}
