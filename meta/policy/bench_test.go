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

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New()
	}
}

// Checking and planning Figure 3's requirement.
func BenchmarkCompile(b *testing.B) {
	c := New()
	b.ReportAllocs()
	for b.Loop() {
		if _, wrong := c.compile(bags.Requirements, figure3.Texts[bags.Requirements]); len(wrong) > 0 {
			b.Fatal(wrong)
		}
	}
}

// Evaluating one policy.
func BenchmarkEvaluate(b *testing.B) {
	for _, e := range []struct {
		name   string
		text   bags.Text
		source string
	}{
		{"figure3", bags.Requirements, figure3.Texts[bags.Requirements]},
		{"constant", bags.Rank, "1"},
		{"simple", bags.Concurrency, "2 * host.places"},
		{"long", bags.Rank, "bag.tail ? host.recent_done / (host.recent_done + host.recent_failed + 1) + site.speed * 2 : min(host.places, 100)"},
		{"exists", bags.Replicate, "replicas.exists(r, r.error_rate > 0.3 || r.age > 18000)"},
	} {
		b.Run(e.name, func(b *testing.B) {
			c, s := New(), scene()
			s.Host.Text(bags.HostSite, "myhost-1")
			p, wrong := c.program(e.text, e.source)
			if len(wrong) > 0 {
				b.Fatal(wrong)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.eval(p.program, s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// manyBags are bags with four policies each, of which three are asked for each ask.
func manyBags(c *Compiler, n int) ([]bags.Work, *bags.Desk, bags.Ask) {
	shape := bags.ShapeOf(&job.Request{Processors: 1, Walltime: time.Hour})
	var works []bags.Work
	for i := range n {
		p := figure3
		p.Texts[bags.Requirements] = fmt.Sprintf(`!bag.tail ? host.error_rate < 0.5 : host.site.matches("uni") && host.error_rate < 0.%d`, i%7)
		p.Texts[bags.Rank] = fmt.Sprintf(`!bag.tail ? %d : host.recent_done`, i%50)
		p.Texts[bags.Sites] = `!site.home`
		j, err := c.Compile(&p)
		if err != nil {
			panic(err)
		}
		s := scene()
		s.Bag.Truth(bags.BagTail, i%5 == 0)
		works = append(works, bags.Work{
			Bag: job.ID{Origin: "alpha", Generation: 1, Seq: uint64(i)}, Submitted: job.Time(i), User: fmt.Sprint("user", i%10), Shape: shape,
			Waiting: 1000, Room: 1000, Walltime: time.Hour, Sites: []job.SiteID{"uni-a"}, Judge: j, Scope: s.Bag,
		})
	}
	d := &bags.Desk{Usage: &bags.Usage{}, Elsewhere: &bags.Elsewhere{}, Scene: *scene()}
	return works, d, bags.Ask{Site: "uni-a", Node: "n7", Shape: shape, Places: 8, Want: 8}
}

// An ask among 500 bags with four policies each: with all to be found anew, because what
// they read of the host has changed, and with nothing changed.
func BenchmarkAsk(b *testing.B) {
	for _, cold := range []bool{true, false} {
		b.Run(map[bool]string{true: "cold", false: "unchanged"}[cold], func(b *testing.B) {
			works, d, ask := manyBags(New(), 500)
			d.Answer(ask, works, 0)
			n := 0.0
			b.ReportAllocs()
			for b.Loop() {
				if cold {
					n = 1 - n
					d.Scene.Host.Number(bags.HostErrorRate, 0.25+n/1000)
					d.Scene.Host.Number(bags.HostPlaces, 8+n)
					d.Scene.Host.Number(bags.HostDone, 30+n)
				}
				if len(d.Answer(ask, works, 1)) == 0 {
					b.Fatal("no tasks")
				}
			}
		})
	}
}

// The same ask without policies.
func BenchmarkAskWithout(b *testing.B) {
	works, d, ask := manyBags(New(), 500)
	for i := range works {
		works[i].Judge = nil
	}
	for b.Loop() {
		d.Answer(ask, works, 1)
	}
}

// mostSteps is what the policies of all open bags may take together.
const mostSteps = 500_000

// fullBags are bags that each state the same requirement, as many as may.
func fullBags(b *testing.B, c *Compiler, requirement string) (works []bags.Work, d *bags.Desk, ask bags.Ask, steps int) {
	works, d, ask = manyBags(c, 1)
	bag := works[0]
	works = nil
	for {
		j, err := c.Compile(&store.BagPolicies{Texts: [store.PolicyCount]string{bags.Requirements: requirement}})
		if err != nil {
			b.Fatal(err)
		}
		if steps += bags.CostOf(j); steps > mostSteps {
			return works, d, ask, steps - bags.CostOf(j)
		}
		bag.Bag.Seq++
		bag.Judge = j
		works = append(works, bag)
	}
}

// One ask among bags that take all steps there are, with all texts to be asked: they read the
// host, which has changed. Nothing matches, so no ask ends early.
func BenchmarkAskFull(b *testing.B) {
	for _, e := range []struct{ name, requirement string }{
		{"patterns", strings.Repeat("bag.name.matches('(a*)*(a*)*(a*)*b') || ", 3) + "host.places < 0"},
		{"numbers", strings.Repeat("host.places * 2 + host.recent_done < site.speed - 100 || ", 35) + "false"},
		{"short", "host.places < 0"},
		{"sums", "0 == host.places" + strings.Repeat(" + 1", 50)},
		{"ands", strings.Repeat("host.places > 0 && ", 90) + "host.places < 0"},
		{"names", strings.Repeat("(host.site + bag.name).contains('aaaaaaaaaaaaaaaab') || ", 20) + "host.places < 0"},
		{"lists", "[1, 2, 3, 4, 5, 6, 7, 8].exists(x, [1, 2, 3, 4, 5, 6, 7, 8].exists(y, x * y == -host.places))"},
	} {
		b.Run(e.name, func(b *testing.B) {
			works, d, ask, steps := fullBags(b, New(), e.requirement)
			for i := range works {
				works[i].Scope.Text(bags.BagName, strings.Repeat("a", bags.MaxText))
			}
			n := 0.0
			b.ReportAllocs()
			for b.Loop() {
				n = 1 - n
				d.Scene.Host.Number(bags.HostPlaces, 8+n)
				d.Answer(ask, works, 1)
			}
			b.ReportMetric(float64(len(works)), "bags")
			b.ReportMetric(float64(steps), "steps")
		})
	}
}
