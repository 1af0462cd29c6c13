package sim

import "kith/meta"

// drivenSite is all that engines may ask of a local scheduler.
type drivenSite interface {
	meta.Site
	meta.Harmed
	meta.Evictor
}

// driven is the local scheduler as the engine drives it.
func (s *Site) driven() meta.Site {
	var local drivenSite = s.scheduler
	if s.w.cfg.Transfers {
		local = transferSite{s.scheduler, s.w}
	}
	if s.w.cfg.Check || s.w.cfg.Guard {
		local = guardedSite{local, s.scheduler, s.w, s}
	}
	if s.w.cfg.between != nil {
		local = s.w.cfg.between(local)
	}
	if s.w.cfg.Count {
		local = countedSite{local, &s.calls}
	}
	return local
}
