package workload

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// What is written is read back; what is unknown is -1, what has no run time is left out, and
// times are those that the format can say.
func TestWriteSWF(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Unix(1_000_000_000, 0).Add(d) }
	l := &SWFLog{Site: "uni-a", Processors: 430, Notes: []string{"Note: a test"}, Jobs: []SWFJob{
		{Submit: at(20 * time.Second), Start: at(time.Minute), Run: 90*time.Second + 400*time.Millisecond, Estimate: 3599*time.Second + 1, Processors: 3, Status: SWFCompleted, User: 1<<53 - 1, Executable: 5, Partition: 2},
		{Submit: at(10*time.Second + 999*time.Millisecond), Start: at(5 * time.Second), Run: time.Millisecond, Estimate: time.Minute, Processors: 1, User: 4},
		{Submit: at(30 * time.Second), Processors: 2, Status: SWFCancelled, User: 4},
	}}
	var b strings.Builder
	if err := WriteSWF(&b, l); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n1 0 0 1 1 -1 -1 1 60 -1 0 4 -1 -1 -1 -1 -1 -1\n", "\n2 10 40 90 3 -1 -1 3 3600 -1 1 9007199254740991 -1 5 -1 2 -1 -1\n",
		"\n3 20 -1 -1 2 -1 -1 2 -1 -1 5 4 -1 -1 -1 -1 -1 -1\n", "\n; TimeZoneString: UTC\n", "\n; Note: a test\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no line %q in\n%s", want, b.String())
		}
	}
	w := read(t, b.String())
	want := []Job{
		{ID: 1, Run: seconds(1), Estimate: seconds(60), Procs: 1, User: "4"},
		{ID: 2, Submit: second(10), Run: seconds(90), Estimate: seconds(3600), Procs: 3, User: "9007199254740991"},
	}
	if n := counts(&w.Report); !reflect.DeepEqual(w.Jobs, want) || w.Processors != 430 || !w.Start.Equal(at(10*time.Second)) || len(n) != 1 || n[NoRun] != 1 {
		t.Errorf("read back: %+v, %d processors from %v, %v", w.Jobs, w.Processors, w.Start, n)
	}
	if err := WriteSWF(full{}, l); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
