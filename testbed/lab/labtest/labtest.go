// Package labtest has what the tests of experiments share.
package labtest

import (
	"bytes"
	"encoding/json"
	"testing"

	"kith/testbed/lab"
	"kith/testbed/workload"
)

// Envs returns two environments with two seeds and that many jobs a site: one for
// "generated" jobs, one with a "log" of 3,000 jobs of a machine of 64 processors.
func Envs(t testing.TB, jobs int) map[string]*lab.Env {
	t.Helper()
	log, err := workload.CTCLike{Jobs: 3000, Processors: 64}.Generate(workload.NewRand(7, 7))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*lab.Env{"generated": {Seeds: 2, Jobs: jobs}, "log": {Seeds: 2, Jobs: jobs, Trace: log}}
}

// Small carries out an experiment with few jobs, checks that its report has a finding for
// each statement, so many tables whose rows are whole and so many plots that can be drawn,
// and that it is the same with another number of workers. It returns the report.
func Small(t *testing.T, e lab.Experiment, tables, plots int) *lab.Report {
	t.Helper()
	r, one := small(t, e, 1)
	if _, three := small(t, e, 3); !bytes.Equal(one, three) {
		t.Error("with another number of workers the report differs")
	}
	if len(r.Findings) != len(e.Statements) || len(r.Tables) != tables || len(r.Plots) != plots {
		t.Errorf("%d findings, %d tables, %d plots; want %d, %d, %d", len(r.Findings), len(r.Tables), len(r.Plots), len(e.Statements), tables, plots)
	}
	for i := range r.Plots {
		if err := r.Plots[i].Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, table := range r.Tables {
		for _, row := range table.Rows {
			if len(row) != len(table.Columns) {
				t.Errorf("table %s: a row has %d cells for %d columns: %v", table.Name, len(row), len(table.Columns), row)
			}
		}
	}
	return r
}

// small carries out an experiment and returns its report, also as bytes.
func small(t *testing.T, e lab.Experiment, workers int) (*lab.Report, []byte) {
	t.Helper()
	r, err := lab.Execute(t.Context(), lab.Selection{Experiment: e}, lab.Env{Seeds: 1, Jobs: 15, Processors: 16, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return r, text
}
