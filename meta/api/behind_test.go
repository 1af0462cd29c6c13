package api

import (
	"strings"
	"testing"

	"kith/internal/job"
	"kith/meta"
	"kith/store"
)

// A job behind the guarantee depth is told so, by the name of the knob.
func TestBehindTheGuaranteeDepth(t *testing.T) {
	v := &meta.JobView{
		Record: store.Job{State: job.Queued, Sites: []job.SiteID{"alpha", "beta"}},
		Copies: []meta.CopyView{{Site: "alpha", Behind: true}, {Site: "beta"}},
	}
	got := strings.Join(waitsAt(v), ", ")
	if want := "alpha (no guaranteed start yet: more jobs wait ahead of it than scheduler.guarantee_depth), beta"; got != want {
		t.Errorf("it waits at %q, want %q", got, want)
	}
}
