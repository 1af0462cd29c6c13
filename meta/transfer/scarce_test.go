package transfer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"kith/internal/scarce"
	"kith/internal/scratch"
	"kith/store/blobstore"
)

// What the machine lacks is no property of an output: whatever step meets it, the
// collection fails as a whole and says why, so that it is repeated, and never yields a
// set that lacks a file, or a note that it is gone.
func TestCollectWithoutDescriptors(t *testing.T) {
	blobs := filepath.Join(t.TempDir(), "blobs")
	store := openStore(t, blobstore.Config{Dir: blobs})
	l, dir := leave(t, "plain", "folder", "many/*.txt", "large")
	want := map[string]string{
		"stdout": "out", "stderr": "err", "plain": "p", "folder/a": "a", "folder/deep/b": "b", "many/1.txt": "1", "large": string(random(1, 9000)),
	}
	for name, data := range want {
		switch name {
		case "stdout", "stderr":
			write(t, filepath.Dir(dir), map[string]string{"stdout": "out", "stderr": "err"}[name], []byte(data))
		default:
			write(t, dir, name, []byte(data))
		}
	}
	c := &Collector{Store: store}
	collected := false
	for left := 0; !collected; left++ {
		if left > 20 {
			t.Fatal("it does not succeed with 20 descriptors")
		}
		release := scratch.TakeFiles(t, left)
		got, err := c.Collect(background(), l)
		release()
		switch {
		case err != nil && !scarce.Passes(err):
			t.Fatalf("with %d descriptors: %v does not say that it passes", left, err)
		case err != nil:
		default:
			collected = true
			same(t, fmt.Sprintf("notes with %d descriptors", left), got.Notes, []string(nil))
			same(t, fmt.Sprintf("files with %d descriptors", left), setContents(t, store, got.Set), want)
			got.Hold.Close()
		}
	}
	if n := len(contents(t, filepath.Join(blobs, "tmp"))); n != 0 {
		t.Errorf("%d unfinished files stay", n)
	}
}

// An input cannot be taken for missing because this machine cannot open it now.
func TestPackWithoutDescriptors(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	root := t.TempDir()
	write(t, root, "source", random(2, 9000))
	file, err := os.Open(write(t, root, "upload", []byte("short")))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only read from
	id, hold, err := Upload(background(), store, file, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	p := &Packer{Store: store, Roots: []string{root}}
	inputs := []Input{{Path: "a", Source: filepath.Join(root, "source")}, {Path: "b", UploadID: id.String()}, {Path: "c", Data: random(3, 5000)}}
	for left := 0; ; left++ {
		release := scratch.TakeFiles(t, left)
		_, hold, err := p.Pack(background(), inputs)
		release()
		if err == nil {
			hold.Close()
			return
		}
		if !scarce.Passes(err) {
			t.Fatalf("with %d descriptors: %v does not say that it passes", left, err)
		}
		for _, final := range []error{ErrNotFound, ErrOutsideRoot, ErrNotRegular, ErrChanged, ErrBadUploadID} {
			if errors.Is(err, final) {
				t.Errorf("with %d descriptors: %v", left, err)
			}
		}
		if left > 20 {
			t.Fatal("it does not succeed with 20 descriptors")
		}
	}
}
