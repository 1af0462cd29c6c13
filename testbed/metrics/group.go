package metrics

import (
	"cmp"
	"slices"
	"strings"
)

// Group is the records that have a key in common.
type Group struct {
	Key     string
	Records []Record
}

// GroupBy splits records by a key, in the order of the keys. The records keep
// their order within a group and are copied.
func GroupBy(records []Record, key func(*Record) string) []Group {
	index := make(map[string]int)
	var groups []Group
	for i := range records {
		k := key(&records[i])
		at, ok := index[k]
		if !ok {
			at = len(groups)
			index[k] = at
			groups = append(groups, Group{Key: k})
		}
		groups[at].Records = append(groups[at].Records, records[i])
	}
	slices.SortFunc(groups, func(a, b Group) int { return strings.Compare(a.Key, b.Key) })
	return groups
}

// ByOrigin is a key for [GroupBy]: the site at which the job was submitted.
func ByOrigin(r *Record) string { return string(r.Origin) }

// BySite is the site that ran the job.
func BySite(r *Record) string { return string(r.Site) }

// Trim leaves out the given share of records at either end in the order of
// submission: what happens while a system fills and empties (spec 001 section
// 2.7 reports with 0 and with 0.05).
func Trim(records []Record, share float64) []Record {
	kept := slices.Clone(records)
	BySubmission(kept)
	n := min(max(int(share*float64(len(kept))), 0), len(kept)/2)
	return kept[n : len(kept)-n]
}

// BySubmission sorts records by when they were submitted; of one instant they keep their order.
func BySubmission(records []Record) {
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(a.Submit, b.Submit) })
}

// Fairness compares groups by one figure each, such as the mean slowdown of the
// jobs of each origin.
type Fairness struct {
	// Jain is Jain's index (Σx)² ÷ (n·Σx²): 1 if all are equal, 1/n if one has all.
	Jain float64 `json:"jain"`
	// Min, Max, Mean and SD are over the groups; the divisor of SD is n−1.
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"`
}

// FairnessOf returns the fairness of the figures of groups; all zero without any.
func FairnessOf(figures []float64) Fairness {
	if len(figures) == 0 {
		return Fairness{}
	}
	f := Fairness{Min: slices.Min(figures), Max: slices.Max(figures), Mean: Mean(figures), SD: SampleSD(figures), Jain: 1}
	sum, sq := 0.0, 0.0
	for _, x := range figures {
		sum += x
		sq += x * x
	}
	if sq > 0 {
		f.Jain = sum * sum / (float64(len(figures)) * sq)
	}
	return f
}
