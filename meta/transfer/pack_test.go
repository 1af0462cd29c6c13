package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kith/store/blobstore"
)

func TestPackAndUnpack(t *testing.T) {
	store, root := openStore(t, blobstore.Config{}), t.TempDir()
	big := random(1, ChunkBytes+100)
	upload, _, err := Upload(background(), store, bytes.NewReader(random(2, 3000)), 0)
	if err != nil {
		t.Fatal(err)
	}
	set, _, err := (&Packer{Store: store, Roots: []string{root}}).Pack(background(), []Input{
		{Path: "z/empty"},
		{Path: ".kith/script", Data: []byte("#!/bin/sh\n"), Executable: true},
		{Path: "in/big", Source: write(t, root, "sub/big", big)},
		{Path: "in/small", Source: write(t, root, "small", []byte("x"))},
		{Path: "in/none", Source: write(t, root, "none", nil)},
		{Path: "in/long", Data: random(3, 5000)},
		{Path: "up", UploadID: upload.String()},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Encode(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := (&Unpacker{Store: store}).Unpack(background(), set, dir); err != nil {
		t.Fatal(err)
	}
	same(t, "files", contents(t, dir), map[string]string{
		"z/empty": "", ".kith/script": "#!/bin/sh\n", "in/big": string(big), "in/small": "x", "in/none": "",
		"in/long": string(random(3, 5000)), "up": string(random(2, 3000)),
	})
	for name, want := range map[string]os.FileMode{".kith/script": 0o700, "in/big": 0o600, "z": os.ModeDir | 0o700} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s has the mode %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
}

func TestPackInline(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	var inputs []Input
	for i := range 100 {
		inputs = append(inputs, Input{Path: fmt.Sprintf("f%03d", i), Data: random(uint64(i), 1000)})
	}
	inputs = append(inputs, Input{Path: "limit", Data: random(1, MaxInlineFileBytes+1)})
	set := mustPack(t, store, inputs...)
	inline := 0
	for _, f := range set.Files {
		inline += len(f.Inline)
		if f.Path == "f000" && f.Inline == nil || f.Path == "f099" && f.Chunks == nil || f.Path == "limit" && f.Chunks == nil {
			t.Errorf("%s: inline %d bytes, %d chunks", f.Path, len(f.Inline), len(f.Chunks))
		}
	}
	if inline != 65*1000 {
		t.Errorf("%d bytes are inline, want 65000", inline)
	}
}

// TestPackIsDeterministic packs the same inputs in another order.
func TestPackIsDeterministic(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	var inputs []Input
	for i := range 150 {
		inputs = append(inputs, Input{Path: fmt.Sprintf("f%d", i), Data: random(uint64(i), 1+i*37%2500)})
	}
	want := mustPack(t, store, inputs...)
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(inputs), func(i, j int) { inputs[i], inputs[j] = inputs[j], inputs[i] })
	same(t, "set", mustPack(t, store, inputs...), want)
}

func TestPackRefuses(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	root, outside := t.TempDir(), t.TempDir()
	secret := write(t, outside, "secret", []byte("secret"))
	inside := write(t, root, "data/file", []byte("data"))
	big := write(t, root, "big", random(1, 10000))
	fifo := filepath.Join(root, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	symlink(t, secret, root, "out")
	symlink(t, "../../"+filepath.Base(outside)+"/secret", root, "data/dots")
	symlink(t, outside, root, "outdir")
	symlink(t, "loop", root, "loop")
	symlink(t, "fifo", root, "tofifo")
	in := func(name string) string { return filepath.Join(root, name) }
	fresh := UploadID{Size: 3, Manifest: sum(1)}.String()
	p := &Packer{Store: store, Roots: []string{root}, MaxFileBytes: 9000, MaxTotalBytes: 9500}
	for name, c := range map[string]struct {
		inputs []Input
		want   error
		says   string
	}{
		"outside":           {[]Input{{Path: "a", Source: secret}}, ErrOutsideRoot, "allowed folders: " + root},
		"a system file":     {[]Input{{Path: "a", Source: "/etc/passwd"}}, ErrOutsideRoot, `inputs[0].source ("a"): "/etc/passwd"`},
		"dots":              {[]Input{{Path: "a", Source: in("../x")}}, ErrOutsideRoot, ""},
		"relative":          {[]Input{{Path: "a", Source: "data/file"}}, ErrOutsideRoot, "absolute"},
		"the root":          {[]Input{{Path: "a", Source: root}}, ErrOutsideRoot, ""},
		"NUL":               {[]Input{{Path: "a", Source: inside + "\x00"}}, ErrOutsideRoot, ""},
		"a link out":        {[]Input{{Path: "a", Source: in("out")}}, ErrOutsideRoot, ""},
		"a link with dots":  {[]Input{{Path: "a", Source: in("data/dots")}}, ErrOutsideRoot, ""},
		"through a link":    {[]Input{{Path: "a", Source: in("outdir/secret")}}, ErrOutsideRoot, ""},
		"a loop":            {[]Input{{Path: "a", Source: in("loop")}}, syscall.ELOOP, ""},
		"nothing":           {[]Input{{Path: "a", Source: in("nothing")}}, ErrNotFound, in("nothing")},
		"below a file":      {[]Input{{Path: "a", Source: inside + "/x"}}, syscall.ENOTDIR, ""},
		"a folder":          {[]Input{{Path: "a", Source: in("data")}}, ErrNotRegular, "a folder"},
		"a pipe":            {[]Input{{Path: "a", Source: fifo}}, ErrNotRegular, "a pipe"},
		"a link to a pipe":  {[]Input{{Path: "a", Source: in("tofifo")}}, ErrNotRegular, "a pipe"},
		"too long":          {[]Input{{Path: "a", Source: big}}, ErrTooLarge, "10000 bytes, at most 9000"},
		"too much":          {[]Input{{Path: "a", Data: random(1, 8000)}, {Path: "b", Data: random(2, 2000)}}, ErrTooLarge, `inputs[1].path ("b")`},
		"two contents":      {[]Input{{Path: "a", Source: inside, Data: []byte("x")}}, ErrBadSource, "source"},
		"two contents more": {[]Input{{Path: "a", UploadID: fresh, Data: []byte("x")}}, ErrBadSource, "upload_id"},
		"no such upload":    {[]Input{{Path: "a", UploadID: fresh}}, ErrNotFound, "upload it again"},
		"no upload id":      {[]Input{{Path: "a", UploadID: "x"}}, ErrBadUploadID, ""},
		"bad path":          {[]Input{{Path: "ok"}, {Path: "../a"}}, ErrBadPath, `inputs[1].path ("../a")`},
		"twice":             {[]Input{{Path: "a"}, {Path: "b"}, {Path: "a"}}, ErrBadPath, "inputs[2].path (\"a\"): also the path of inputs[0]"},
		"file and folder":   {[]Input{{Path: "a/b/c"}, {Path: "a"}}, ErrBadPath, `inputs[0].path ("a/b/c"): "a" is the file inputs[1]`},
		"ten thousand":      {make([]Input, 10000), ErrTooMany, "10000 inputs, at most 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := p.Pack(background(), c.inputs)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Pack returned %v, want %v with %q", err, c.want, c.says)
			}
			if _, ok := errors.AsType[*InputError](err); !ok && name != "ten thousand" {
				t.Errorf("Pack returned a %T", err)
			}
		})
	}
}

func TestPackFollowsLinksInside(t *testing.T) {
	store, root := openStore(t, blobstore.Config{}), t.TempDir()
	write(t, root, "runs/7/out", []byte("seven"))
	symlink(t, "runs/7", root, "latest")
	symlink(t, "../runs/7/out", root, "links/out")
	p := &Packer{Store: store, Roots: []string{"/nowhere", filepath.Join(root, "links"), root}}
	set, _, err := p.Pack(background(), []Input{{Path: "a", Source: filepath.Join(root, "latest/out")}})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "files", setContents(t, store, set), map[string]string{"a": "seven"})
	// The innermost root decides: its link leads out of it.
	if _, _, err := p.Pack(background(), []Input{{Path: "a", Source: filepath.Join(root, "links/out")}}); !errors.Is(err, ErrOutsideRoot) {
		t.Errorf("Pack returned %v, want ErrOutsideRoot", err)
	}
}

func TestPackNoticesChange(t *testing.T) {
	root := t.TempDir()
	path := write(t, root, "f", []byte("hello"))
	f, info, err := openSource([]string{root}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // Only read from.
	if changed(f, info) {
		t.Error("a file that was not touched has changed")
	}
	write(t, root, "f", []byte("hello!"))
	if !changed(f, info) {
		t.Error("a longer file has not changed")
	}
}

func TestPackStops(t *testing.T) {
	full := openStore(t, blobstore.Config{QuotaBytes: 4096})
	cancelled, cancel := context.WithCancel(background())
	cancel()
	inputs := []Input{{Path: "a", Data: random(1, 5000)}, {Path: "b", Data: random(2, 5000)}, {Path: "c", Data: random(3, 5000)}}
	if _, _, err := (&Packer{Store: full}).Pack(background(), inputs); !errors.Is(err, blobstore.ErrQuota) {
		t.Errorf("Pack into a full store returned %v, want ErrQuota", err)
	}
	if _, _, err := (&Packer{Store: full}).Pack(cancelled, inputs); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled Pack returned %v, want Canceled", err)
	}
}

// TestPackProperty packs and unpacks random inputs.
func TestPackProperty(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		want := make(map[string]string)
		var inputs []Input
		for i := range rng.IntN(60) {
			in := Input{Path: fmt.Sprintf("d%d/e%d/f%d", rng.IntN(3), rng.IntN(3), i), Executable: rng.IntN(2) == 0}
			in.Data = random(rng.Uint64(), rng.IntN(4000))
			want[in.Path] = string(in.Data)
			inputs = append(inputs, in)
		}
		set := mustPack(t, store, inputs...)
		b, err := set.Encode()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		decoded, err := Decode(b)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		dir := t.TempDir()
		if err := (&Unpacker{Store: store}).Unpack(background(), decoded, dir); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		same(t, fmt.Sprintf("seed %d", seed), contents(t, dir), want)
	}
}
