package runner

import (
	"errors"
	"math"
	"testing"
	"time"

	"kith/store/blobstore"
)

// A disk with plenty of room is looked at once in a while, any other for each question.
func TestRoomIsLookedAtOnceInAWhile(t *testing.T) {
	const gib = 1 << 30
	now := time.Unix(1000, 0)
	looks, free := 0, int64(100*gib)
	r := NewRoom(t.TempDir())
	r.now = func() time.Time { return now }
	r.look = func(string) (int64, error) {
		looks++
		return free, nil
	}
	expect := func(what string, want int) {
		t.Helper()
		if looks != want {
			t.Errorf("%s: %d looks, want %d", what, looks, want)
		}
	}
	for range 100 {
		if !r.known(gib, gib) {
			t.Error("there is no room where there is plenty")
		}
	}
	expect("plenty of room", 1)
	if r.known(100*gib, 0) || r.known(0, 100*gib) {
		t.Error("what leaves nothing free is let in without a look")
	}
	free = 2 * gib
	now = now.Add(roomHolds)
	if r.known(gib, 1) || !r.known(gib, 0) {
		t.Error("the margin is not that of plenty")
	}
	expect("when the first look is old", 2)
	free = gib - 1
	now = now.Add(roomHolds)
	for range 10 {
		if r.known(0, 0) {
			t.Error("little room counts as plenty")
		}
	}
	expect("little room", 12)
	free = 100 * gib
	if !r.known(0, 0) {
		t.Error("room that has come is not seen at once")
	}
}

// What leaves too little free is refused, as the disk says.
func TestRoomThatIsNotThere(t *testing.T) {
	r := NewRoom(t.TempDir())
	for range 3 {
		if err := r.Check(1, math.MaxInt64/2); !errors.Is(err, blobstore.ErrDiskFull) {
			t.Errorf("%v", err)
		}
		if err := r.Check(1, 1); err != nil {
			t.Error(err)
		}
	}
	if err := NewRoom(t.TempDir()+"/none").Check(1, 1); err != nil {
		t.Errorf("a folder that is not there counts as full: %v", err)
	}
}

// A disk that was low has room again with an eighth more than has to stay free, and room for
// two attempts: not with each file that goes.
func TestLowForAWhile(t *testing.T) {
	const keep = 1 << 60 // more than any disk has
	free, now := int64(0), time.Unix(1000, 0)
	r := NewRoom(t.TempDir())
	r.now = func() time.Time {
		now = now.Add(roomHolds)
		return now
	}
	r.look = func(string) (int64, error) { return free, nil }
	for _, c := range []struct {
		more int64
		was  bool
		low  bool
	}{
		{startBytes, false, false}, {startBytes - 1, false, true},
		{keep/8 + 2*startBytes, true, false}, {keep/8 + 2*startBytes - 1, true, true}, {startBytes, true, true},
	} {
		free = plenty + keep + c.more // beyond what is known to be plenty the disk itself is asked
		if err := r.Low(c.was, keep); (err != nil) != c.low {
			t.Errorf("%d bytes more than has to stay free, low before %v: %v", c.more, c.was, err)
		}
	}
}
