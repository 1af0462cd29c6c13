package policy

import (
	"errors"
	"testing"

	"kith/meta/bags"
	"kith/store"
)

// Whatever a text says, it is taken or refused with mistakes of bounded length, and what
// is taken gives the same each time and changes nothing but its own memory.
func FuzzTexts(f *testing.F) {
	for t := range bags.TextCount {
		f.Add(uint8(t), figure3.Texts[t])
	}
	f.Add(uint8(0), "[1,2].all(n, n > 0) || host.site in ['a'] && host.site.matches('(a|b)*')")
	f.Add(uint8(1), "mod(hour, 0) / size(host.site)")
	f.Add(uint8(4), "replicas.exists(r, has(r.site) && r.turnaround > 1)")
	f.Add(uint8(0), "{'a': 1}.a == 1 || 1u == 2u || b'x' == b'y' || null == null")
	f.Fuzz(func(t *testing.T, text uint8, source string) {
		p := &store.BagPolicies{}
		p.Texts[int(text)%store.PolicyCount] = source
		c, s := New(), scene()
		j, err := c.Compile(p)
		if err != nil {
			var wrong *bags.TextsError
			if !errors.As(err, &wrong) || len(wrong.Mistakes) == 0 || len(err.Error()) > 20*store.MaxPolicyText {
				t.Fatalf("%d bytes: %v", len(err.Error()), err)
			}
			return
		}
		again, err := New().Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		first := j.Verdict(s)
		if kept, fresh := j.Verdict(s), again.Verdict(scene()); first != kept || first != fresh || first.Rank != first.Rank {
			t.Fatalf("%+v, then %+v, anew %+v", first, kept, fresh)
		}
		if j.Offer(s) != again.Offer(s) || j.Replicate(s) != again.Replicate(s) {
			t.Fatal("two judges of one text differ")
		}
		for _, g := range j.Explain(s) {
			if g.Value == "" {
				t.Fatalf("%+v", g)
			}
		}
	})
}
