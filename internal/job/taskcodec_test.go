package job

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestTaskSetText(t *testing.T) {
	for _, text := range []string{
		"", "0", "0-1", "7", "0-99,120", "0-99,101,103-104", "4095-4096", "4095,4097", "0-16777215", "16777215", "0-4095,8192-12287", "5-20000",
	} {
		s, err := ParseTaskSet(text)
		if err != nil || s.String() != text {
			t.Errorf("ParseTaskSet(%q) = %q, %v", text, s.String(), err)
		}
	}
	for _, text := range []string{
		",", "0,", ",0", "0,,1", "1,0", "0,1", "0-1,2", "5-5", "5-4", "0-5,3", "00", "01", "0-01", "-1", "1-", "-", "1-2-3", "+1", " 1", "1 ", "x", "0x1", "1.5",
		"16777216", "0-16777216", "4294967296", "99999999999999999999", "1-99999999999999999999", "٣", strings.Repeat("1,", 1000), strings.Repeat("9", 1<<20),
	} {
		s, err := ParseTaskSet(text)
		if !errors.Is(err, ErrBadTaskSet) || !s.Empty() {
			t.Errorf("ParseTaskSet(%.40q) = %q, %v; want ErrBadTaskSet", text, s.String(), err)
		} else if len(err.Error()) > 400 {
			t.Errorf("the error about a text of %d bytes has %d bytes", len(text), len(err.Error()))
		}
	}
}

func TestTaskSetForms(t *testing.T) {
	for seed := range uint64(300) {
		s, want := randomSet(rand.New(rand.NewPCG(seed, 2)))
		form := s.AppendBinary(nil)
		back, err := DecodeTaskSet(form)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checkSet(t, &back, want)
		if fromText, err := ParseTaskSet(s.String()); err != nil || !fromText.Equal(&s) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		// How the set came to be does not show: nor that it was larger, nor in which order.
		var again TaskSet
		for _, n := range rand.New(rand.NewPCG(seed, 3)).Perm(len(want)) {
			again.Add(want.sorted()[n])
			if len(want) > 200 {
				again = s.Clone()
				extra := TaskRange(100, 5000)
				extra.RemoveAll(&s)
				again.AddAll(&extra)
				again.RemoveAll(&extra)
				break
			}
		}
		if got := again.AppendBinary(nil); !bytes.Equal(got, form) {
			t.Fatalf("seed %d: two binary forms of one set", seed)
		}
	}
}

func TestTaskSetFormIsCompact(t *testing.T) {
	every := func(step uint32, n int) TaskSet {
		var s TaskSet
		for k := range n {
			s.Add(uint32(k) * step)
		}
		return s
	}
	holes := TaskRange(0, 10_000_000)
	for k := range uint32(100) {
		holes.Remove(k * 99_991)
	}
	for name, c := range map[string]struct {
		set  TaskSet
		most int
	}{
		"none":                    {TaskSet{}, 0},
		"all there can be":        {TaskRange(0, MaxTasks), 3},
		"a bundle":                {TaskRange(5_000_000, 5_000_256), 8},
		"one task":                {TaskRange(MaxTasks-1, MaxTasks), 8},
		"10^7 but for 100":        {holes, 100 * 10},
		"every other of a page":   {every(2, pageTasks/2), bitsBytes},
		"every other of 10^7":     {every(2, 5_000_000), 5_000_000*2/8 + 3000},
		"each 1,000th of 10^7":    {every(1000, 10_000), 10_000*3 + 3000},
		"every third, all bitmap": {every(3, MaxTasks/3), MaxTaskSetBytes},
	} {
		form := c.set.AppendBinary(nil)
		if len(form) > c.most {
			t.Errorf("%s: %d bytes, want at most %d", name, len(form), c.most)
		}
		if back, err := DecodeTaskSet(form); err != nil || !back.Equal(&c.set) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodeTaskSetRefuses(t *testing.T) {
	group := func(kind, number uint64, more ...byte) []byte {
		return append(binary.AppendUvarint(nil, number<<2|kind), more...)
	}
	bitmapOf := func(s TaskSet) []byte { // whatever would be shorter
		var buf bitmap
		b := []byte{groupBits}
		for _, word := range s.pages[0].bitmap(&buf) {
			b = binary.LittleEndian.AppendUint64(b, word)
		}
		return b
	}
	for name, b := range map[string][]byte{
		"an empty group at the end":     group(groupEmpty, 1),
		"an empty group of nothing":     append(group(groupEmpty, 0), group(groupFull, 1)...),
		"two empty groups":              append(append(group(groupEmpty, 1), group(groupEmpty, 1)...), group(groupFull, 1)...),
		"no full page":                  group(groupFull, 0),
		"two full groups":               append(group(groupFull, 1), group(groupFull, 1)...),
		"too many full pages":           group(groupFull, MaxTasks/pageTasks+1),
		"an absurd number of pages":     group(groupFull, 1<<60),
		"an absurd gap":                 append(group(groupEmpty, 1<<60), group(groupFull, 1)...),
		"a gap behind the last page":    append(group(groupFull, MaxTasks/pageTasks), group(groupEmpty, 1)...),
		"a page behind the last":        append(group(groupFull, MaxTasks/pageTasks), group(groupRuns, 1, 0, 0)...),
		"no runs":                       group(groupRuns, 0),
		"a run that is missing":         group(groupRuns, 2, 0, 0),
		"an absurd number of runs":      group(groupRuns, 1<<60, 0, 0),
		"runs that touch":               group(groupRuns, 2, 0, 0, 0, 0),
		"a run beyond its page":         append(group(groupRuns, 1), binary.AppendUvarint(binary.AppendUvarint(nil, 4000), 100)...),
		"an absurd run":                 append(group(groupRuns, 1), binary.AppendUvarint(binary.AppendUvarint(nil, 1<<63), 1<<63)...),
		"a full page as a run":          append(group(groupRuns, 1), binary.AppendUvarint([]byte{0}, pageTasks-1)...),
		"a run as a bitmap":             bitmapOf(TaskRange(5, 10)),
		"a full page as a bitmap":       bitmapOf(TaskRange(0, pageTasks)),
		"an empty bitmap":               append([]byte{groupBits}, make([]byte, pageTasks/8)...),
		"a bitmap that is cut off":      append([]byte{groupBits}, make([]byte, pageTasks/8-1)...),
		"a bitmap with a number":        group(groupBits, 1, bytes.Repeat([]byte{0x55}, pageTasks/8)...),
		"a varint with a needless byte": {0x81 | groupFull<<0, 0x00},
		"a varint without an end":       {0xff, 0xff},
		"a varint that is too long":     bytes.Repeat([]byte{0xff}, 20),
		"too long a form":               make([]byte, MaxTaskSetBytes+1),
	} {
		if s, err := DecodeTaskSet(b); !errors.Is(err, ErrBadTaskSet) || !s.Empty() {
			t.Errorf("%s: decoded as %.60q, %v", name, s.String(), err)
		}
	}
	if s, err := DecodeTaskSet(bitmapOf(everyOther())); err != nil || s.Count() != pageTasks/2 {
		t.Errorf("the bitmap that the cases above begin with: %v", err)
	}
}

func everyOther() TaskSet {
	var s TaskSet
	for n := uint32(0); n < pageTasks; n += 2 {
		s.Add(n)
	}
	return s
}

func FuzzParseTaskSet(f *testing.F) {
	for _, text := range []string{"", "0-99,120", "0,1", "4095-4096,8191", "16777215", "0-16777215"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseTaskSet(text)
		if err != nil {
			return
		}
		if s.String() != text {
			t.Errorf("%q and %q are one set", text, s.String())
		}
		checkFuzzed(t, &s)
		if back, err := DecodeTaskSet(s.AppendBinary(nil)); err != nil || !back.Equal(&s) {
			t.Errorf("%q is lost in its binary form: %v", text, err)
		}
	})
}

func FuzzDecodeTaskSet(f *testing.F) {
	for _, text := range []string{"", "0-99,120", "4095-4096,8191", "16777215", "0-16777215"} {
		s, err := ParseTaskSet(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(s.AppendBinary(nil))
	}
	other := everyOther()
	f.Add(other.AppendBinary(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeTaskSet(b)
		if err != nil {
			return
		}
		if again := s.AppendBinary(nil); !bytes.Equal(again, b) {
			t.Errorf("%x and %x are one set", b, again)
		}
		checkFuzzed(t, &s)
		if s.Count() > 1<<16 {
			return // its text is long
		}
		if back, err := ParseTaskSet(s.String()); err != nil || !back.Equal(&s) {
			t.Errorf("%x is lost in its text: %v", b, err)
		}
	})
}

func checkFuzzed(t *testing.T, s *TaskSet) {
	t.Helper()
	if n := setBytes(s); n > 2<<20+200<<10 {
		t.Errorf("%d bytes of memory", n)
	}
	count := 0
	for lo, hi := range s.Ranges {
		count += int(hi - lo)
	}
	if last, ok := s.Last(); count != s.Count() || ok != (count > 0) || last >= MaxTasks {
		t.Errorf("%d tasks in ranges, %d counted, the last is %d", count, s.Count(), last)
	}
}

func BenchmarkTaskSetBinary(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	scattered := TaskSet{}
	for range 1_000_000 {
		scattered.Add(uint32(rng.IntN(10_000_000)))
	}
	for name, s := range map[string]TaskSet{"bundle": TaskRange(5_000_000, 5_000_256), "scattered": scattered} {
		form := s.AppendBinary(nil)
		b.Run(name+"/append", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(form)))
			for b.Loop() {
				form = s.AppendBinary(form[:0])
			}
		})
		b.Run(name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(form)))
			for b.Loop() {
				if _, err := DecodeTaskSet(form); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
