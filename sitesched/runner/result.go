package runner

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"kith/internal/declared"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	"kith/store"
)

// CheckResult keeps of what another site says about the end of an attempt what can be
// true: stdout, stderr and the outputs that the job declared, none larger than this site
// takes, and figures within bounds. What is left out the outcome says. An error says
// that the job cannot be read now: the result is to be forgotten, it comes again.
func (f *Files) CheckResult(m meta.Result) (meta.Result, error) {
	o := &m.Outcome
	var notes []string
	if boundFigures(o, job.Instant(time.Now())) {
		notes = append(notes, "its host's figures were out of bounds")
	}
	if len(o.Files) > 0 {
		note, err := f.checkFiles(m.Attempt, o)
		if err != nil {
			return m, err
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	if len(notes) > 0 {
		o.Reason = addNote(clip(o.Reason, job.MaxReasonLength/2), strings.Join(notes, "; "))
	}
	o.Reason = clip(o.Reason, job.MaxReasonLength)
	return m, nil
}

// checkFiles leaves out files that were not asked for, and says so.
func (f *Files) checkFiles(a job.AttemptID, o *job.Outcome) (note string, err error) {
	raw, err := f.cfg.Backend.Payload(a.Job)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return "", nil // the result is not wanted either
	case err != nil:
		return "", err
	}
	p, err := parsePayload(raw)
	if err != nil {
		return "", nil //nolint:nilerr // It was refused there, too.
	}
	set, err := transfer.Decode(o.Files)
	if err != nil {
		o.Files, o.FilesRemain, o.FilesLost = nil, false, true
		return "its output is lost: the list of it is not valid", nil //nolint:nilerr // The outcome says so.
	}
	outputs := p.outputs()
	var kept transfer.Set
	var strange, large []string
	for _, file := range set.Files {
		switch {
		case file.Path != transfer.Stdout && file.Path != transfer.Stderr && !declared.Has(outputs, file.Path):
			strange = append(strange, fmt.Sprintf("%q", clip(file.Path, 40)))
		case f.cfg.MaxFileBytes > 0 && file.Size > f.cfg.MaxFileBytes:
			large = append(large, fmt.Sprintf("%q", clip(file.Path, 40)))
		default:
			kept.Files = append(kept.Files, file)
		}
	}
	if len(kept.Files) == len(set.Files) {
		return "", nil
	}
	if o.Files, err = kept.Encode(); err != nil {
		return "", err
	}
	if len(kept.Files) == 0 {
		o.Files = nil
	}
	o.FilesRemain = o.FilesRemain && hasChunks(kept)
	if len(large) > 0 {
		o.FilesLost = true
		note = fmt.Sprintf("not taken, larger than this site takes: %s", some(large))
	}
	if len(strange) > 0 {
		if note != "" {
			note += "; "
		}
		note += fmt.Sprintf("not taken, not declared: %s", some(strange))
	}
	return note, nil
}

// some lists the first of names.
func some(names []string) string {
	const most = 2
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// earliest is a time that every clock shows that was set once: 2000-01-01, in nanoseconds
// since 1970.
const earliest = 946_684_800_000_000_000

// boundFigures moves the figures of an outcome into what is possible, and reports
// whether any was not.
func boundFigures(o *job.Outcome, now job.Time) (moved bool) {
	const ahead = 24 * time.Hour // as far as a host's clock may be
	latest := int64(now.Add(ahead))
	bound := func(n *int64, least, most int64) {
		if *n < least || *n > most {
			*n, moved = min(max(*n, least), most), true
		}
	}
	start, end, cpu := int64(o.Start), int64(o.End), int64(o.CPUTime)
	code, signal := int64(o.ExitCode), int64(o.Signal)
	const mostCPU, mostMemory, mostSignal = int64(100 * 365 * 24 * time.Hour), 1 << 50, 127
	for _, at := range []*int64{&end, &start} {
		if *at != 0 { // zero is a time that is not known, or a job that never ran
			bound(at, earliest, latest)
		}
	}
	if start > end && end != 0 { // a clock may step while a job runs
		start = end
	}
	bound(&cpu, 0, mostCPU)
	bound(&o.MaxRSSBytes, 0, mostMemory)
	bound(&code, 0, 255)
	bound(&signal, 0, mostSignal)
	o.Start, o.End, o.CPUTime = job.Time(start), job.Time(end), time.Duration(cpu)
	o.ExitCode, o.Signal = int32(code), int32(signal)
	return moved
}

// clip shortens a text to n bytes of valid UTF-8.
func clip(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }
