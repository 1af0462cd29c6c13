package peer

import (
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	kithv1 "kith/proto/gen/kith/v1"
)

// docs/protocol.md has a row for every message between sites and names every
// method of every service.
func TestProtocolNamesEveryMessage(t *testing.T) {
	text, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	messages := (&kithv1.PeerMessage{}).ProtoReflect().Descriptor().Fields()
	for i := range messages.Len() {
		if name := string(messages.Get(i).Name()); !strings.Contains(page, "\n| `"+name+"` | ") {
			t.Errorf("docs/protocol.md has no row for the message %s", name)
		}
	}
	for _, file := range []protoreflect.FileDescriptor{
		kithv1.File_kith_v1_job_service_proto, kithv1.File_kith_v1_site_service_proto,
		kithv1.File_kith_v1_file_service_proto, kithv1.File_kith_v1_peer_service_proto,
	} {
		for i := range file.Services().Len() {
			checkService(t, page, file.Services().Get(i))
		}
	}
}

func checkService(t *testing.T, page string, service protoreflect.ServiceDescriptor) {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n| `"+string(service.FullName())+"` | ")
	if !found {
		t.Errorf("docs/protocol.md has no row for the service %s", service.FullName())
	}
	row, _, _ := strings.Cut(rest, "\n")
	for i := range service.Methods().Len() {
		if name := service.Methods().Get(i).Name(); !strings.Contains(row, "`"+string(name)+"`") {
			t.Errorf("docs/protocol.md does not name %s of %s", name, service.FullName())
		}
	}
}
