package meta_test

import (
	"strings"

	"kith/internal/job"
)

// after reads what a job or a bag is to wait for: after=afterok:1,afterany:2,singleton.
func (s *stage) after(a arguments) []job.Dependency {
	var after []job.Dependency
	for text := range strings.SplitSeq(a.named["after"], ",") {
		word, id, _ := strings.Cut(text, ":")
		if word == "" {
			continue
		}
		d := job.Dependency{Condition: map[string]job.Condition{
			"afterok": job.AfterOK, "afterany": job.AfterAny, "afternotok": job.AfterNotOK, "singleton": job.Singleton,
		}[word]}
		if d.Condition != job.Singleton {
			d.On = s.jobID(id)
		}
		after = append(after, d)
	}
	return after
}
