package bags

import (
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/job"
)

func TestShapes(t *testing.T) {
	for name, c := range map[string]struct {
		request job.Request
		want    Shape
	}{
		"whole minutes":     {job.Request{Processors: 1, Walltime: 10 * time.Minute}, Shape{1, 0, 10 * time.Minute}},
		"a second":          {job.Request{Processors: 1, Walltime: time.Second}, Shape{1, 0, time.Minute}},
		"up to a step":      {job.Request{Processors: 4, Walltime: 17 * time.Minute}, Shape{4, 0, 18 * time.Minute}},
		"a step":            {job.Request{Processors: 4, Walltime: 18 * time.Minute}, Shape{4, 0, 18 * time.Minute}},
		"up to a doubling":  {job.Request{Processors: 4, Walltime: 31 * time.Minute}, Shape{4, 0, 32 * time.Minute}},
		"a byte":            {job.Request{Processors: 1, Walltime: time.Minute, MemoryBytes: 1}, Shape{1, 1 << 20, time.Minute}},
		"memory":            {job.Request{Processors: 1, Walltime: time.Minute, MemoryBytes: 1000 << 20}, Shape{1, 1024 << 20, time.Minute}},
		"the most of each":  {job.Request{Processors: job.MaxProcessors, Walltime: job.MaxWalltime, MemoryBytes: job.MaxMemoryBytes}, Shape{job.MaxProcessors, job.MaxMemoryBytes, job.MaxWalltime}},
		"almost the most":   {job.Request{Processors: 1, Walltime: job.MaxWalltime - 1}, Shape{1, 0, job.MaxWalltime}},
		"a minute and more": {job.Request{Processors: 1, Walltime: time.Minute + 1}, Shape{1, 0, 2 * time.Minute}},
	} {
		if got := ShapeOf(&c.request); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A pilot of the shape can run the task and holds at most an eighth more, but for the
// units; the number says all of the shape.
func TestShapesHoldTheirTasks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		r := job.Request{Processors: 1 + rng.Int32N(job.MaxProcessors), Walltime: 1 + time.Duration(rng.Int64N(int64(job.MaxWalltime)>>rng.IntN(40)))}
		if rng.IntN(3) > 0 {
			r.MemoryBytes = rng.Int64N(1 + job.MaxMemoryBytes>>rng.IntN(50))
		}
		s := ShapeOf(&r)
		if s.Processors != r.Processors || s.Walltime < r.Walltime || s.MemoryBytes < r.MemoryBytes || s.Walltime > job.MaxWalltime || s.MemoryBytes > job.MaxMemoryBytes {
			t.Fatalf("%+v has the shape %+v", r, s)
		}
		if s.Walltime > r.Walltime+r.Walltime/8+time.Minute*9/8 || s.MemoryBytes > r.MemoryBytes+r.MemoryBytes/8+1<<20*9/8 || (r.MemoryBytes == 0) != (s.MemoryBytes == 0) {
			t.Fatalf("%+v has the shape %+v: that is more than an eighth above", r, s)
		}
		if again := ShapeOf(&job.Request{Processors: s.Processors, MemoryBytes: s.MemoryBytes, Walltime: s.Walltime}); again != s {
			t.Fatalf("the shape of %+v is %+v", s, again)
		}
		if parsed, ok := ParseShape(s.Number()); !ok || parsed != s {
			t.Fatalf("%+v reads back as %+v, %v", s, parsed, ok)
		}
	}
}

func FuzzParseShape(f *testing.F) {
	for _, n := range []uint64{0, 1, 1<<40 | 1, 0xff<<40 | 1, 1<<40 | 0xff<<32 | 1, 1 << 63, 1<<64 - 1} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, n uint64) {
		s, ok := ParseShape(n)
		if !ok {
			return
		}
		r := job.Request{Processors: s.Processors, MemoryBytes: s.MemoryBytes, Walltime: s.Walltime}
		if err := r.Validate(); err != nil || s.Number() != n || ShapeOf(&r) != s {
			t.Fatalf("%d is %+v, whose number is %d: %v", n, s, s.Number(), err)
		}
	})
}
