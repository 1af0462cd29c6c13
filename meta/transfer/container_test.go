package transfer

import (
	"path/filepath"
	"testing"

	"kith/store/blobstore"
)

// What several attempts leave that is short is in one chunk, each keeps its own, and what is
// long has chunks of its own.
func TestContainer(t *testing.T) {
	t.Parallel()
	store := openStore(t, blobstore.Config{})
	want := []map[string]string{
		{"stdout": string(random(1, 3000)), "stderr": string(random(2, 129)), "tiny": string(random(3, 128))},
		{"stdout": string(random(4, MaxLoose)), "stderr": string(random(5, 200))}, // both do not fit
		{"stdout": "word\n"},
		{"stdout": string(random(6, 500)), "stderr": string(random(7, 500))},
	}
	var all []*Collection
	for i := range want {
		l, dir := leave(t, "tiny")
		l.Loose = true
		for path, text := range want[i] {
			switch path {
			case "stdout":
				write(t, filepath.Dir(dir), "out", []byte(text))
			case "stderr":
				write(t, filepath.Dir(dir), "err", []byte(text))
			default:
				write(t, dir, path, []byte(text))
			}
		}
		c, err := (&Collector{Store: store}).Collect(background(), l)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &c)
	}
	if err := PutContainer(store, all); err != nil {
		t.Fatal(err)
	}
	chunks := make(map[blobstore.Sum]int)
	for i, c := range all {
		b, err := c.Set.Encode()
		if err != nil {
			t.Fatal(err)
		}
		set, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "files", setContents(t, store, set), want[i])
		for sum := range set.Chunks() {
			chunks[sum]++
			if !store.Has(sum) {
				t.Errorf("attempt %d: no chunk %s", i, sum.Short())
			}
		}
	}
	if len(chunks) != 2 {
		t.Errorf("%d chunks, want one container and one of its own: %v", len(chunks), chunks)
	}
	// A container goes with the last that holds it.
	for i, c := range all {
		if _, err := store.Sweep(background(), none, -1); err != nil {
			t.Fatal(err)
		}
		for sum := range c.Set.Chunks() {
			if !store.Has(sum) {
				t.Errorf("attempt %d: chunk %s is gone while it is held", i, sum.Short())
			}
		}
		c.Hold.Close()
	}
}

func none(func(blobstore.Sum, error) bool) {}
