package lab

import (
	"fmt"
	"slices"
	"strings"

	"kith/testbed/report"
	"kith/testbed/workload"
)

// priorityCases are the nine pairs of a case and a load.
func priorityCases() []priorityCase {
	var list []priorityCase
	for number := 1; number <= 3; number++ {
		for _, load := range priorityLoads {
			list = append(list, priorityCase{number, load})
		}
	}
	return list
}

// mctTrials are plain MCT under Q0 to Q5, in some pairs; without any in all nine.
func mctTrials(cases ...priorityCase) []priorityTrial {
	if len(cases) == 0 {
		cases = priorityCases()
	}
	var list []priorityTrial
	for _, c := range cases {
		for k := range prioritySites + 1 {
			list = append(list, mct(c.number, c.load, k))
		}
	}
	return list
}

// caseOne is case 1 under all loads.
func caseOne() []priorityCase { return priorityCases()[:len(priorityLoads)] }

// activeTrials are the configurations of the given cases in which weights act,
// with weights and without.
func activeTrials(numbers ...int) []priorityTrial {
	var list []priorityTrial
	for _, number := range numbers {
		for _, load := range priorityLoads {
			for _, k := range weightsAct[number-1] {
				t := mct(number, load, k)
				list = append(list, t, t.weighted(paperWeight))
			}
		}
	}
	return list
}

// withWeights returns trials that have weights among list.
func withWeights(list []priorityTrial) []priorityTrial {
	return slices.DeleteFunc(list, func(t priorityTrial) bool { return t.weight == 1 })
}

// findings collect what is wrong with a claim, and the numbers behind it.
type findings struct {
	values []Value
	parts  []string
	wrong  []string
}

// note adds a number.
func (f *findings) note(name string, v float64, unit string) {
	f.values = append(f.values, Value{Name: name, Value: v, Unit: unit})
}

// say adds a part to the line of what was measured.
func (f *findings) say(format string, args ...any) {
	f.parts = append(f.parts, fmt.Sprintf(format, args...))
}

// want notes a deviation unless ok.
func (f *findings) want(ok bool, format string, args ...any) {
	if !ok {
		f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
	}
}

// in wants a number within a band and notes it.
func (f *findings) in(name string, v, low, high float64, unit string) {
	f.note(name, v, unit)
	f.want(v >= low && v <= high, "%s is %s, not %s to %s", name, amount(v, unit), amount(low, unit), amount(high, unit))
}

// finding is the verdict: holds if nothing is wrong. why is what we think
// where something is.
func (f *findings) finding(why string) Finding {
	r := Finding{Measured: strings.Join(f.parts, "; "), Values: f.values, Verdict: VerdictOf(len(f.wrong) == 0)}
	if r.Verdict == Fails {
		const most = 4
		shown := f.wrong
		if len(shown) > most {
			shown = append(slices.Clone(shown[:most]), fmt.Sprintf("and %d more", len(f.wrong)-most))
		}
		r.Note = strings.Join(shown, "; ") + "."
		if why != "" {
			r.Note += " " + why
		}
	}
	return r
}

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
