package job

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestIDRoundTrip(t *testing.T) {
	for _, id := range []ID{
		{Origin: "a", Generation: 0, Seq: 0},
		{Origin: "uni-a", Generation: 930693, Seq: 17},
		{Origin: SiteID(strings.Repeat("x", MaxSiteIDLength)), Generation: math.MaxUint32, Seq: math.MaxUint64},
	} {
		got, err := ParseID(id.String())
		if err != nil || got != id {
			t.Errorf("ParseID(%q) = %v, %v; want %v", id.String(), got, err, id)
		}
		attempt := AttemptID{Job: id, Number: 3}
		back, err := ParseAttemptID(attempt.String())
		if err != nil || back != attempt {
			t.Errorf("ParseAttemptID(%q) = %v, %v; want %v", attempt.String(), back, err, attempt)
		}
	}
}

func TestParseIDRefuses(t *testing.T) {
	for _, s := range []string{
		"", ".", "..", "a", "a.1", "A.1.1", "a.1.-1", "a.1.+1", "a.1.01", "a.01.1", "a.Z.1", "-a.1.1", "a-.1.1",
		"a.1.1 ", " a.1.1", "a.zzzzzzzz.1", "a.1.18446744073709551616", "a..1", "a/b.1.1", strings.Repeat("x", 33) + ".1.1",
		strings.Repeat("x", 1<<20),
	} {
		if id, err := ParseID(s); !errors.Is(err, ErrBadID) {
			t.Errorf("ParseID(%.40q) = %v, %v; want ErrBadID", s, id, err)
		} else if len(err.Error()) > 300 {
			t.Errorf("the error about a text of %d bytes has %d bytes", len(s), len(err.Error()))
		}
	}
	for _, s := range []string{"a.1.1", "a.1.1#", "a.1.1#0", "a.1.1#01", "a.1.1#x", "a.1.1#4294967296", "#1"} {
		if a, err := ParseAttemptID(s); !errors.Is(err, ErrBadID) {
			t.Errorf("ParseAttemptID(%q) = %v, %v; want ErrBadID", s, a, err)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("uni-a.k3f9.17")
	f.Add("a.0.0#1")
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := ParseID(s); err == nil && id.String() != s {
			t.Errorf("ParseID(%q).String() = %q: a job has two names", s, id)
		}
		if a, err := ParseAttemptID(s); err == nil && a.String() != s {
			t.Errorf("ParseAttemptID(%q).String() = %q: an attempt has two names", s, a)
		}
	})
}

func TestIDOrder(t *testing.T) {
	want := []ID{{"a", 9, 1}, {"a", 1, 2}, {"a", 2, 2}, {"a", 10, 2}, {"b", 1, 1}}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, ID.Compare)
	if !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	a := AttemptID{want[0], 1}
	if a.Compare(AttemptID{want[0], 2}) >= 0 || a.Compare(AttemptID{want[1], 1}) >= 0 || a.Compare(a) != 0 {
		t.Error("attempts are not ordered by job, then number")
	}
}

func TestTimeDoesNotOverflow(t *testing.T) {
	late := Never - 5
	if got := late.Add(time.Hour); got != Never {
		t.Errorf("%d + 1 h = %d, want Never", late, got)
	}
	now := time.Date(2026, 11, 21, 10, 0, 0, 123, time.UTC)
	if got := Instant(now).Wall(); !got.Equal(now) {
		t.Errorf("%v came back as %v", now, got)
	}
}
