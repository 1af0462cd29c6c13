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
func (f *Files) CheckResult(from job.SiteID, m meta.Result) (meta.Result, error) {
	o := &m.Outcome
	var notes []string
	if boundFigures(o) {
		notes = append(notes, "its host's figures were out of bounds")
		f.refuse(from, WhatResult, fmt.Errorf("%v: %w", m.Attempt, errFigures))
	}
	if boundTimes(o, job.Instant(time.Now())) {
		notes = append(notes, "its host's times cannot be true, and were replaced")
		f.refuse(from, WhatResult, fmt.Errorf("%v: %w", m.Attempt, errTimes))
	}
	if len(o.Files) == 0 {
		o.Checkpoint = 0
	} else {
		note, err := f.checkFiles(from, m.Attempt, o)
		if err != nil {
			return m, err
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	if len(notes) > 0 {
		o.Reason = addNote(job.ClipText(o.Reason, job.MaxReasonLength/2), strings.Join(notes, "; "))
	}
	o.Reason = job.ClipReason(o.Reason)
	return m, nil
}

// checkFiles leaves out files that were not asked for, and says so.
func (f *Files) checkFiles(from job.SiteID, a job.AttemptID, o *job.Outcome) (note string, err error) {
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
		f.refuse(from, WhatResult, fmt.Errorf("%v: %w: %w", a, errList, err))
		return "its output is lost: the list of it is not valid", nil
	}
	outputs := p.outputs()
	if o.Kind == job.Demoted {
		outputs = p.savedPaths()
	}
	kept, strange, large := f.wanted(set, outputs)
	why := ""
	if o.Kind == job.Demoted {
		if why = checkpointMissing(o, set, kept, p); why != "" {
			kept, o.Checkpoint = withoutSaved(kept), 0
			why = "no checkpoint: " + why
		}
	}
	if len(kept.Files) == len(set.Files) {
		return why, nil
	}
	if o.Files, err = kept.Encode(); err != nil {
		return "", err
	}
	if len(kept.Files) == 0 {
		o.Files = nil
	}
	o.FilesRemain = o.FilesRemain && hasChunks(kept)
	note = why
	if len(large) > 0 {
		o.FilesLost = true
		note = addNote(note, fmt.Sprintf("not taken, larger than this site takes: %s", some(large)))
	}
	if len(strange) > 0 {
		note = addNote(note, fmt.Sprintf("not taken, not declared: %s", some(strange)))
		f.refuse(from, WhatResult, fmt.Errorf("%v: %w: %s", a, errUndeclared, some(strange)))
	}
	return note, nil
}

// wanted returns what of a set was asked for, and names what was not declared and what is
// larger than this site takes.
func (f *Files) wanted(set transfer.Set, outputs []string) (kept transfer.Set, strange, large []string) {
	for _, file := range set.Files {
		switch {
		case file.Path != transfer.Stdout && file.Path != transfer.Stderr && !declared.Has(outputs, file.Path):
			strange = append(strange, fmt.Sprintf("%q", job.ClipText(file.Path, 40)))
		case f.cfg.MaxFileBytes > 0 && file.Size > f.cfg.MaxFileBytes:
			large = append(large, fmt.Sprintf("%q", job.ClipText(file.Path, 40)))
		default:
			kept.Files = append(kept.Files, file)
		}
	}
	return kept, strange, large
}

// some lists the first of names.
func some(names []string) string {
	const most = 2
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// boundFigures moves the figures of an outcome into what is possible, and reports
// whether any was not.
func boundFigures(o *job.Outcome) (moved bool) {
	bound := func(n *int64, least, most int64) {
		if *n < least || *n > most {
			*n, moved = min(max(*n, least), most), true
		}
	}
	cpu := int64(o.CPUTime)
	code, signal := int64(o.ExitCode), int64(o.Signal)
	const mostCPU, mostMemory, mostSignal = int64(100 * 365 * 24 * time.Hour), 1 << 50, 127
	bound(&cpu, 0, mostCPU)
	bound(&o.MaxRSSBytes, 0, mostMemory)
	bound(&code, 0, 255)
	bound(&signal, 0, mostSignal)
	o.CPUTime = time.Duration(cpu)
	o.ExitCode, o.Signal = int32(code), int32(signal)
	return moved
}
