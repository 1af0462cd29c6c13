package wire

import (
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	kithv1 "kith/proto/gen/kith/v1"
)

// bounded reports whether a field needs a row in the table.
func bounded(fd protoreflect.FieldDescriptor) bool {
	return fd.IsList() || fd.IsMap() || fd.Kind() == protoreflect.StringKind || fd.Kind() == protoreflect.BytesKind
}

// Every text and every repeated field of every message has a row of the right kind,
// and every row a field.
func TestEveryTextAndListHasABound(t *testing.T) {
	fields := make(map[protoreflect.FullName]protoreflect.FieldDescriptor)
	for _, file := range files {
		for i := range file.Messages().Len() {
			m := file.Messages().Get(i)
			for k := range m.Fields().Len() {
				if fd := m.Fields().Get(k); bounded(fd) {
					fields[fd.FullName()] = fd
				}
			}
		}
	}
	for name, fd := range fields {
		b, ok := bounds[name]
		several := fd.IsList() || fd.IsMap()
		texts := fd.IsMap() || fd.Kind() == protoreflect.StringKind || fd.Kind() == protoreflect.BytesKind
		if !ok || several != (b.entries > 0) || texts != (b.bytes > 0) {
			t.Errorf("%s: its row is %+v, %v", name, b, ok)
		}
	}
	for name := range bounds {
		if fields[name] == nil {
			t.Errorf("%s: no such field", name)
		}
	}
	protoregistryFiles(t)
}

// protoregistryFiles fails for a file of kith.v1 that the table does not look at.
func protoregistryFiles(t *testing.T) {
	t.Helper()
	known := make(map[string]bool)
	for _, f := range files {
		known[f.Path()] = true
	}
	for _, f := range files {
		for i := range f.Imports().Len() {
			if path := f.Imports().Get(i).Path(); strings.HasPrefix(path, "kith/v1/") && !known[path] {
				t.Errorf("%s is imported and not looked at", path)
			}
		}
	}
}

// What is too long is named, wherever it stands, with its length, its bound and what
// to do; what is as long as it may be passes.
func TestBreachesAreNamed(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		m    proto.Message
		want string
	}{
		"as long as may be": {&kithv1.CopyRequest{User: x(ShortText), Directory: x(Path)}, ""},
		"a user of 1 MB": {&kithv1.PeerMessage{Message: &kithv1.PeerMessage_PlaceCopy{PlaceCopy: &kithv1.PlaceCopy{
			Request: &kithv1.CopyRequest{User: x(1 << 20)},
		}}}, "place_copy.request.user: has 1048576 bytes, at most 256; shorten it"},
		"a version":  {&kithv1.Hello{Version: x(3 << 20)}, "version: has 3145728 bytes, at most 256; shorten it"},
		"a label":    {&kithv1.SubmitJobRequest{Job: &kithv1.Job{Labels: map[string]string{"a": x(257)}}}, `job.labels: entry "a": has 257 bytes, at most 256; shorten it`},
		"an element": {&kithv1.WatchJobsRequest{JobIds: []string{"a", x(200)}}, "job_ids[1]: has 200 bytes, at most 128; shorten it"},
		"elements":   {&kithv1.WatchJobsRequest{JobIds: make([]string, 1001)}, "job_ids: 1001 of them, at most 1000; send fewer"},
		"deep inside": {&kithv1.SubmitJobRequest{Job: &kithv1.Job{Inputs: []*kithv1.InputFile{{}, {Content: &kithv1.InputFile_Source{Source: x(5000)}}}}},
			"job.inputs[1].source: has 5000 bytes, at most 4096; shorten it"},
		"bytes": {&kithv1.FileReply{Data: make([]byte, 262_145)}, "data: has 262145 bytes, at most 262144; shorten it"},
	} {
		got := ""
		for _, b := range Check(c.m) {
			got += b.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	unknown := &kithv1.GetSiteRequest{}
	unknown.ProtoReflect().SetUnknown(append([]byte{0xfa, 0x3f, 0x80, 0x80, 0x08}, make([]byte, 1<<17)...))
	if b := Check(unknown); len(b) != 1 || !strings.Contains(b[0].Reason, "131077 bytes, at most 65536") {
		t.Errorf("unknown fields: %v", b)
	}
}

// alike fails if what the struct of a message shows is not what the message says.
func alike(t *testing.T, m proto.Message) {
	t.Helper()
	r := m.ProtoReflect()
	p := plans[r.Descriptor()]
	if found := p.check(r); p.fits(reflect.ValueOf(m).Elem()) && len(found) > 0 {
		t.Errorf("%v fits by its struct, and breaks: %v", m, found)
	}
}

// The struct of every message is as expected, so that none is looked at twice for nothing;
// a message fits by its struct up to its bounds, field by field, and no further.
func TestStructsShowWhatFits(t *testing.T) {
	for md, p := range plans {
		if p.layout == nil {
			t.Errorf("%s: its struct is not known", md.FullName())
			continue
		}
		kind, err := protoregistry.GlobalTypes.FindMessageByName(md.FullName())
		if err != nil {
			t.Fatal(err)
		}
		for i := range md.Fields().Len() {
			fd := md.Fields().Get(i)
			most, bounded := bounds[fd.FullName()]
			if !bounded || fd.IsMap() {
				continue
			}
			for more, fits := range []bool{true, false} {
				m := kind.New()
				switch text := strings.Repeat("x", most.bytes+more); {
				case fd.IsList():
					l := m.Mutable(fd).List()
					for range most.entries + more {
						l.Append(l.NewElement())
					}
				case fd.Kind() == protoreflect.BytesKind:
					m.Set(fd, protoreflect.ValueOfBytes([]byte(text)))
				default:
					m.Set(fd, protoreflect.ValueOfString(text))
				}
				if got := p.fits(reflect.ValueOf(m.Interface()).Elem()); got != fits || (len(p.check(m)) == 0) != fits {
					t.Errorf("%s with %d more than it may: fits %t, %v", fd.FullName(), more, got, p.check(m))
				}
			}
		}
	}
	frame := &kithv1.Frame{Messages: []*kithv1.PeerMessage{{Message: &kithv1.PeerMessage_PlaceCopy{PlaceCopy: &kithv1.PlaceCopy{
		Request: &kithv1.CopyRequest{User: "u"},
	}}}}}
	if p := structs[reflect.TypeOf(frame)]; p == nil || !p.fits(reflect.ValueOf(frame).Elem()) {
		t.Error("an ordinary frame is looked at closely")
	}
	if n := testing.AllocsPerRun(100, func() { Check(frame) }); n > 0 {
		t.Errorf("a frame that fits costs %v allocations", n)
	}
	// A oneof whose wrapper is nil holds nothing.
	for _, m := range []*kithv1.PeerMessage{{Message: (*kithv1.PeerMessage_PlaceCopy)(nil)}, {Message: &kithv1.PeerMessage_PlaceCopy{}}, nil} {
		Check(m)
	}
}

// BenchmarkCheck is what each frame of a stream between sites pays.
func BenchmarkCheck(b *testing.B) {
	name := &kithv1.AttemptName{Job: &kithv1.JobName{Origin: "alpha", Generation: 7, Seq: 9}, Number: 1}
	frame := &kithv1.Frame{Messages: []*kithv1.PeerMessage{
		{Message: &kithv1.PeerMessage_PlaceCopy{PlaceCopy: &kithv1.PlaceCopy{
			Attempt: name, Request: &kithv1.CopyRequest{Name: "true", User: "u", Processors: 1, Directory: "/home/u"},
		}}},
		{Message: &kithv1.PeerMessage_CopyAnswer{CopyAnswer: &kithv1.CopyAnswer{Attempt: name}}},
		{Message: &kithv1.PeerMessage_Withdraw{Withdraw: &kithv1.Withdraw{Attempt: name}}},
		{Message: &kithv1.PeerMessage_WithdrawAck{WithdrawAck: &kithv1.WithdrawAck{Attempt: name}}},
	}}
	b.ReportAllocs()
	for b.Loop() {
		if broken := Check(frame); len(broken) > 0 {
			b.Fatal(broken)
		}
	}
}

// Nothing that parses makes the check fail, and what passes it has no longer text than
// the longest row.
func FuzzCheck(f *testing.F) {
	for _, m := range []proto.Message{
		&kithv1.SubmitJobRequest{Job: &kithv1.Job{Name: strings.Repeat("x", 300), Labels: map[string]string{"a": "b"}, Command: []string{"c"}}},
		&kithv1.SubmitJobRequest{Job: &kithv1.Job{Inputs: []*kithv1.InputFile{{Path: "p", Content: &kithv1.InputFile_Data{Data: []byte("d")}}}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r kithv1.SubmitJobRequest
		if proto.Unmarshal(b, &r) != nil {
			return
		}
		if len(Check(&r)) == 0 && (len(r.GetJob().GetName()) > ShortText || len(r.GetRequestId()) > RequestID || len(r.GetJob().GetLabels()) > Labels) {
			t.Errorf("%v passes", &r)
		}
		alike(t, &r)
		var m kithv1.Frame
		if proto.Unmarshal(b, &m) == nil {
			alike(t, &m)
		}
	})
}
