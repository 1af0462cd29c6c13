package wire

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

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
		var m kithv1.Frame
		if proto.Unmarshal(b, &m) == nil {
			Check(&m)
		}
	})
}
