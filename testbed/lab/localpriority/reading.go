package localpriority

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"kith/testbed/lab"
	"kith/testbed/report"
	"kith/testbed/workload"
)

// settings are the nine pairs of a case and a load.
func settings() []setting {
	var list []setting
	for number := 1; number <= 3; number++ {
		for _, load := range loads {
			list = append(list, setting{number, load})
		}
	}
	return list
}

// mctTrials are plain MCT under Q0 to Q5, in some pairs; without any in all nine.
func mctTrials(cases ...setting) []trial {
	if len(cases) == 0 {
		cases = settings()
	}
	var list []trial
	for _, c := range cases {
		for k := range siteCount + 1 {
			list = append(list, mct(c.number, c.load, k))
		}
	}
	return list
}

// caseOne is case 1 under all loads.
func caseOne() []setting { return settings()[:len(loads)] }

// activeTrials are the configurations of the given cases in which weights act,
// with weights and without.
func activeTrials(numbers ...int) []trial {
	var list []trial
	for _, number := range numbers {
		for _, load := range loads {
			for _, k := range weightsAct[number-1] {
				t := mct(number, load, k)
				list = append(list, t, t.weighted(paperWeight))
			}
		}
	}
	return list
}

// withWeights returns trials that have weights among list.
func withWeights(list []trial) []trial {
	return slices.DeleteFunc(list, func(t trial) bool { return t.weight == 1 })
}

// reading is what a statement's trials say: numbers, and how far each thing that the
// band asks for is met.
type reading struct {
	values []lab.Value
	parts  []string
	needs  []need
	// differs says where the source says something else than was measured though
	// the band is met.
	differs []string
	// remark is what to know in any case.
	remark string
	// informs says that there is no band.
	informs bool
}

// need is one thing that a band asks for.
type need struct {
	// margin is how far it is met; below zero it is not.
	margin float64
	// instead is what is the case if it is not.
	instead string
}

// unmet reports whether it is not met; what is not a number, such as a mean over
// no seeds, meets nothing.
func (n *need) unmet() bool { return !(n.margin >= 0) }

// note adds a number.
func (r *reading) note(name string, v float64, unit string) {
	r.values = append(r.values, lab.Value{Name: name, Value: v, Unit: unit})
}

// say adds a part to the line of what was measured.
func (r *reading) say(format string, args ...any) {
	r.parts = append(r.parts, fmt.Sprintf(format, args...))
}

// need notes by how far something is met; instead tells what is the case if not.
func (r *reading) need(margin float64, instead string, args ...any) {
	r.needs = append(r.needs, need{margin, fmt.Sprintf(instead, args...)})
}

// differ notes what the source says otherwise.
func (r *reading) differ(format string, args ...any) {
	r.differs = append(r.differs, fmt.Sprintf(format, args...))
}

// must is need for what is met or not.
func (r *reading) must(ok bool, instead string, args ...any) {
	r.need(float64(btoi(ok))-0.5, instead, args...)
}

// above needs a to be above b.
func (r *reading) above(a, b float64, instead string, args ...any) {
	r.need(a-b-math.SmallestNonzeroFloat64, instead, args...)
}

// in needs a number to be within a band and notes it.
func (r *reading) in(name string, v, low, high float64, unit string) {
	r.note(name, v, unit)
	r.need(min(v-low, high-v), "%s is %s, not %s to %s", name, amount(v, unit), amount(low, unit), amount(high, unit))
}

// met reports whether everything is.
func (r *reading) met() bool {
	return !slices.ContainsFunc(r.needs, func(n need) bool { return n.unmet() })
}

// missing says what is not met, each with its distance in standard errors as
// far as they are known.
func (r *reading) missing(errors []float64) string {
	const most = 4
	var texts []string
	furthest := 0.0
	for i, n := range r.needs {
		if !n.unmet() {
			continue
		}
		text, away := n.instead, math.Inf(1)
		if i < len(errors) && errors[i] > 0 {
			away = -n.margin / errors[i]
			text += fmt.Sprintf(" (%s standard errors)", report.Number(away))
		}
		furthest = max(furthest, away)
		texts = append(texts, text)
	}
	if len(texts) > most {
		texts = append(texts[:most:most], fmt.Sprintf("and %d more", len(texts)-most))
	}
	text := strings.Join(texts, "; ") + "."
	if furthest < chance {
		text += " That may be chance."
	}
	return text
}

// chance is how many standard errors away chance still is an explanation.
const chance = 2

// amount writes a number with its unit.
func amount(v float64, unit string) string {
	switch unit {
	case "":
		return report.Number(v)
	case "%":
		return report.Number(v) + "%"
	}
	return report.Number(v) + " " + unit
}

// signed writes a change in percent.
func signed(v float64) string {
	if v > 0 {
		return "+" + report.Number(v) + "%"
	}
	return report.Number(v) + "%"
}

// list writes numbers side by side.
func list(v []float64) string {
	texts := make([]string, len(v))
	for i := range v {
		texts[i] = report.Number(v[i])
	}
	return strings.Join(texts, ", ")
}

// heavy, medium and light are short for the loads of the source.
const (
	heavy  = workload.Heavy
	medium = workload.Medium
	light  = workload.Light
)

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
