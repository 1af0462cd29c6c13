package gridbot

import (
	"fmt"

	"kith/testbed/lab"
)

// What is otherwise in Kith than in the source, beside it: each time one server in which one
// rule is changed.

var (
	recalled = trial{work: "bundles", rules: "B2", by: byPlain, recall: true}
	absolute = trial{work: "spoilt", rules: "spoilt", by: byPlain}
	relative = trial{work: "spoilt", rules: "spoilt", by: byPlain, relative: true}
	spoilt   = trial{work: "spoilt", rules: "spoilt", by: byEngine}
	// P1 under each reading, with the tail of the other one.
	sourceLate  = trial{work: "single", rules: lateTail, by: first.by, alike: first.alike}
	engineEarly = trial{work: "single", rules: earlyTail, by: second.by, alike: second.alike}
)

// good is in how many hours nineteen in twenty tasks of the bag ended that is well in itself.
func good(o *outcome) float64 { return o.bags[1].ends[nearlyAll(&o.bags[1])] }

// nearlyAll is the place of the task among those that end with which nineteen in twenty have.
func nearlyAll(b *bagOutcome) int { return len(b.sent) - 1 - len(b.sent)/20 }

func shunned(o *outcome) float64 { return 100 * o.shunned }

func ourQuestions() []question {
	return []question{{
		ID: "O1", Kind: lab.Ours, Enforced: true, Text: "With recall bundles of five make no longer tail than tasks one at a time.", Source: "our own", Band: "turnaround ≤ 1.05 × that of one at a time",
		Needs: []trial{bundled(1), bundled(2), recalled}, Judge: func(a *answers) lab.Finding {
			return lab.Conclude(
				lab.Shown("one at a time", a.Of(bundled(1), minutes), "min"), lab.Shown("five", a.Of(bundled(2), minutes), "min"), lab.Shown("five, with recall", a.Of(recalled, minutes), "min"),
				lab.Check("five with recall ÷ one at a time", lab.Spread{a.Of(recalled, minutes).Mean() / a.Of(bundled(1), minutes).Mean()}, "", a.Of(recalled, minutes).Mean() <= 1.05*a.Of(bundled(1), minutes).Mean())).
				Noted("The source's server with the rule of `kithd` by which an idle host gets what another has not begun.", whyRecall)
		},
	}, {
		ID: "O2", Kind: lab.Ours, Enforced: true, Text: "A bag of which half of all runs fail anywhere spoils no host's name for other bags, as blame is relative.", Source: "our own",
		Band: "19 in 20 tasks of a good bag beside it are sooner done than where each failure is charged; fewer good hosts are shunned", Needs: []trial{absolute, relative, spoilt}, Judge: func(a *answers) lab.Finding {
			x, y := a.Of(absolute, good), a.Of(relative, good)
			u, v := a.Of(absolute, shunned), a.Of(relative, shunned)
			return lab.Conclude(
				lab.Shown("the good bag, each failure charged", x, "h"), lab.Check("relative", y, "h", y.Mean() < x.Mean()), lab.Shown("kithd", a.Of(spoilt, good), "h"),
				lab.Shown("good hosts shunned then, each failure charged", u, "%"), lab.Check("relative", v, "%", v.Mean() < u.Mean())).
				Noted(fmt.Sprintf("The source's server with either rule; both bags want hosts with an error rate below %v.", shunnedRate), "")
		},
	}, {
		ID: "O3", Kind: lab.Ours, Enforced: true, Text: "A tail that begins when fewer tasks wait than there are places replicates less than the source's threshold, and costs no time.", Source: "our own",
		Band: "P1 on the source's server: fewer replicas, turnaround ≤ 1.05 ×", Needs: append(singles(1), sourceLate, engineEarly), Judge: func(a *answers) lab.Finding {
			own, late := first.single(1), sourceLate
			return lab.Conclude(
				lab.Shown("the source's threshold", a.Of(own, hours), "h"), lab.Check("as many as places", a.Of(late, hours), "h", a.Of(late, hours).Mean() <= 1.05*a.Of(own, hours).Mean()),
				lab.Shown("replicas", a.Of(own, replicas), "%"), lab.Check("replicas, as many as places", a.Of(late, replicas), "%", a.Of(late, replicas).Mean() < a.Of(own, replicas).Mean()),
				lab.Shown("kithd with the source's threshold", a.Of(engineEarly, hours), "h"), lab.Shown("with its own", a.Of(second.single(1), hours), "h"),
				lab.Shown("replicas", a.Of(engineEarly, replicas), "%"), lab.Shown("with its own", a.Of(second.single(1), replicas), "%"))
		},
	}}
}

const whyRecall = "What is with a host that has vanished comes back at its deadline only, which is five times as long for five tasks: no recall reaches it. The engine of `kithd` gives a host no such stock."
