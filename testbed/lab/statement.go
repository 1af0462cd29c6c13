package lab

import (
	"encoding/json"
	"fmt"
	"math"

	"kith/testbed/report"
)

// Kind says what a statement rests on in its source.
type Kind string

// The kinds.
const (
	// Exact is a number in the text.
	Exact Kind = "exact"
	// Direction is an ordering or a direction only.
	Direction Kind = "direction"
	// AxisRead is read off an axis that survived of a figure.
	AxisRead Kind = "axis"
	// Ours is a statement of our own, not of a paper.
	Ours Kind = "ours"
)

// Statement is what a source says, and what has to come out for it to be reproduced.
type Statement struct {
	// ID is its number in the specification, such as C6; unique in the lab.
	ID string `json:"id"`
	// Text is the statement in a sentence.
	Text string `json:"statement"`
	// Source is what the source gives: a number, or a word.
	Source string `json:"source"`
	Kind   Kind   `json:"kind"`
	// Band is what an honest reproduction should measure.
	Band string `json:"band"`
	// Enforced says that a failure is one of the whole run.
	Enforced bool `json:"enforced"`
}

// Result is what became of a statement.
type Result string

// The results.
const (
	Holds Result = "holds"
	Fails Result = "fails"
	// Informational is for a statement that is only measured.
	Informational Result = "informational"
)

// ResultOf returns Holds if ok, else Fails.
func ResultOf(ok bool) Result {
	if ok {
		return Holds
	}
	return Fails
}

// Tone is how a result is shown.
func (v Result) Tone() report.Tone {
	switch v {
	case Holds:
		return report.Good
	case Fails:
		return report.Bad
	}
	return report.Muted
}

// Value is one number that a result rests on.
type Value struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// Unit is "" for a ratio.
	Unit string `json:"unit,omitempty"`
}

// valueJSON is a Value in JSON.
type valueJSON struct {
	Name  string   `json:"name"`
	Value *float64 `json:"value"`
	Unit  string   `json:"unit,omitempty"`
}

// MarshalJSON implements json.Marshaler. A value that is not finite, such as a
// ratio of nothing to nothing, is null.
func (v Value) MarshalJSON() ([]byte, error) {
	x := valueJSON{Name: v.Name, Unit: v.Unit}
	if !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
		x.Value = &v.Value
	}
	return json.Marshal(x)
}

// UnmarshalJSON implements json.Unmarshaler; null is not a number.
func (v *Value) UnmarshalJSON(b []byte) error {
	var x valueJSON
	if err := json.Unmarshal(b, &x); err != nil {
		return err
	}
	*v = Value{Name: x.Name, Value: math.NaN(), Unit: x.Unit}
	if x.Value != nil {
		v.Value = *x.Value
	}
	return nil
}

// Finding is a statement and what was measured.
type Finding struct {
	Statement
	// Measured is the result in a line.
	Measured string `json:"measured"`
	// Values are the numbers behind it.
	Values []Value `json:"values,omitempty"`
	Result Result  `json:"result"`
	// Note says why we think that a statement does not hold, or how it was read.
	Note string `json:"note,omitempty"`
	// Differs says where the source says something else than was measured
	// although the band is met, as bands allow for other workloads.
	Differs string `json:"differs,omitempty"`
}

// Failed reports whether the finding makes the whole run fail.
func (f *Finding) Failed() bool { return f.Enforced && f.Result == Fails }

// Report is what an experiment found.
type Report struct {
	// Workload says which jobs were run.
	Workload string `json:"workload"`
	// Seeds are those of the runs; on a log they number its windows.
	Seeds []uint64 `json:"seeds"`
	// Findings has one for each statement that was asked for, in the order of the
	// experiment's statements.
	Findings []Finding `json:"findings"`
	// Remarks say what else the reader should know.
	Remarks []string `json:"remarks,omitempty"`
	// Caveat is the remark that says why the bands are not meant for this run, ""
	// if they are. It is shown wherever results are.
	Caveat string         `json:"caveat,omitempty"`
	Tables []report.Table `json:"tables,omitempty"`
	Plots  []report.Plot  `json:"plots,omitempty"`
}

// Find adds a finding; of the statement only ID must be set.
func (r *Report) Find(f Finding) { r.Findings = append(r.Findings, f) }

// Remark adds a remark.
func (r *Report) Remark(format string, args ...any) {
	r.Remarks = append(r.Remarks, fmt.Sprintf(format, args...))
}

// Failed reports whether a statement with an enforced band fails.
func (r *Report) Failed() bool {
	for i := range r.Findings {
		if r.Findings[i].Failed() {
			return true
		}
	}
	return false
}

// Count returns how many findings have the result.
func (r *Report) Count(v Result) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Result == v {
			n++
		}
	}
	return n
}
