package report

import (
	"encoding/json"
	"math"
)

// Numbers are written to JSON as they are; those that are not finite, which
// JSON does not know, become null, and null is read as not a number.

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

// plainNumbers is the way back.
func plainNumbers(list []*float64) []float64 {
	if list == nil {
		return nil
	}
	v := make([]float64, len(list))
	for i := range list {
		v[i] = math.NaN()
		if list[i] != nil {
			v[i] = *list[i]
		}
	}
	return v
}

// seriesJSON is a Series in JSON.
type seriesJSON struct {
	Name  string     `json:"name"`
	Style Style      `json:"style"`
	X     []*float64 `json:"x"`
	Y     []*float64 `json:"y"`
	Low   []*float64 `json:"low,omitempty"`
	High  []*float64 `json:"high,omitempty"`
}

// barsJSON is a BarSeries in JSON.
type barsJSON struct {
	Name   string     `json:"name"`
	Values []*float64 `json:"values"`
	Low    []*float64 `json:"low,omitempty"`
	High   []*float64 `json:"high,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (s Series) MarshalJSON() ([]byte, error) {
	return json.Marshal(seriesJSON{s.Name, s.Style, jsonNumbers(s.X), jsonNumbers(s.Y), jsonNumbers(s.Low), jsonNumbers(s.High)})
}

// MarshalJSON implements json.Marshaler.
func (s BarSeries) MarshalJSON() ([]byte, error) {
	return json.Marshal(barsJSON{s.Name, jsonNumbers(s.Values), jsonNumbers(s.Low), jsonNumbers(s.High)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Series) UnmarshalJSON(b []byte) error {
	var x seriesJSON
	if err := json.Unmarshal(b, &x); err != nil {
		return err
	}
	*s = Series{x.Name, x.Style, plainNumbers(x.X), plainNumbers(x.Y), plainNumbers(x.Low), plainNumbers(x.High)}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *BarSeries) UnmarshalJSON(b []byte) error {
	var x barsJSON
	if err := json.Unmarshal(b, &x); err != nil {
		return err
	}
	*s = BarSeries{x.Name, plainNumbers(x.Values), plainNumbers(x.Low), plainNumbers(x.High)}
	return nil
}
