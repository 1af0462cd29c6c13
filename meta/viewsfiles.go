package meta

import (
	"slices"

	"kith/internal/job"
	"kith/store"
)

// bundleAt reports whether a site has tasks of a bundle of a bag submitted here. One that was
// taken back and may run on is such: that it cannot read its inputs would be a failure, which
// might be the first result.
func (v Views) bundleAt(bundle job.AttemptID, site job.SiteID) bool {
	b := v.origin.st.Bag(bundle.Job)
	if b == nil {
		return false
	}
	t := b.Bundle(bundle.Number)
	return t != nil && t.Site == site
}

// taskFiles returns the encoded files of a run of a task that ended here and that its origin
// has not acknowledged.
func (v Views) taskFiles(run job.AttemptID) ([]byte, bool) {
	h, task := v.host.st.TaskOfRun(run)
	if h == nil {
		return nil, false
	}
	for i := range h.Unacked {
		files := h.Unacked[i].Files
		if at := slices.IndexFunc(files, func(f store.TaskFiles) bool { return f.Ordinal == task }); at >= 0 {
			return files[at].Set, true
		}
	}
	return nil, false
}
