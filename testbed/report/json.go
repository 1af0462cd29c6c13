package report

import (
	"encoding/json"
	"math"
)

// Numbers are written to JSON as they are; those that are not finite, which
// JSON does not know, become null.

// jsonNumbers returns v with nil for what is not finite.
func jsonNumbers(v []float64) []*float64 {
	if v == nil {
		return nil
	}
	list := make([]*float64, len(v))
	for i := range v {
		if !math.IsNaN(v[i]) && !math.IsInf(v[i], 0) {
			list[i] = &v[i]
		}
	}
	return list
}

// MarshalJSON implements json.Marshaler.
func (s Series) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name  string     `json:"name"`
		Style Style      `json:"style"`
		X     []*float64 `json:"x"`
		Y     []*float64 `json:"y"`
		Low   []*float64 `json:"low,omitempty"`
		High  []*float64 `json:"high,omitempty"`
	}{s.Name, s.Style, jsonNumbers(s.X), jsonNumbers(s.Y), jsonNumbers(s.Low), jsonNumbers(s.High)})
}

// MarshalJSON implements json.Marshaler.
func (s BarSeries) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name   string     `json:"name"`
		Values []*float64 `json:"values"`
		Low    []*float64 `json:"low,omitempty"`
		High   []*float64 `json:"high,omitempty"`
	}{s.Name, jsonNumbers(s.Values), jsonNumbers(s.Low), jsonNumbers(s.High)})
}
