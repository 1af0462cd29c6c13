package api

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"

	kithv1 "kith/proto/gen/kith/v1"
)

// Worker mode has no field. A program that writes JSON is told its name before it asks; one that
// was made with a later version, where there is a field, is refused: its bag would run without it.
func TestWhatIsNotBuilt(t *testing.T) {
	err := protojson.Unmarshal([]byte(`{"job": {"command": ["cat"]}, "indices": "0-9", "worker": true}`), &kithv1.Bag{})
	if err == nil || !strings.Contains(err.Error(), `"worker"`) {
		t.Errorf("worker in JSON: %v", err)
	}
	s, m := serveBags(t)
	later := goodBag()
	later.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 13, protowire.VarintType), 1))
	_, err = s.SubmitBag(t.Context(), &kithv1.SubmitBagRequest{Bag: later})
	st := status.Convert(s.toStatus(t.Context(), "test", err))
	if want := "request.bag: field number 13 is not known to this version; leave it out, or ask a site with a newer one"; st.Code() != codes.InvalidArgument || !strings.Contains(st.Message(), want) {
		t.Errorf("a field of a later version: %v, want %q", st.Err(), want)
	}
	if len(m.events) > 0 {
		t.Errorf("the engine heard of it: %v", m.events)
	}
}
