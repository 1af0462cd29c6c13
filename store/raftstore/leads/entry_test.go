package leads

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"kith/store"
	"kith/store/codec"
)

func TestEntriesComeBack(t *testing.T) {
	writes := []codec.Write{
		{Table: codec.Jobs, Key: []byte("a"), Value: []byte("value")},
		{Table: codec.Jobs, Key: []byte("b")},
		{Table: codec.Results, Key: []byte("c"), Value: []byte{}, Merge: true},
		{Table: codec.After, Key: []byte("d"), Prefix: true},
	}
	parts := Parts(7, 300, writes)
	e, err := decodeEntry(parts[0])
	if err != nil || len(parts) != 1 || !e.part.last || e.part.lead != 7 || e.part.number != 300 {
		t.Fatalf("%d parts, %+v, %v", len(parts), e, err)
	}
	if parts[0][5] != codec.FormatOf(codec.After) {
		t.Errorf("the entry is of format %d", parts[0][5])
	}
	got, err := decodeWrites(e.part.writes)
	if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", writes) || err != nil {
		t.Errorf("%#v, %v", got, err)
	}
	if e, err := decodeEntry(Begin("a")); !e.begins || err != nil {
		t.Errorf("%+v, %v", e, err)
	}
	for i := range parts[0] {
		damaged := bytes.Clone(parts[0])
		damaged[i] ^= 4
		if _, err := decodeEntry(damaged); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("damaged at %d: %v", i, err)
		}
	}
}

// Whatever an entry has, it is taken or refused.
func FuzzDecodeEntry(f *testing.F) {
	for _, p := range Parts(7, 300, []codec.Write{{Table: codec.Jobs, Key: []byte("a"), Value: []byte("v")}, {Table: codec.Jobs, Key: []byte("b")}}) {
		f.Add(p[4:])
	}
	f.Add(Begin("a")[4:])
	f.Add([]byte("\x02\x01000\x01\t\x00\x00\x010")) // a table without a name
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := decodeEntry(sealed(append(make([]byte, 4), body...)))
		if err != nil || e.begins {
			return
		}
		writes, err := decodeWrites(e.part.writes)
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Error(err)
			}
			return
		}
		for _, w := range writes {
			if w.Table == "" {
				t.Error("a change to no table")
			}
		}
	})
}
