package peer

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/cluster"
	"kith/cluster/wire"
	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

var (
	sampleAttempt = job.AttemptID{Job: job.ID{Origin: "alpha", Generation: 3, Seq: 4}, Number: 5}
	sampleRequest = job.Request{
		Name: "n", User: "u", Processors: 2, Copies: 3, MemoryBytes: 4, Walltime: 5 * time.Second, Directory: "/d", OnSiteLost: job.Race,
	}
	sampleOutcome = job.Outcome{
		Kind: job.Failure, ExitCode: 1, Signal: 2, Reason: "r", Start: 3, End: 4, CPUTime: 5, MaxRSSBytes: 6, Files: []byte("f"), FilesRemain: true,
	}
)

func samples() []meta.Message {
	return append(append(jobSamples(), taskSamples()...),
		meta.Saved{Attempt: sampleAttempt, Sequence: 7, Files: []byte("files"), FilesRemain: true, Ran: time.Minute, Reason: "why"}, meta.SavedAck{Attempt: sampleAttempt, Sequence: 7, Accepted: true})
}

func jobSamples() []meta.Message {
	return []meta.Message{
		meta.PlaceCopy{Attempt: sampleAttempt, Request: sampleRequest},
		meta.CopyAnswer{Attempt: sampleAttempt, Accepted: true, Reason: job.Full},
		meta.Claim{Attempt: sampleAttempt, Stamp: 7, Sent: 8},
		meta.Verdict{Attempt: sampleAttempt, Granted: true, Reason: job.HeldByOther, Winner: "beta", Payload: []byte("p"), Lease: time.Minute, Sent: 8},
		meta.Renew{Attempt: sampleAttempt, Sent: 8},
		meta.Renewed{Attempt: sampleAttempt, Sent: 8, Lease: time.Minute},
		meta.Withdraw{Attempt: sampleAttempt},
		meta.WithdrawAck{Attempt: sampleAttempt},
		meta.Started{Attempt: sampleAttempt, At: 9},
		meta.Result{Attempt: sampleAttempt, Outcome: sampleOutcome},
		meta.ResultAck{Attempt: sampleAttempt, Accepted: true},
		meta.Stop{Attempt: sampleAttempt},
		meta.Demote{Attempt: sampleAttempt},
		meta.GiveBack{Attempt: sampleAttempt, Reason: job.Draining, Stamp: 12},
		meta.CopySummary{Count: 1, Hash: 2},
		meta.DigestRequest{},
		meta.CopyDigest{
			Stamp: 1, After: sampleAttempt.Job, Through: job.ID{Origin: "alpha", Generation: 3, Seq: 9},
			Entries: []meta.DigestEntry{
				{Attempt: sampleAttempt}, {Attempt: sampleAttempt, Begun: true, Started: 8}, {Attempt: sampleAttempt, Begun: true, Ended: true},
			},
		},
		meta.LoadDigest{Digest: cluster.Digest{Site: "beta", Incarnation: 1, Sequence: 2, Processors: 3, Load: job.Load{Work: 4}, Speed: 1}},
		meta.StartQuery{Query: 1, Request: sampleRequest, Predict: true},
		meta.StartAnswer{Query: 1, Wait: time.Second, Reason: job.NoAnswer},
		meta.SiteBundle{Bundle: store.Bundle{Data: []byte("b")}},
		meta.BundleTaken{Sequence: 3},
	}
}

// alike reports whether messages say the same: sets of tasks may lie in memory in several ways.
func alike(a, b meta.Message) bool {
	text := func(m meta.Message) string {
		switch m := m.(type) {
		case meta.StopTasks:
			if m.Tasks != nil {
				return fmt.Sprint(m.Tasks, m.Bundle, m.Waiting)
			}
		case meta.TaskVerdict:
			s := fmt.Sprint(m.Stamp, m.Sent)
			for _, b := range m.Bundles {
				s += fmt.Sprintf("; %v %v %v %v %q", &b.Tasks, b.Bundle, b.Request, b.Lease, b.Payload)
			}
			return s
		case meta.TaskResults:
			return fmt.Sprint(&m.Returned, m.Bundle, m.Batch, m.Run, m.Results, m.Files)
		}
		return ""
	}
	if s := text(a); s != "" {
		return reflect.TypeOf(a) == reflect.TypeOf(b) && s == text(b)
	}
	return reflect.DeepEqual(a, b)
}

// Every message of the protocol survives the wire.
func TestMessagesRoundTrip(t *testing.T) {
	kinds := map[reflect.Type]bool{}
	for _, m := range samples() {
		kinds[reflect.TypeOf(m)] = true
		b, err := proto.Marshal(toProto(m))
		if err != nil {
			t.Fatal(err)
		}
		var p kithv1.PeerMessage
		if err := proto.Unmarshal(b, &p); err != nil {
			t.Fatal(err)
		}
		got, err := fromProto(&p)
		if err != nil || !alike(got, m) {
			t.Errorf("%T: got %+v, %v; want %+v", m, got, err, m)
		}
	}
	// All of the oneof but the hello and the two file messages is covered.
	fields := (&kithv1.PeerMessage{}).ProtoReflect().Descriptor().Oneofs().Get(0).Fields().Len()
	if len(kinds) != fields-3 {
		t.Errorf("%d kinds of messages tested, the protocol has %d", len(kinds), fields-3)
	}
}

func TestSenselessMessages(t *testing.T) {
	noAttempt := toProto(meta.Claim{Attempt: sampleAttempt})
	noAttempt.GetClaim().Attempt = nil
	badSite := toProto(meta.Withdraw{Attempt: sampleAttempt})
	badSite.GetWithdraw().GetAttempt().GetJob().Origin = "No Site"
	zero := toProto(meta.Stop{Attempt: sampleAttempt})
	zero.GetStop().GetAttempt().Number = 0
	noOutcome := toProto(meta.Result{Attempt: sampleAttempt, Outcome: sampleOutcome})
	noOutcome.GetResult().GetOutcome().Kind = 99
	large := toProto(meta.Result{Attempt: sampleAttempt, Outcome: sampleOutcome})
	large.GetResult().GetOutcome().Files = make([]byte, wire.FileSet+1)
	many := toProto(meta.CopyDigest{Entries: make([]meta.DigestEntry, wire.Entries+1)})
	for name, p := range map[string]*kithv1.PeerMessage{
		"empty": {}, "no attempt": noAttempt, "bad site": badSite, "attempt 0": zero, "no outcome": noOutcome,
		"too large": large, "too many": many, "hello": {Message: &kithv1.PeerMessage_Hello{Hello: &kithv1.Hello{}}},
	} {
		if m, err := fromProto(p); !errors.Is(err, ErrMessage) || strings.Contains(err.Error(), "kithv1") {
			t.Errorf("%s: %v, %v; want ErrMessage, in words of the protocol", name, m, err)
		}
	}
}

// Whatever comes over the wire is a message or an error, never a panic.
func FuzzFromProto(f *testing.F) {
	for _, m := range samples() {
		b, err := proto.Marshal(toProto(m))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p kithv1.PeerMessage
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		m, err := fromProto(&p)
		if err == nil {
			toProto(m)
		}
	})
}
