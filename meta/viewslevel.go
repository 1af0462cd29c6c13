package meta

import (
	"kith/cluster"
	"kith/internal/job"
	"kith/store"
)

// LevelView is what a site says of the level that it is.
type LevelView struct {
	Site  job.SiteID
	Level *cluster.Level
}

// mostLevelViews bounds [Views.LevelsOf].
const mostLevelViews = 16

// LevelsOf returns what the sites say that are of the level of a hierarchy that a job is at, this
// one first; nothing for a job of none, or one that has ended.
func (v Views) LevelsOf(now job.Time, j *store.Job) []LevelView {
	if j.Level == 0 || j.State.Terminal() {
		return nil
	}
	var list []LevelView
	if v.host.ownLevel() == j.Level {
		list = append(list, LevelView{v.origin.self, v.host.describeLevel(now)})
	}
	for _, p := range v.peers.view.Peers() {
		if p.Known && p.Digest.Level.Is(j.Level) && len(list) < mostLevelViews {
			list = append(list, LevelView{p.Site, p.Digest.Level})
		}
	}
	return list
}
