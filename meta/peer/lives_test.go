package peer

import (
	"errors"
	"testing"

	kithv1 "kith/proto/gen/kith/v1"
)

// A site that comes back with an older state of its data folder is refused; so is
// another folder under the same generation. An empty folder, a restart and a version
// that names no folder are let in.
func TestLives(t *testing.T) {
	var l lives
	hello := func(folder string, generation uint32, incarnation uint64) *kithv1.Hello {
		return &kithv1.Hello{SiteId: "beta", Folder: []byte(folder), Generation: generation, Incarnation: incarnation}
	}
	const first, second, third = "the first folder", "the second one !", "and a third one "
	for _, c := range []struct {
		what  string
		hello *kithv1.Hello
		want  error
	}{
		{"the first time", hello(first, 7, 100), nil},
		{"the same daemon again", hello(first, 7, 100), nil},
		{"after restarts", hello(first, 7, 103), nil},
		{"another daemon that counts alike", &kithv1.Hello{SiteId: "beta", Folder: []byte(first), Generation: 7, Incarnation: 103, Daemon: 5}, ErrBehind},
		{"an old state of the folder", hello(first, 7, 102), ErrBehind},
		{"the latest state again", hello(first, 7, 104), nil},
		{"another folder", hello(second, 8, 5), nil},
		{"a folder of the same generation", hello(third, 8, 9), ErrFolder},
		{"the first folder, put back in an old state", hello(first, 7, 103), ErrBehind},
		{"a version that names no folder, with an earlier clock", hello("", 7, 1), nil},
		{"the second folder under such a version", hello("", 8, 1), nil},
		{"and under this one again", hello(third, 8, 2), nil},
		{"nonsense", hello("short", 7, 1), ErrMessage},
	} {
		if err := l.meet(c.hello); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
	}
}

func TestLivesAreBounded(t *testing.T) {
	var l lives
	for i := range 100 {
		h := &kithv1.Hello{SiteId: "beta", Folder: append(make([]byte, 15), byte(i)), Generation: uint32(i), Incarnation: 1}
		if err := l.meet(h); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(l["beta"]); n != mostFolders {
		t.Errorf("%d folders of a site are remembered, want %d", n, mostFolders)
	}
}
