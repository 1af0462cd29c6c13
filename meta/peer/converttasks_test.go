package peer

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/cluster/wire"
	"kith/internal/job"
	"kith/internal/params"
	"kith/meta"
	"kith/meta/bags"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// taskSamples are messages about tasks, of each kind.
func taskSamples() []meta.Message {
	shape := bags.ShapeOf(&sampleRequest)
	tasks, none := job.TaskRange(3, 300), job.TaskSet{}
	tasks.RemoveRange(5, 7)
	few := tasks.Take(2)
	return []meta.Message{
		meta.Offer{Shape: shape, Tasks: 7},
		meta.TaskClaim{Stamp: 7, Sent: 8, Ask: bags.Ask{Node: "n1", Shape: shape, Places: 4, Running: 3, Stock: 2, Mean: time.Second, Want: 9}},
		meta.TaskVerdict{Stamp: 7, Sent: 8, Bundles: []meta.GivenBundle{
			{Bundle: sampleAttempt, Request: sampleRequest, Tasks: few, Lease: time.Minute, Payload: []byte("one and two")},
			{Bundle: sampleAttempt, Request: sampleRequest, Tasks: job.TaskRange(0, 256), Payload: []byte("one and three")},
			{Bundle: sampleAttempt, Request: sampleRequest, Tasks: few},
		}},
		meta.TaskResults{
			Bundle: sampleAttempt, Batch: 2, Run: 1 << 40, Returned: job.TaskRange(9, 11),
			Results: []job.TaskResult{
				{Ordinal: 4, Kind: job.Failure, ExitCode: 2, Start: 3, Run: 4, CPUTime: 5, MaxRSSBytes: 6}, {Ordinal: 3, Kind: job.Success}, {Ordinal: 8, Kind: job.Cancel, Signal: 15},
			},
			Files: []store.TaskFiles{{Ordinal: 4, Set: []byte("f")}, {Ordinal: 8, Set: []byte("g")}},
		},
		meta.TaskResultsAck{Bundle: sampleAttempt, Batch: 3, Unknown: true},
		meta.Recall{Bundle: sampleAttempt, Most: 5},
		meta.StopTasks{Bundle: sampleAttempt, Tasks: &few, Waiting: true},
		meta.StopTasks{Bundle: sampleAttempt, Tasks: &none},
		meta.StopTasks{Bundle: sampleAttempt},
		meta.TaskResults{Bundle: sampleAttempt, Batch: 3, Results: []job.TaskResult{{Ordinal: 4, Kind: job.Timeout, ErrorLine: "no such file"}}},
	}
}

// The bounds of the border are those of the packages whose rules they are.
func TestBoundsOfTasks(t *testing.T) {
	if wire.BundleTasks != store.MaxBundleTasks || wire.ErrorLine != job.MaxErrorLine || wire.FileSet != store.MaxTaskFiles || wire.Parameters != params.MaxParameters {
		t.Error("a bound differs from that of its package")
	}
	full := meta.TaskVerdict{Bundles: make([]meta.GivenBundle, bags.MaxBundles)}
	for i := range full.Bundles {
		full.Bundles[i] = meta.GivenBundle{Bundle: sampleAttempt, Tasks: job.TaskRange(0, 1)}
	}
	if _, err := fromProto(toProto(full)); err != nil {
		t.Errorf("as many bundles as an ask gets: %v", err)
	}
}

// Whatever tasks a bundle has, they have room in a message.
func TestBundlesHaveRoom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for spread := uint32(256); ; spread *= 2 {
		var set job.TaskSet
		for i := range uint32(store.MaxBundleTasks) {
			set.Add(min(i*(spread/256)+rng.Uint32N(max(1, spread/256)), job.MaxTasks-1))
		}
		if n := len(set.AppendBinary(nil)); n > wire.TaskSet {
			t.Errorf("%d tasks of %d take %d bytes", set.Count(), spread, n)
		}
		if spread == job.MaxTasks {
			return
		}
	}
}

// What makes no sense of what is said about tasks is refused, and what is beyond a bound
// that is no one else's is cut.
func TestSenselessTaskMessages(t *testing.T) {
	claim := func(change func(*kithv1.TaskClaim)) *kithv1.PeerMessage {
		p := toProto(taskSamples()[1])
		change(p.GetTaskClaim())
		return p
	}
	verdict := func(change func(*kithv1.TaskVerdict)) *kithv1.PeerMessage {
		p := toProto(taskSamples()[2])
		change(p.GetTaskVerdict())
		return p
	}
	results := func(change func(*kithv1.TaskResults)) *kithv1.PeerMessage {
		p := toProto(taskSamples()[3])
		change(p.GetTaskResults())
		return p
	}
	many := job.TaskRange(0, store.MaxBundleTasks+1)
	for name, p := range map[string]*kithv1.PeerMessage{
		"no shape":            claim(func(c *kithv1.TaskClaim) { c.Shape = math.MaxUint64 }),
		"a shape of nothing":  claim(func(c *kithv1.TaskClaim) { c.Shape = 0 }),
		"a long node":         claim(func(c *kithv1.TaskClaim) { c.Node = strings.Repeat("n", wire.ShortText+1) }),
		"no bundle":           verdict(func(v *kithv1.TaskVerdict) { v.Bundles[0].Bundle = nil }),
		"65 bundles":          verdict(func(v *kithv1.TaskVerdict) { v.Bundles = make([]*kithv1.GivenBundle, bags.MaxBundles+1) }),
		"no tasks":            verdict(func(v *kithv1.TaskVerdict) { v.Bundles[1].Tasks = nil }),
		"257 tasks":           verdict(func(v *kithv1.TaskVerdict) { v.Bundles[1].Tasks = many.AppendBinary(nil) }),
		"no set":              verdict(func(v *kithv1.TaskVerdict) { v.Bundles[1].Tasks = []byte{0xff} }),
		"nothing is shared":   verdict(func(v *kithv1.TaskVerdict) { v.Bundles[0].SharedBytes = 1 }),
		"more than is shared": verdict(func(v *kithv1.TaskVerdict) { v.Bundles[1].SharedBytes = 12 }),
		"no batch":            results(func(r *kithv1.TaskResults) { r.Batch = 0 }),
		"no kind":             results(func(r *kithv1.TaskResults) { r.Results[0].Kind = 9 }),
		"a signal":            results(func(r *kithv1.TaskResults) { r.Results[0].Signal = 65 }),
		"a line of errors":    results(func(r *kithv1.TaskResults) { r.Results[0].ErrorLine = "two\nlines" }),
		"a long line":         results(func(r *kithv1.TaskResults) { r.Results[0].ErrorLine = strings.Repeat("x", wire.ErrorLine+1) }),
		"257 results":         results(func(r *kithv1.TaskResults) { r.Results = make([]*kithv1.TaskResult, store.MaxBundleTasks+1) }),
		"files of no result":  results(func(r *kithv1.TaskResults) { r.Files[0].Ordinal = 77 }),
		"files in disorder":   results(func(r *kithv1.TaskResults) { r.Files[0], r.Files[1] = r.Files[1], r.Files[0] }),
		"files of one twice":  results(func(r *kithv1.TaskResults) { r.Files[1] = r.Files[0] }),
		"large files":         results(func(r *kithv1.TaskResults) { r.Files[0].Files = make([]byte, wire.FileSet+1) }),
		"no files":            results(func(r *kithv1.TaskResults) { r.Files[0].Files = nil }),
		"many large files": results(func(r *kithv1.TaskResults) {
			r.Results = append(r.Results, &kithv1.TaskResult{Ordinal: 99, Kind: 1})
			r.Files = append(r.Files, &kithv1.TaskFiles{Ordinal: 99})
			for _, f := range r.Files {
				f.Files = make([]byte, store.MaxBatchFiles/3+1)
			}
		}),
	} {
		if m, err := fromProto(p); !errors.Is(err, ErrMessage) || strings.Contains(err.Error(), "kithv1") {
			t.Errorf("%s: %+v, %v; want ErrMessage", name, m, err)
		}
	}
	m, err := fromProto(claim(func(c *kithv1.TaskClaim) { c.Places, c.Stock, c.Want, c.MeanRunTimeNs = 1<<31, 1<<31, 1<<31, -1 }))
	if a := m.(meta.TaskClaim).Ask; err != nil || a.Places != bags.MaxPlaces || a.Want != bags.MaxAsk || a.Stock != bags.MaxAsk || a.Mean != 0 {
		t.Errorf("an ask without bounds reads as %+v, %v", a, err)
	}
}

// What bundles have in common is sent once, and cannot be told to fill the memory.
func TestSharedPayloads(t *testing.T) {
	template := bytes.Repeat([]byte("t"), 10_000)
	var v meta.TaskVerdict
	for i := range 16 {
		v.Bundles = append(v.Bundles, meta.GivenBundle{Bundle: sampleAttempt, Tasks: job.TaskRange(0, 1), Payload: append(template[:len(template):len(template)], byte(i))})
	}
	p := toProto(v)
	if n := proto.Size(p); n > len(template)+16*100 {
		t.Errorf("16 bundles of one bag take %d bytes", n)
	}
	got, err := fromProto(p)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range got.(meta.TaskVerdict).Bundles {
		if !bytes.Equal(b.Payload, v.Bundles[i].Payload) {
			t.Errorf("bundle %d has another payload", i)
		}
	}
	v.Bundles = v.Bundles[:0]
	for range 3 {
		v.Bundles = append(v.Bundles, meta.GivenBundle{Bundle: sampleAttempt, Tasks: job.TaskRange(0, 1), Payload: make([]byte, wire.Payload)})
	}
	if _, err := fromProto(toProto(v)); !errors.Is(err, ErrMessage) {
		t.Errorf("payloads of 9 MiB in a message of 3: %v", err)
	}
}

// A site whose version knows no tasks is sent nothing about them.
func TestTasksAreForThoseWhoKnowThem(t *testing.T) {
	for _, knows := range []bool{false, true} {
		s := newStream(t.Context(), nil, &kithv1.Hello{SiteId: "beta", Tasks: knows}, true, time.Second)
		l := New(Config{Site: "alpha"}, nil, nil)
		l.streams["beta"] = &session{stream: s}
		for _, m := range taskSamples() {
			l.Send("beta", m)
		}
		l.Send("beta", meta.Claim{Attempt: sampleAttempt})
		want := 1
		if knows {
			want += len(taskSamples())
		}
		if len(s.queue) != want {
			t.Errorf("knows %v: %d messages, want %d", knows, len(s.queue), want)
		}
	}
}

// That a task lost its output is told.
func TestOutputThatIsLostIsTold(t *testing.T) {
	for _, lost := range []bool{true, false} {
		m := meta.TaskResults{Bundle: job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 3, Seq: 4}, Number: 5}, Batch: 1, Results: []job.TaskResult{{Kind: job.Success, FilesLost: lost}}}
		if got := resultsToProto(&m).GetResults(); len(got) != 1 || got[0].GetFilesLost() != lost {
			t.Errorf("%v", got)
		}
		r := reader{}
		if got, ok := r.taskResults(resultsToProto(&m)).(meta.TaskResults); !ok || len(got.Results) != 1 || got.Results[0].FilesLost != lost {
			t.Errorf("%+v", got)
		}
	}
}
