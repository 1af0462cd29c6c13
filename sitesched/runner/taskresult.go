package runner

import (
	"errors"
	"fmt"
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
		set, err := f.checkTaskFiles(from, m.Bundle, files)
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

// checkTaskFiles returns what of the files of a task was asked for, nil if that is nothing.
func (f *Files) checkTaskFiles(from job.SiteID, bundle job.AttemptID, files store.TaskFiles) ([]byte, error) {
	p, err := f.taskPayload(meta.TaskRun{Bundle: bundle, Ordinal: files.Ordinal})
	if errors.Is(err, errPayload) {
		return nil, nil // it was refused there, too
	}
	if err != nil {
		return nil, err
	}
	task := func(err error) error { return fmt.Errorf("%v, task %d: %w", bundle, files.Ordinal, err) }
	set, err := transfer.Decode(files.Set)
	if err != nil {
		f.refuse(from, WhatResult, task(fmt.Errorf("%w: %w", errList, err)))
		return nil, nil
	}
	kept, strange, _ := f.wanted(set, p.outputs())
	if len(strange) > 0 {
		f.refuse(from, WhatResult, task(fmt.Errorf("%w: %s", errUndeclared, some(strange))))
	}
	switch len(kept.Files) {
	case 0:
		return nil, nil
	case len(set.Files):
		return files.Set, nil
	}
	return kept.Encode()
}
