package raftlog_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"

	"kith/internal/scarce"
	"kith/store/raftstore/raftlog"
)

// On a disk that is full the log says so and keeps what it has, and term and vote are written all
// the same: raft panics when they are not.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a tmpfs")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("cannot mount a tmpfs here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	path := filepath.Join(dir, raftlog.FileName)
	l := open(t, path)
	v := openVote(t, filepath.Join(dir, raftlog.VoteName))
	var last uint64
	for {
		err := l.StoreLog(&raft.Log{Index: last + 1, Term: 1, Data: make([]byte, 50_000)})
		if err != nil {
			if !scarce.Full(err) {
				t.Fatalf("after %d entries: %v, want that the disk is full", last, err)
			}
			break
		}
		last++
	}
	if last == 0 {
		t.Fatal("nothing was taken")
	}
	for i := range uint64(20) {
		if err := v.SetUint64([]byte("CurrentTerm"), i+1); err != nil {
			t.Fatalf("term %d on a full disk: %v", i+1, err)
		}
	}
	if got := len(content(t, l)); got != int(last) {
		t.Errorf("%d entries, want %d", got, last)
	}
	if err := l.DeleteRange(1, last/2); err != nil {
		t.Fatal(err)
	}
	if err := l.StoreLog(&raft.Log{Index: last + 1, Term: 1, Data: make([]byte, 50_000)}); err != nil {
		t.Errorf("after room was made: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := len(content(t, open(t, path))); got != int(last+1-last/2) {
		t.Errorf("reopened, it has %d entries, want %d", got, last+1-last/2)
	}
}
