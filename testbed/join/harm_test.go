package join_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"kith/testbed/join"
)

// The schedule of a site's own jobs alone is found twice: by the replay of each site by itself
// and by the shadow that harm is reckoned against. Who knows one of them knows the other.
func TestHarmIsAgainstBeingAlone(t *testing.T) {
	t.Parallel()
	fast := strings.Replace(crowdedUnder("k-dual", "dual-backfill"), "name = \"idle\"", "name = \"idle\"\nspeed = 4.0\nzone = \"3h\"", 1)
	for _, text := range []string{fast, strings.Replace(fast, "speed = 4.0", "speed = 0.3", 1), crowdedUnder("k-dual", "single"), crowdedUnder("mct", "dual-strict")} {
		a := answer(t, text)
		for i := range a.Plans {
			for k := range a.Plans[i].Sites {
				x, alone := &a.Plans[i].Sites[k], &a.Alone.Sites[k]
				h := x.Harm
				if h.Jobs != x.Jobs || h.Compared != x.Jobs || h.Guests != x.Guests || math.Abs(h.GuestProcessorHours-x.WorkForOthers) > 1e-6 {
					t.Errorf("%s: harm is of %d jobs and %d guests, %d were compared; of %+v", x.Site, h.Jobs, h.Guests, h.Compared, x)
				}
				near := func(what string, got, want float64) {
					if math.Abs(got-want) > 1e-3 {
						t.Errorf("%s, %s: %v, want %v", x.Site, what, got, want)
					}
				}
				near("wait alone", h.Alone, alone.Wait)
				near("wait", h.Wait, x.Wait)
				near("delay", h.Delay, x.Wait-alone.Wait)
				near("delays and gains", h.Delays-h.Gains, float64(x.Jobs)*h.Delay)
				for c := range h.Classes {
					if f := &h.Classes[c]; f.Jobs != x.Classes[c].Jobs || f.Jobs > 0 && math.Abs(f.Delay-(x.Classes[c].Wait-alone.Classes[c].Wait)) > 1e-3 {
						t.Errorf("%s: harm to jobs of kind %d: %+v", x.Site, c, f)
					}
				}
				if h.PromisesMoved != 0 {
					t.Errorf("%s: guests moved %d promises", x.Site, h.PromisesMoved)
				}
				if h.Promises == strings.Contains(text, "single") {
					t.Errorf("%s: promises %v", x.Site, h.Promises)
				}
			}
		}
		if a.Alone.Sites[0].Harm != nil {
			t.Error("a site alone has guests")
		}
		if h := a.Plans[a.Best].Sites[1].Harm; strings.Contains(text, "k-dual") && (h.Blocked == 0 || h.Guests == 0) {
			t.Errorf("nobody is blocked: the test sees nothing: %+v", h)
		}
	}
}

// The page and the sentences tell it.
func TestPageSaysWhatGuestsCost(t *testing.T) {
	t.Parallel()
	a := answer(t, crowdedUnder("k-dual", "dual-backfill"))
	var page bytes.Buffer
	if err := a.Page().WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"What guests cost", "Lost ÷ gained", "Promises moved", "Guests moved back no promise", "What guests got", "Jobs that started later than alone", "long-wide"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if all := strings.Join(a.Sentences, "\n"); !strings.Contains(all, "What guests cost: ") || !strings.Contains(all, "h of waiting for each hour that they gain") {
		t.Errorf("sentences: %s", all)
	}
	moved := []join.Harm{{Site: "x", Promises: true, HarmFigures: join.HarmFigures{Jobs: 1, PromisesMoved: 2}}}
	if got := join.HarmInAll(moved); !strings.Contains(got, "moved back 2 promises") || !strings.Contains(got, "report it") {
		t.Errorf("a broken promise is told as %q", got)
	}
}
