package transfer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/store/blobstore"
)

func TestUpload(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	for name, size := range map[string]int{"empty": 0, "small": 100, "one chunk": ChunkBytes, "more": ChunkBytes + 5000} {
		t.Run(name, func(t *testing.T) {
			data := random(1, size)
			id, _, err := Upload(background(), store, bytes.NewReader(data), 0)
			if err != nil {
				t.Fatal(err)
			}
			again, _, err := Upload(background(), store, bytes.NewReader(data), int64(size))
			if size > 0 && (err != nil || again != id) {
				t.Errorf("the same content is %v and %v, %v", id, again, err)
			}
			parsed, err := ParseUploadID(id.String())
			if err != nil || parsed != id {
				t.Errorf("ParseUploadID(%q) = %v, %v", id, parsed, err)
			}
			set := mustPack(t, store, Input{Path: "up", UploadID: id.String()})
			same(t, "files", setContents(t, store, set), map[string]string{"up": string(data)})
			if inline := len(set.Files[0].Inline) > 0; inline != (size == 100) {
				t.Errorf("inline is %v", inline)
			}
		})
	}
}

func TestUploadTooLarge(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	_, _, err := Upload(background(), store, strings.NewReader("hello"), 4)
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "at most 4 bytes") {
		t.Errorf("Upload returned %v, want ErrTooLarge", err)
	}
}

func TestOpenUploadMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	store := openStore(t, blobstore.Config{Dir: dir})
	id, _, err := Upload(background(), store, bytes.NewReader(random(2, 10000)), 0)
	if err != nil {
		t.Fatal(err)
	}
	f, err := opened(store, id)
	if err != nil {
		t.Fatal(err)
	}
	chunk := f.Chunks[0].String()
	if err := os.Remove(filepath.Join(dir, "chunks", chunk[:2], chunk)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []UploadID{id, {Size: 5, Manifest: sum(9)}} {
		if _, err := opened(store, id); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "upload it again") {
			t.Errorf("openUpload(%s) returned %v, want ErrNotFound", id, err)
		}
	}
}

// TestOpenUploadForged opens contents that are no manifests.
func TestOpenUploadForged(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	whole := encodeManifest(blobstore.Object{Size: 5, Chunks: []blobstore.Sum{sum(1)}})
	for name, c := range map[string]struct {
		content []byte
		size    int64
	}{
		"text":       {[]byte("hello"), 5},
		"other size": {whole, 6},
		"cut":        {whole[:len(whole)-1], 5},
		"longer":     {append(bytes.Clone(whole), 0), 5},
		"huge":       {encodeManifest(blobstore.Object{Size: -1}), -1},
	} {
		sum, err := store.Put(c.content)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := opened(store, UploadID{c.size, sum}); !errors.Is(err, ErrBadUploadID) {
			t.Errorf("%s: openUpload returned %v, want ErrBadUploadID", name, err)
		}
	}
}

func TestParseUploadIDRefuses(t *testing.T) {
	hex := strings.Repeat("ab", 32)
	for _, text := range []string{"", "-", "5", "5-", "-" + hex, "05-" + hex, "+5-" + hex, "-5-" + hex, "5-" + hex + "0", "5-" + strings.ToUpper(hex),
		"5-" + hex[:62] + "zz", "5 -" + hex, "99999999999999999999-" + hex, "999999999999999999-" + hex, "5-../../../etc/passwd"} {
		if id, err := ParseUploadID(text); !errors.Is(err, ErrBadUploadID) {
			t.Errorf("ParseUploadID(%q) = %v, %v; want ErrBadUploadID", text, id, err)
		}
	}
}

func FuzzParseUploadID(f *testing.F) {
	f.Add("5-" + strings.Repeat("ab", 32))
	f.Add("0-")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseUploadID(text)
		switch {
		case err != nil && !errors.Is(err, ErrBadUploadID):
			t.Errorf("ParseUploadID(%q) returned %v", text, err)
		case err == nil && (id.String() != text || id.Size < 0):
			t.Errorf("ParseUploadID(%q) = %v: an upload has two ids", text, id)
		}
	})
}

func FuzzDecodeManifest(f *testing.F) {
	f.Add(encodeManifest(blobstore.Object{}))
	f.Add(encodeManifest(blobstore.Object{Size: ChunkBytes + 1, Chunks: []blobstore.Sum{{1}, {2}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := decodeManifest(b)
		if err == nil && !bytes.Equal(encodeManifest(o), b) {
			t.Errorf("%x decodes to %v, which encodes otherwise", b, o)
		}
	})
}

// opened is openUpload with a batch of its own.
func opened(store *blobstore.Store, id UploadID) (File, error) {
	b := store.NewBatch()
	defer b.Close()
	return openUpload(store, b, id)
}
