package reserve

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"kith/internal/scratch"
)

func TestTakeAndGive(t *testing.T) {
	disk := scratch.NewDisk(t, 32<<20)
	f, err := New(disk.Dir, 4<<20)
	if err != nil || !f.Missing() {
		t.Fatal(f.Missing(), err)
	}
	before := disk.Free()
	if err := f.Take(); err != nil || f.Missing() {
		t.Fatal(f.Missing(), err)
	}
	if took := before - disk.Free(); took < 4<<20 {
		t.Errorf("the reserve takes %d bytes of the disk", took)
	}
	disk.Fill(0)
	if again, err := New(disk.Dir, 4<<20); err != nil || again.Missing() {
		t.Errorf("what an earlier process holds is not found: %v", err)
	}
	if given, err := f.Give(); !given || err != nil || !f.Missing() || disk.Free() < 4<<20 {
		t.Errorf("given %v, %v, %d free", given, err, disk.Free())
	}
	if given, err := f.Give(); given || err != nil {
		t.Errorf("given twice: %v", err)
	}
	if err := f.Take(); !errors.Is(err, ErrNoRoom) || disk.Free() < 4<<20 {
		t.Errorf("taken although it would fill the disk: %v", err)
	}
	disk.Empty()
	if err := f.Take(); err != nil || f.Missing() {
		t.Errorf("not taken again: %v", err)
	}
	// Another size, or none, replaces it.
	if none, err := New(disk.Dir, 0); err != nil || none.Missing() {
		t.Error(none.Missing(), err)
	}
	if _, err := os.Lstat(filepath.Join(disk.Dir, Name)); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// What is behind the end of a file is its own, on a disk that is full otherwise.
func TestGrow(t *testing.T) {
	disk := scratch.NewDisk(t, 8<<20)
	path := filepath.Join(disk.Dir, "kith.db")
	if err := os.WriteFile(path, []byte("some"), 0o600); err != nil {
		t.Fatal(err)
	}
	Grow(path, 2<<20)
	disk.Fill(0)
	if info, err := os.Stat(path); err != nil || info.Size() != 4 {
		t.Fatal(info.Size(), err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // its size is what counts
	if err := file.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(make([]byte, 1<<20), 0); err != nil {
		t.Error(err)
	}
}
