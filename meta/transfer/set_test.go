package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	kithv1 "kith/proto/gen/kith/v1"
	"kith/store/blobstore"
)

// sum returns a chunk name.
func sum(n byte) blobstore.Sum { return blobstore.Sum{n} }

func TestSetRoundTrip(t *testing.T) {
	for name, set := range map[string]Set{
		"empty": {},
		"all kinds": {Files: []File{
			{Path: ".kith/script", Executable: true, Size: 3, Inline: []byte("#!x")},
			{Path: "a", Size: 0},
			{Path: "a-b", Size: 1, Chunks: []blobstore.Sum{sum(1)}},
			{Path: "dir/with space/ä", Size: ChunkBytes + 1, Chunks: []blobstore.Sum{sum(2), sum(1)}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := set.Encode()
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "set", got, set)
			if name == "empty" && len(b) != 0 {
				t.Errorf("the empty set encodes to %d bytes", len(b))
			}
		})
	}
}

func TestSetRefuses(t *testing.T) {
	file := func(change func(f *File)) []File {
		f := File{Path: "a", Size: 2, Inline: []byte("hi")}
		change(&f)
		return []File{f}
	}
	many := make([]File, MaxFiles+1)
	inline := make([]File, MaxInlineBytes/MaxInlineFileBytes+1)
	for i := range many {
		many[i].Path = fmt.Sprintf("%05d", i)
	}
	for i := range inline {
		inline[i] = File{Path: many[i].Path, Size: MaxInlineFileBytes, Inline: make([]byte, MaxInlineFileBytes)}
	}
	huge := int64(MaxUploadBytes) + 1<<40
	for name, c := range map[string]struct {
		files []File
		says  string
	}{
		"outside":           {file(func(f *File) { f.Path = "../a" }), `files[0].path ("../a"): leaves the folder`},
		"twice":             {[]File{{Path: "a"}, {Path: "a"}}, `files[1].path ("a"): comes after "a"`},
		"disorder":          {[]File{{Path: "b"}, {Path: "a"}}, `files[1].path ("a"): comes after "b"`},
		"file and folder":   {[]File{{Path: "a"}, {Path: "a-"}, {Path: "a/b/c"}}, `files[2].path ("a/b/c"): "a" is a file`},
		"negative size":     {file(func(f *File) { f.Size = -1 }), "files[0].size_bytes (\"a\"): -1 is negative"},
		"wrong size":        {file(func(f *File) { f.Size = 3 }), "3, but inline has 2 bytes"},
		"inline and chunks": {file(func(f *File) { f.Chunks = []blobstore.Sum{{}} }), "given besides inline"},
		"long inline": {file(func(f *File) { f.Inline = make([]byte, 2049); f.Size = 2049 }),
			"files[0].inline (\"a\"): 2049 bytes, at most 2048"},
		"much inline":      {inline, "files[32].inline: the files up to here have 67584 bytes inline"},
		"no chunk":         {file(func(f *File) { f.Inline = nil }), "files[0].chunks (\"a\"): 0 of them do not make 2 bytes"},
		"too many chunks":  {file(func(f *File) { f.Inline = nil; f.Chunks = make([]blobstore.Sum, 2) }), "2 of them do not make 2 bytes"},
		"chunk of nothing": {file(func(f *File) { f.Inline, f.Size = nil, 0; f.Chunks = make([]blobstore.Sum, 1) }), "1 of them do not make 0 bytes"},
		"size near the top": {file(func(f *File) { f.Inline = nil; f.Size = 1<<63 - 1 }),
			"0 of them do not make 9223372036854775807 bytes"},
		"two lengths of a chunk": {[]File{{Path: "a", Size: 1, Chunks: []blobstore.Sum{sum(1)}}, {Path: "b", Size: 2, Chunks: []blobstore.Sum{sum(1)}}},
			"has 2 bytes here and 1 elsewhere"},
		"container without a size": {file(func(f *File) { f.Inline, f.Chunks, f.Offset = nil, make([]blobstore.Sum, 1), 1 }),
			"files[0].container_bytes (\"a\"): 0, must be 1 to 4194304"},
		"container of two chunks": {file(func(f *File) { f.Inline, f.Chunks, f.Container = nil, make([]blobstore.Sum, 1), ChunkBytes+1 }),
			"4194305, must be 1 to 4194304"},
		"beyond its container": {file(func(f *File) { f.Inline, f.Chunks, f.Container, f.Offset = nil, make([]blobstore.Sum, 1), 10, 9 }),
			"files[0].offset_bytes (\"a\"): 2 bytes at 9 are not within a container of 10"},
		"before its container": {file(func(f *File) { f.Inline, f.Chunks, f.Container, f.Offset = nil, make([]blobstore.Sum, 1), 10, -1 }),
			"2 bytes at -1 are not within"},
		"inline in a container": {file(func(f *File) { f.Container = 2 }), "given besides container_bytes"},
		"two lengths of a container": {[]File{{Path: "a", Size: 1, Chunks: []blobstore.Sum{sum(1)}, Container: 5},
			{Path: "b", Size: 1, Chunks: []blobstore.Sum{sum(1)}, Container: 6}}, "has 6 bytes here and 5 elsewhere"},
		"too many files": {many, "files: 1001 of them"},
		"too long": {[]File{{Path: "a", Size: huge, Chunks: differing(huge)}},
			"bytes encoded, at most 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Set{Files: c.files}.Encode()
			if !errors.Is(err, ErrBadSet) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Encode returned %v, want ErrBadSet with %q", err, c.says)
			}
			b, marshalErr := proto.Marshal(Set{Files: c.files}.Proto())
			if marshalErr != nil {
				t.Fatal(marshalErr)
			}
			if set, err := Decode(b); !errors.Is(err, ErrBadSet) {
				t.Errorf("Decode = %d files, %v; want ErrBadSet", len(set.Files), err)
			}
		})
	}
}

// differing returns different chunks for a file of size bytes.
func differing(size int64) []blobstore.Sum {
	sums := make([]blobstore.Sum, (size+ChunkBytes-1)/ChunkBytes)
	for i := range sums {
		sums[i] = blobstore.Sum{byte(i), byte(i >> 8), byte(i >> 16), 1}
	}
	return sums
}

func TestDecodeRefuses(t *testing.T) {
	field := func(n protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), b)
	}
	path := field(1, []byte("a"))
	for name, c := range map[string]struct {
		b    []byte
		says string
	}{
		"not a message":     {[]byte{0xff, 0xff}, "not a kith.v1.FileSet"},
		"cut":               {field(1, path)[:2], "not a kith.v1.FileSet"},
		"not UTF-8":         {field(1, field(1, []byte{'a', 0xff})), "not a kith.v1.FileSet"},
		"unknown field":     {append(field(1, path), field(2, nil)...), "does not know"},
		"unknown in a file": {field(1, slices.Concat(path, field(9, nil))), `files[0].path ("a"): followed by a field`},
		"short sum":         {field(1, slices.Concat(path, field(5, []byte("abc")))), "chunk 0 has a name of 3 bytes, want 32"},
		"many empty files":  {bytes.Repeat([]byte{0x0a, 0}, MaxEncodedBytes/2), "more than 1000"},
		"too long":          {make([]byte, MaxEncodedBytes+1), "1048577 bytes encoded"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Decode(c.b); !errors.Is(err, ErrBadSet) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Decode returned %v, want ErrBadSet with %q", err, c.says)
			}
		})
	}
}

func TestErrorsAboutSetsAreShort(t *testing.T) {
	_, err := Set{Files: []File{{Path: strings.Repeat("../", 300) + "x"}}}.Encode()
	if err == nil || len(err.Error()) > 400 {
		t.Errorf("the error has %d bytes: %v", len(fmt.Sprint(err)), err)
	}
}

// TestSetProperty encodes and decodes random sets.
func TestSetProperty(t *testing.T) {
	for seed := range uint64(200) {
		set := randomSet(rand.New(rand.NewPCG(seed, 0)))
		b, err := set.Encode()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got, err := Decode(b)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		same(t, fmt.Sprintf("seed %d", seed), got, set)
		for _, f := range set.Files {
			found, ok := got.Find(f.Path)
			if !ok || found.Size != f.Size {
				t.Errorf("seed %d: Find(%q) = %v, %v", seed, f.Path, found, ok)
			}
		}
		if _, ok := got.Find("no such file"); ok {
			t.Errorf("seed %d: Find found what is not there", seed)
		}
	}
}

// randomSet returns a valid set.
func randomSet(rng *rand.Rand) Set {
	paths := make(map[string]bool)
	for range rng.IntN(30) {
		paths[fmt.Sprintf("d%d/e%d/f%d", rng.IntN(3), rng.IntN(3), rng.IntN(10))] = true
	}
	var set Set
	for path := range paths {
		f := File{Path: path, Executable: rng.IntN(2) == 0}
		switch rng.IntN(3) {
		case 1:
			f.Inline = random(rng.Uint64(), 1+rng.IntN(500))
			f.Size = int64(len(f.Inline))
		case 2:
			f.Size = ChunkBytes * int64(1+rng.IntN(3)) // Whole chunks: one length each.
			for range f.Size / ChunkBytes {
				f.Chunks = append(f.Chunks, blobstore.Sum{byte(rng.IntN(5))})
			}
		}
		set.Files = append(set.Files, f)
	}
	slices.SortFunc(set.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return set
}

func FuzzDecode(f *testing.F) {
	for seed := range uint64(5) {
		b, err := randomSet(rand.New(rand.NewPCG(seed, 0))).Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		set, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrBadSet) {
				t.Fatalf("Decode returned %v, want ErrBadSet", err)
			}
			return
		}
		again, err := set.Encode()
		if err != nil {
			t.Fatalf("what Decode accepts Encode refuses: %v", err)
		}
		m := new(kithv1.FileSet)
		if err := proto.Unmarshal(again, m); err != nil {
			t.Fatal(err)
		}
		back, err := FromProto(m)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "set", back, set)
	})
}
