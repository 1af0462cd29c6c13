package transfer

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kith/store/blobstore"
)

func TestUnpackStaysInside(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	set := mustPack(t, store, Input{Path: "sub/dir/file", Data: []byte("new")}, Input{Path: "top", Data: []byte("new")})
	for name, c := range map[string]struct {
		plant func(t *testing.T, dir, outside string)
		fails bool
	}{
		"file is a link out":       {func(t *testing.T, dir, outside string) { symlink(t, filepath.Join(outside, "victim"), dir, "top") }, false},
		"file is a dangling link":  {func(t *testing.T, dir, outside string) { symlink(t, filepath.Join(outside, "made"), dir, "top") }, false},
		"file is there":            {func(t *testing.T, dir, _ string) { write(t, dir, "top", []byte("an older, longer one")) }, false},
		"folder is there":          {func(t *testing.T, dir, _ string) { write(t, dir, "sub/dir/other", nil) }, false},
		"folder is a link out":     {func(t *testing.T, dir, outside string) { symlink(t, outside, dir, "sub") }, true},
		"subfolder is a link out":  {func(t *testing.T, dir, outside string) { symlink(t, outside, dir, "sub/dir") }, true},
		"folder is a link up":      {func(t *testing.T, dir, _ string) { symlink(t, "..", dir, "sub") }, true},
		"folder is a file":         {func(t *testing.T, dir, _ string) { write(t, dir, "sub", nil) }, true},
		"file is a full folder":    {func(t *testing.T, dir, _ string) { write(t, dir, "top/x", nil) }, true},
		"folder is a link inside":  {func(t *testing.T, dir, _ string) { write(t, dir, "real/x", nil); symlink(t, "real", dir, "sub") }, false},
		"file is a pipe":           {func(t *testing.T, dir, _ string) { mkfifo(t, dir, "top") }, false},
		"nothing is there, really": {func(*testing.T, string, string) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, outside := t.TempDir(), t.TempDir()
			write(t, outside, "victim", []byte("untouched"))
			c.plant(t, dir, outside)
			err := (&Unpacker{Store: store}).Unpack(background(), set, dir)
			if (err != nil) != c.fails {
				t.Errorf("Unpack returned %v, want failure = %v", err, c.fails)
			}
			same(t, "outside", contents(t, outside), map[string]string{"victim": "untouched"})
			if got, err := os.ReadFile(filepath.Join(dir, "top")); !c.fails && (err != nil || string(got) != "new") {
				t.Errorf("top holds %q, %v", got, err)
			}
		})
	}
}

// mkfifo makes a pipe in dir.
func mkfifo(t testing.TB, dir, name string) {
	t.Helper()
	if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUnpackRefuses(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	good := mustPack(t, store, Input{Path: "a", Data: random(1, 5000)})
	lost := Set{Files: []File{{Path: "a", Size: 5, Chunks: []blobstore.Sum{sum(1)}}}}
	lying := Set{Files: []File{{Path: "a", Size: 4999, Chunks: good.Files[0].Chunks}}}
	cancelled, cancel := context.WithCancel(background())
	cancel()
	for name, c := range map[string]struct {
		unpacker Unpacker
		ctx      context.Context
		set      Set
		want     error
	}{
		"bad set":       {Unpacker{}, background(), Set{Files: []File{{Path: "../a"}}}, ErrBadSet},
		"lost chunk":    {Unpacker{}, background(), lost, blobstore.ErrNotFound},
		"wrong length":  {Unpacker{}, background(), lying, ErrBadSet},
		"too much":      {Unpacker{MaxBytes: 4999}, background(), good, ErrTooLarge},
		"no space left": {Unpacker{LowWaterBytes: math.MaxInt64 / 2}, background(), good, blobstore.ErrDiskFull},
		"cancelled":     {Unpacker{}, cancelled, good, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			c.unpacker.Store = store
			if err := c.unpacker.Unpack(c.ctx, c.set, t.TempDir()); !errors.Is(err, c.want) {
				t.Errorf("Unpack returned %v, want %v", err, c.want)
			}
		})
	}
	if err := (&Unpacker{Store: store}).Unpack(background(), good, filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Unpack into nothing returned %v", err)
	}
}

func TestUnpackChown(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to give files away")
	}
	store := openStore(t, blobstore.Config{})
	set := mustPack(t, store, Input{Path: "sub/file", Data: []byte("x")})
	dir := t.TempDir()
	if err := (&Unpacker{Store: store, Chown: true, UID: 12345, GID: 54321}).Unpack(background(), set, dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sub", "sub/file"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 12345 || st.Gid != 54321 {
			t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
		}
	}
}

func TestUnpackDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a tmpfs")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a tmpfs here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	store := openStore(t, blobstore.Config{})
	set := mustPack(t, store, Input{Path: "a", Data: random(1, 900<<10)})
	write(t, dir, "other", make([]byte, 500<<10))
	err := (&Unpacker{Store: store}).Unpack(background(), set, dir)
	if !errors.Is(err, blobstore.ErrDiskFull) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), dir) {
		t.Errorf("Unpack returned %v, want ErrDiskFull with the folder's name", err)
	}
	var many []Input // Passes the look at the free space, and is stopped by the write: files take whole blocks.
	for i := range 200 {
		many = append(many, Input{Path: "d/" + strings.Repeat("n", i+1), Data: []byte("x")})
	}
	err = (&Unpacker{Store: store}).Unpack(background(), mustPack(t, store, many...), dir)
	if !errors.Is(err, blobstore.ErrDiskFull) || !strings.Contains(err.Error(), "free space on this disk") {
		t.Errorf("Unpack returned %v, want ErrDiskFull", err)
	}
}
