package runner

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/internal/job"
	"kith/meta"
	"kith/meta/transfer"
	"kith/store"
)

// CheckTaskResults keeps of what another site says about the ends of tasks what can be true:
// times, and of the files stdout, stderr and declared outputs, none larger than this site
// takes. Figures have been checked at the border. An error says that the bag cannot be read
// now: the results are to be forgotten, they come again.
func (f *Files) CheckTaskResults(from job.SiteID, m meta.TaskResults) (meta.TaskResults, error) {
	now := job.Instant(time.Now())
	for i := range m.Results { // the list is the receiver's
		if r := &m.Results[i]; r.Start != 0 && !possible(r.Start, now) {
			r.Start = now
			f.refuse(from, WhatResult, fmt.Errorf("%v: %w", m.Bundle, errTimes))
		}
	}
	kept := m.Files[:0]
	for _, files := range m.Files {
		set, lost, err := f.checkTaskFiles(from, m.Bundle, files)
		if at := slices.IndexFunc(m.Results, func(r job.TaskResult) bool { return r.Ordinal == files.Ordinal }); lost && at >= 0 {
			m.Results[at].FilesLost = true
		}
		switch {
		case errors.Is(err, store.ErrUnknown): // the results are not wanted either
			m.Files = nil
			return m, nil
		case err != nil:
			return m, err
		case len(set) > 0:
			kept = append(kept, store.TaskFiles{Ordinal: files.Ordinal, Set: set})
		}
	}
	if m.Files = kept; len(kept) == 0 {
		m.Files = nil
	}
	return m, nil
}

// checkTaskFiles returns what of the files of a task was asked for, nil if that is nothing,
// and whether some of that is lost.
func (f *Files) checkTaskFiles(from job.SiteID, bundle job.AttemptID, files store.TaskFiles) (_ []byte, lost bool, _ error) {
	p, err := f.taskPayload(meta.TaskRun{Bundle: bundle, Ordinal: files.Ordinal})
	if errors.Is(err, errPayload) {
		return nil, false, nil // it was refused there, too
	}
	if err != nil {
		return nil, false, err
	}
	task := func(err error) error { return fmt.Errorf("%v, task %d: %w", bundle, files.Ordinal, err) }
	set, err := transfer.Decode(files.Set)
	if err != nil {
		f.refuse(from, WhatResult, task(fmt.Errorf("%w: %w", errList, err)))
		return nil, true, nil
	}
	kept, strange, large := f.wanted(set, p.outputs())
	if len(strange) > 0 {
		f.refuse(from, WhatResult, task(fmt.Errorf("%w: %s", errUndeclared, some(strange))))
	}
	switch len(kept.Files) {
	case 0:
		return nil, len(large) > 0, nil
	case len(set.Files):
		return files.Set, false, nil
	}
	raw, err := kept.Encode()
	return raw, len(large) > 0, err
}
