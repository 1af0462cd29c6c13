package peer

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"kith/cluster"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

var freeze = flag.Bool("freeze", false, "write testdata/messages.txt anew: only after a new message; old lines must stay")

// frozenSamples are the samples and a digest with all its fields.
func frozenSamples() []meta.Message {
	first := append(jobSamples(), meta.LoadDigest{Digest: cluster.Digest{
		Site: "beta", Incarnation: 5, Sequence: 6, Address: "h:1", Processors: 7, MemoryBytes: 8,
		Load: job.Load{Work: 1.5, Procs: 2.5, Free: 3, Queued: 4, Running: 5}, Policy: "easy", Speed: 1.25,
		Draining: true, Time: 99, Version: "v", HomeJobs: cluster.HomeJobsFirst,
	}}, meta.PlaceCopy{Attempt: sampleAttempt, Request: sampleRequest, OriginTooSmall: true}, meta.Started{Attempt: sampleAttempt, At: 9, Over: true},
		meta.Stop{Attempt: sampleAttempt, Stale: true}, meta.CopySummary{Count: 1, Hash: 2, GivenUp: 3},
		meta.Started{Attempt: sampleAttempt, At: 9, Bound: 7.5}, meta.Verdict{Attempt: sampleAttempt, Granted: true, Stamp: 9})
	return append(first, taskSamples()...)
}

// The bytes on the wire are those of testdata/messages.txt, which was written when
// messages between sites still borrowed from those of the disk: sites of then and
// now understand each other.
func TestMessagesAreThoseOfBefore(t *testing.T) {
	name := filepath.Join("testdata", "messages.txt")
	var now strings.Builder
	for _, m := range frozenSamples() {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(toProto(m))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&now, "%s %s\n", reflect.TypeOf(m).Name(), hex.EncodeToString(b))
	}
	if *freeze {
		if err := os.WriteFile(name, []byte(now.String()), 0o644); err != nil { //nolint:gosec // test data
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := []byte(now.String()); !bytes.Equal(got, before) {
		t.Errorf("messages are now\n%swere\n%s", got, before)
	}
	lines := strings.Split(strings.TrimSpace(string(before)), "\n")
	for i, want := range frozenSamples() {
		_, text, _ := strings.Cut(lines[i], " ")
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		var p kithv1.PeerMessage
		if err := proto.Unmarshal(b, &p); err != nil {
			t.Fatal(err)
		}
		if got, err := fromProto(&p); err != nil || !alike(got, want) {
			t.Errorf("%s reads as %+v, %v; want %+v", lines[i], got, err, want)
		}
	}
}
