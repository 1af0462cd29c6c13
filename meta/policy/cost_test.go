package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// Patterns that match slowly, among them those that a backtracking engine never ends with.
var slowPatterns = []string{
	"(a|aa|aaa|aaaa)*b", "(.*.*.*.*.*.*.*.*.*.*.*.*.*.*)b", "(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*b", "(a*)*b", "(a+)+b", `\\bb`,
	"([a-z]|[a-y]|[a-x]|[a-w]){24}b", "(?i)([a-cg-qx-z]|[a-y]|[a-x]|[a-w]){20}b", "a?a?a?a?a?a?a?a?a?a?aaaaaaaaaab", "(?:a{0,30})b", `\\p{L}*b`,
}

// longNames has the longest names that there are.
func longNames() *bags.Scene {
	s := scene()
	s.Host.Text(bags.HostSite, strings.Repeat("a", job.MaxSiteIDLength))
	s.Host.Text(bags.HostNode, strings.Repeat("a", bags.MaxText))
	s.Bag.Text(bags.BagName, strings.Repeat("a", bags.MaxText))
	for len(s.Replicas) < replicaSize {
		s.Replicas = append(s.Replicas, s.Replicas[0])
	}
	return s
}

// What a pattern costs is counted: a step of a text with as many of the worst as it may have takes
// no longer than ten of one that compares numbers, in the same run. Both take 2 to 50 ns.
func TestPatternsCost(t *testing.T) {
	c, s := New(), longNames()
	p, wrong := c.compile(bags.Requirements, strings.Repeat("host.places * 2 + host.recent_done < site.speed - 100 || ", 30)+"false")
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	plain := perStep(t, c, s, p)
	for _, pattern := range slowPatterns {
		one := fmt.Sprintf("bag.name.matches('%s')", pattern)
		source := one
		for len(source)+len(one)+4 < store.MaxPolicyText {
			longer := source + " || " + one
			if _, wrong := c.compile(bags.Requirements, longer); len(wrong) > 0 {
				break
			}
			source = longer
		}
		p, wrong := c.compile(bags.Requirements, source)
		if len(wrong) > 0 {
			t.Errorf("%s: %v", pattern, wrong)
			continue
		}
		if n := perStep(t, c, s, p); n > 10*plain {
			t.Errorf("%s, %d times: a step takes %.1f ns, one of a plain text %.1f", pattern, strings.Count(source, "matches"), n, plain)
		}
	}
}

// perStep returns how many nanoseconds a step of a program takes at best.
func perStep(t *testing.T, c *Compiler, s *bags.Scene, p *program) float64 {
	t.Helper()
	took := time.Hour
	for range 5 { // others use the machine as well
		const times = 20
		began := time.Now()
		for range times {
			if _, err := c.eval(p.program, s); err != nil {
				t.Fatal(err)
			}
		}
		took = min(took, time.Since(began)/times)
	}
	return float64(took) / float64(p.cost)
}

// A name that is longer than the estimate goes by is not there.
func TestLongNamesAreNotThere(t *testing.T) {
	c, s := New(), longNames()
	j := compile(t, c, bags.Requirements, "size(host.node) > 0")
	if !j.Verdict(s).Yes {
		t.Error("the longest name is not there")
	}
	if s.Host.Text(bags.HostNode, strings.Repeat("a", bags.MaxText+1)); j.Verdict(s).Yes {
		t.Error("a longer name is there")
	}
}

// The cost of a match grows with the longest text and with the pattern.
func TestCostOfAPattern(t *testing.T) {
	c := New()
	cost := func(source string) int {
		p, wrong := c.compile(bags.Requirements, source)
		if len(wrong) > 0 {
			t.Fatalf("%s: %v", source, wrong)
		}
		return p.cost
	}
	if site, name := cost("host.site.matches('abc')"), cost("bag.name.matches('abc')"); site*4 > name {
		t.Errorf("a site's name, of 32 bytes, costs %d, a bag's, of 256, %d", site, name)
	}
	if short, long := cost("bag.name.matches('abc')"), cost("bag.name.matches('abc(d|e|f)*(g|h|i)*')"); long < 2*short {
		t.Errorf("a short pattern costs %d, a long one %d", short, long)
	}
	if one, both := cost("bag.name.matches('abc')"), cost("(bag.name + bag.name).matches('abc')"); both < one*3/2 {
		t.Errorf("a name costs %d, two of them together %d", one, both)
	}
}

// A pattern that is too long, or comes to too much, is refused before it is compiled.
func TestPatternsAreBounded(t *testing.T) {
	c := New()
	for source, want := range map[string]string{
		"host.site.matches('" + strings.Repeat("a?", 257) + "')":               "a pattern of 514 bytes: give at most 512",
		"host.site.matches('" + strings.Repeat(`\\pL{1000}`, 40) + "')":        "steps for each letter: at most 256",
		"host.site.matches('((a{100}){10}){1000}')":                            "invalid repeat count",
		"host.site.matches('(a?){60}a{60}b')":                                  "steps for each letter: at most 256",
		"host.site.matches('" + strings.Repeat("(a{0,30}|b{30}", 4) + "))))')": "steps for each letter: at most 256",
		"bag.name.matches('(a{50}|b{50}|c{50})*')":                             "steps: at most 10000 are allowed",
	} {
		began := time.Now()
		_, wrong := c.compile(bags.Requirements, source)
		if len(wrong) == 0 || !strings.Contains(wrong[0].What, want) {
			t.Errorf("%.60s: %v, want %q", source, wrong, want)
		}
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("%.60s: refused after %v", source, took)
		}
	}
}
