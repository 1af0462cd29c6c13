package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// What a client starts fast without: a daemon, what checks us, and what costs
// time before main begins.
var kept = []string{
	"kith/cmd/kithd/daemon", "kith/cluster/gossip", "kith/meta/api", "kith/meta/peer", "kith/sitesched/executor", "kith/sitesched/runner",
	"kith/store/boltstore", "kith/testbed/check/", "kith/testbed/lab", "kith/testbed/local/inprocess",
	"go.etcd.io/bbolt", "github.com/hashicorp/", "github.com/miekg/dns", "encoding/gob", "net/rpc",
	"google.golang.org/protobuf/reflect/protodesc", "google.golang.org/protobuf/types/descriptorpb",
}

// kith links none of what a daemon or the lab needs.
func TestLinksNoDaemon(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", ".")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range strings.FieldsSeq(string(text)) {
		for _, k := range kept {
			if strings.HasPrefix(pkg, k) {
				t.Errorf("kith imports %s: a client that is to start in a few ms must not", pkg)
			}
		}
	}
}
