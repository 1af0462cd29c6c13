package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// rewrite removes the lines behind the first of them and writes all hashes anew, as who
// may write in the folder can. What follows is whole.
func rewrite(t *testing.T, dir string, keep int, change func(*Line)) {
	t.Helper()
	var text bytes.Buffer
	var prev Hash
	for _, l := range linesOf(t, dir)[:keep] {
		change(l)
		l.Prev = prev
		if l.Head != nil { // as the site itself would sign it
			l.Head.Hash = prev
			l.Head.Signature, _, _ = fakeSigner{}.Sign(l.Head.Message())
		}
		raw, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		prev = sha256.Sum256(raw)
		text.Write(append(raw, '\n'))
	}
	if err := os.WriteFile(filepath.Join(dir, nameOf(1)), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func peerHead(number uint64, last byte) Head {
	return Head{Site: "beta", Number: number, Hash: Hash{31: last}, Time: time.Unix(0, 0).UTC(), Signature: []byte("s"), Chain: [][]byte{[]byte("c")}}
}

// Which heads of a site go together; what is told of one that does not is kept over a
// restart, until the site is admitted anew.
func TestHeadsOfAnotherSite(t *testing.T) {
	type step struct {
		number uint64
		last   byte
		want   error
	}
	for name, c := range map[string]struct {
		steps  []step
		broken uint64 // line of the head that is shown as broken, 0 for none
		lines  map[string]int
	}{
		"one after the other": {[]step{{5, 1, nil}, {9, 2, nil}, {9, 2, nil}, {10, 3, nil}}, 0, map[string]int{KindPeerHead: 1}},
		"back":                {[]step{{5, 1, nil}, {4, 2, ErrHeadBack}, {6, 3, nil}}, 5, map[string]int{KindPeerHead: 1, KindPeerHeadBack: 1}},
		"a fork":              {[]step{{5, 1, nil}, {5, 2, ErrHeadFork}}, 5, map[string]int{KindPeerHead: 1, KindPeerHeadFork: 1}},
		"back from a later":   {[]step{{5, 1, nil}, {9, 2, nil}, {7, 3, ErrHeadBack}}, 9, map[string]int{KindPeerHead: 2, KindPeerHeadBack: 1}},
		"back and forth": {[]step{{5, 1, nil}, {5, 2, ErrHeadFork}, {5, 1, ErrHeadFork}, {5, 2, ErrHeadFork}, {4, 1, ErrHeadBack}, {3, 1, ErrHeadBack}},
			5, map[string]int{KindPeerHead: 1, KindPeerHeadFork: 2, KindPeerHeadBack: 2}},
		"the last line": {[]step{{1<<64 - 1, 1, nil}, {1, 1, ErrHeadBack}}, 1<<64 - 1, map[string]int{KindPeerHead: 1, KindPeerHeadBack: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, Config{Dir: dir, Site: "alpha"})
			var last Head
			for _, s := range c.steps {
				last = peerHead(s.number, s.last)
				if err := l.Hear(last); !errors.Is(err, s.want) {
					t.Errorf("head %d: %v, want %v", s.number, err, s.want)
				}
			}
			check := func(when string) {
				t.Helper()
				told, ok := l.Told("beta")
				if !ok || told.Head.Number != last.Number && when == "" || (told.Broken != nil) != (c.broken > 0) || c.broken > 0 && told.Broken.Number != c.broken {
					t.Errorf("%s: it told %+v", when, told)
				}
			}
			check("")
			closeLog(t, l)
			whole(t, dir)
			for _, kind := range []string{KindPeerHead, KindPeerHeadBack, KindPeerHeadFork} {
				lines := linesOf(t, dir, kind)
				if len(lines) != c.lines[kind] {
					t.Errorf("%d lines of %s, want %d", len(lines), kind, c.lines[kind])
				}
				for _, line := range lines {
					if line.Peer != "beta" || line.PeerHead == nil || string(line.PeerHead.Signature) != "s" {
						t.Errorf("line %+v has no proof", line)
					}
				}
			}
			l = open(t, Config{Dir: dir, Site: "alpha"})
			check("after a restart")
			if err := l.Hear(peerHead(1, 9)); !errors.Is(err, ErrHeadBack) && !errors.Is(err, ErrHeadFork) {
				t.Errorf("after a restart: %v", err)
			}
			l.Record(Entry{Kind: KindAdmit, Peer: "beta"})
			l.Admitted("beta")
			closeLog(t, l)
			l = open(t, Config{Dir: dir, Site: "alpha"})
			if told, ok := l.Told("beta"); ok {
				t.Errorf("admitted anew it had told %+v", told)
			}
			closeLog(t, l)
		})
	}
}

// Who tells a head with each digest writes two lines an hour here, and no more lines if
// it tells what cannot be.
func TestManyHeadsOfAnotherSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, Config{Dir: dir, Site: "alpha"})
		for i := range uint64(4 * 3600) {
			l.Hear(peerHead(i+1, 1)) //nolint:errcheck // counted below
			time.Sleep(250 * time.Millisecond)
		}
		for range 4 * 600 {
			l.Hear(peerHead(7, 1)) //nolint:errcheck // counted below
			l.Hear(peerHead(7, 2)) //nolint:errcheck // counted below
			time.Sleep(250 * time.Millisecond)
		}
		closeLog(t, l)
		good, fork := linesOf(t, dir, KindPeerHead), linesOf(t, dir, KindPeerHeadFork)
		if len(good) > 4 || len(fork) > 12 {
			t.Errorf("%d and %d lines in 70 minutes", len(good), len(fork))
		}
		n := uint64(0)
		for _, f := range fork {
			n += max(1, f.Count)
		}
		if n != 4*600*2-1 {
			t.Errorf("%d forks were counted", n)
		}
	})
}

// An operator who takes lines away and writes all hashes and signatures anew is found by
// the heads that another site has heard, and by nothing else: the log is whole. He is
// found, too, if he waits until the log is longer than it was.
func TestRewrittenLogIsFoundByAPeersHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, witness := t.TempDir(), open(t, Config{Dir: t.TempDir(), Site: "alpha"})
		defer closeLog(t, witness)
		beta := func(lines int) (h Head) {
			l := open(t, Config{Dir: dir, Site: "beta", Signer: fakeSigner{}})
			for range lines {
				l.Record(Entry{Kind: "drain", User: "ann"})
			}
			synctest.Wait()
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			h, _ = l.Head()
			closeLog(t, l)
			return h
		}
		first := beta(20)
		if err := witness.Hear(first); err != nil {
			t.Fatal(err)
		}
		rewrite(t, dir, 12, func(l *Line) {
			if l.Kind == "drain" {
				l.User = "bob"
			}
		})
		whole(t, dir)
		if err := witness.Hear(beta(0)); !errors.Is(err, ErrHeadBack) {
			t.Errorf("a shorter log: %v", err)
		}
		later := beta(40)
		if err := witness.Hear(later); err != nil {
			t.Errorf("it has grown beyond: %v", err)
		}
		whole(t, dir)
		if r := verify(t, dir, VerifyOptions{Head: &later}); len(r.Faults) > 0 {
			t.Errorf("the later head: %+v", r.Faults)
		}
		told, _ := witness.Told("beta")
		if told.Broken == nil {
			t.Fatal("what it told first is forgotten")
		}
		if r := verify(t, dir, VerifyOptions{Head: told.Broken}); len(r.Faults) != 1 || r.Faults[0].Number != first.Number {
			t.Errorf("the first head against the log as it is: %+v", r.Faults)
		}
	})
}

// A head is told to others when its lines are durable, not before: a crash must not make
// an honest site one that goes back.
func TestHeadIsToldWhenDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, Config{Dir: t.TempDir(), Site: "beta", Signer: fakeSigner{}})
		synctest.Wait()
		first, ok := l.Head()
		if !ok {
			t.Fatal("no head")
		}
		l.Record(Entry{Kind: "drain"})
		l.SignSoon()
		synctest.Wait()
		if h, _ := l.Head(); h.Number != first.Number {
			t.Errorf("head %d is told and its lines are not synced", h.Number)
		}
		time.Sleep(2 * syncEvery)
		synctest.Wait()
		if h, _ := l.Head(); h.Number <= first.Number {
			t.Errorf("head %d is not told a second later", h.Number)
		}
		closeLog(t, l)
	})
}

// A head that is asked for covers what was recorded before, whatever the writer is at.
func TestHeadCoversWhatWasRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, Config{Dir: t.TempDir(), Site: "beta", Signer: fakeSigner{}})
		synctest.Wait()
		least, _ := l.Head()
		want := least.Number
		const records = 400 // so that the writer is at work when the head is asked for
		for round := range 50 {
			for range records {
				l.Record(Entry{Kind: "drain"})
			}
			l.SignSoon()
			want += records
			time.Sleep(2 * syncEvery)
			synctest.Wait()
			h, _ := l.Head()
			if h.Number < want {
				t.Errorf("round %d: the head is of line %d, %d were written before it was asked for", round, h.Number, want)
				break
			}
			want = h.Number
		}
		closeLog(t, l)
	})
}
