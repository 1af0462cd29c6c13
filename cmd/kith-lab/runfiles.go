package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"kith/internal/cli"
	"kith/testbed/lab"
	"kith/testbed/lab/experiments"
)

// folders are those that files will be written to.
func (o *runOptions) folders() []string {
	var list []string
	if o.report != "" {
		list = append(list, o.report)
	}
	if o.markdown != "" {
		list = append(list, filepath.Dir(o.markdown), o.images())
	}
	return list
}

// labImages is the folder of the documentation's plots, seen from its page.
const labImages = "images/lab"

func (o *runOptions) images() string {
	return filepath.Join(filepath.Dir(o.markdown), filepath.FromSlash(labImages))
}

// makeFolders makes them.
func (o *runOptions) makeFolders() error {
	for _, dir := range o.folders() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return cli.Usagef("%s: %v", dir, cli.Bare(err))
		}
	}
	return nil
}

// write writes the files that the user asked for.
func (o *runOptions) write(runs []lab.Run) error {
	if err := o.makeFolders(); err != nil {
		return err
	}
	if o.report != "" {
		if err := createAndWrite(filepath.Join(o.report, "index.html"), lab.Page(runs).WriteHTML); err != nil {
			return err
		}
		if err := createAndWrite(filepath.Join(o.report, "report.json"), func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(runAnswer(runs, 0, true).Runs)
		}); err != nil {
			return err
		}
		if err := writePlots(o.report, runs); err != nil {
			return err
		}
	}
	if o.markdown == "" {
		return nil
	}
	if err := writePlots(o.images(), runs); err != nil {
		return err
	}
	return createAndWrite(o.markdown, func(w io.Writer) error { return lab.Markdown(w, runs, labImages) })
}

func writePlots(dir string, runs []lab.Run) error {
	for i := range runs {
		for k := range runs[i].Report.Plots {
			p := &runs[i].Report.Plots[k]
			if err := createAndWrite(filepath.Join(dir, runs[i].PlotFile(p)), p.WriteSVG); err != nil {
				return err
			}
		}
	}
	return nil
}

func createAndWrite(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // writePage closes it where that matters.
	if err := cli.WritePage(f, write); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// maxReport is the largest report that is read, in bytes.
const maxReport = 64 << 20

// readReports reads the runs of reports that were written before.
func readReports(names []string) ([]lab.Run, error) {
	var runs []lab.Run
	for _, name := range names {
		b, err := readBounded(name, maxReport)
		if err != nil {
			return nil, cli.Usagef("--from %s: %v", name, cli.Bare(err))
		}
		var list []foundRun
		if err := json.Unmarshal(b, &list); err != nil {
			return nil, cli.Usagef("--from %s: not the report.json of kith-lab run --report: %v", name, err)
		}
		for i := range list {
			run, err := list[i].run()
			if err != nil {
				return nil, cli.Usagef("--from %s: %v", name, err)
			}
			runs = append(runs, run)
		}
	}
	return runs, nil
}

func readBounded(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // Only read from.
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("is longer than %d bytes", most)
	}
	return b, err
}

// run is the way back from what a report holds. A statement that has another band
// by now must be measured again; its other words are those of today.
func (x *foundRun) run() (lab.Run, error) {
	selected, err := lab.Select(experiments.All(), []string{x.Experiment})
	if err != nil {
		return lab.Run{}, err
	}
	r := lab.Run{
		Experiment: selected[0].Experiment, Trace: x.Trace, Command: x.Command,
		Report: &lab.Report{Workload: x.Workload, Seeds: x.Seeds, Findings: x.Findings, Remarks: x.Remarks, Caveat: x.Caveat, Tables: x.Tables, Plots: x.Plots},
	}
	if err := r.Refresh(); err != nil {
		return lab.Run{}, err
	}
	return r, nil
}
