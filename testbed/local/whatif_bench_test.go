package local_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kithv1 "kith/proto/gen/kith/v1"
)

// BenchmarkWhatIf asks one of five sites on loopback, at each of which a hundred copies wait,
// when a job would start for six alternatives: three walltimes on two widths, at all sites.
// Sites answer sixty such questions a minute, so that it waits between two rounds; the
// figure is that of the questions alone.
func BenchmarkWhatIf(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	fed := oneEach(ctx, b, 4, "a", "b", "c", "d", "e")
	time.Sleep(6 * time.Second) // loads are told
	for i := range 104 {
		for k, n := range fed.Nodes() {
			_, err := n.Jobs.SubmitJob(ctx, &kithv1.SubmitJobRequest{Job: &kithv1.Job{
				Command: []string{"/bin/sleep", "3600"}, Processors: int32(1 + (i+k)%4), Walltime: durationpb.New(time.Duration(1+i%3) * time.Hour), Copies: 1,
			}})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	time.Sleep(6 * time.Second)
	for _, n := range fed.Nodes() {
		r, err := n.Sites.GetSite(ctx, &kithv1.GetSiteRequest{})
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("%s: %d copies wait", n.Name, r.GetSite().GetQueuedCopies())
	}
	r := &kithv1.ForecastJobRequest{Job: &kithv1.Job{Command: []string{"true"}, Processors: 1, Walltime: durationpb.New(time.Hour)}}
	for _, w := range []time.Duration{time.Hour, 2 * time.Hour, 4 * time.Hour} {
		for _, p := range []int32{1, 4} {
			r.Alternatives = append(r.Alternatives, &kithv1.JobAlternative{Walltime: durationpb.New(w), Processors: p, Copies: 5})
		}
	}
	var took []time.Duration
	scenarios := 0
	for len(took) < 20 {
		began := time.Now()
		resp, err := fed.Nodes()[0].Jobs.ForecastJob(ctx, r)
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		for _, a := range resp.GetAlternatives() {
			for _, s := range a.GetSites() {
				if s.GetBasis() == "scenarios" {
					scenarios++
				}
			}
		}
		time.Sleep(6500 * time.Millisecond)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1e6, "ms/median")
	b.ReportMetric(float64(took[len(took)-1])/1e6, "ms/longest")
	b.ReportMetric(float64(scenarios)/float64(len(took)*len(r.Alternatives)), "sites/alternative")
	b.ReportMetric(0, "ns/op")
	if testing.Verbose() {
		b.Log(fmt.Sprint(took))
	}
}
