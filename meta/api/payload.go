package api

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// CheckPayload checks what a host is to run as a submission is checked, and that it is
// the job of the request that the host has accepted: what the host agreed to, its user
// gets. Of the fields that both have, the walltime is left out: a host runs by that of
// the request, which may be in the time of its own processors.
func CheckPayload(p *kithv1.Payload, accepted *job.Request) error {
	j := p.GetJob()
	if j == nil {
		return fieldErrors{{Field: "job", Reason: "missing"}}
	}
	if j.GetScript() == "" && hasScript(p) {
		j = proto.CloneOf(j)
		j.Script = "#!"
	}
	f := checkContents(j)
	r := requestOf(j, accepted.User)
	differs := func(field string, got, want any) {
		f.add(field, fmt.Sprintf("is %v, but the site has accepted %v", got, want))
	}
	switch {
	case r.Directory != accepted.Directory:
		differs("job.working_directory", quoted(r.Directory), quoted(accepted.Directory))
	case r.Processors != accepted.Processors:
		differs("job.processors", r.Processors, accepted.Processors)
	case r.MemoryBytes != accepted.MemoryBytes:
		differs("job.memory_bytes", r.MemoryBytes, accepted.MemoryBytes)
	case r.Name != accepted.Name:
		differs("job.name", quoted(r.Name), quoted(accepted.Name))
	case r.OnSiteLost != accepted.OnSiteLost:
		differs("job.on_site_lost", r.OnSiteLost, accepted.OnSiteLost)
	case r.Checkpoint != accepted.Checkpoint:
		differs("job.checkpoint", r.Checkpoint, accepted.Checkpoint)
	case r.Estimate != accepted.Estimate:
		differs("job.estimate", r.Estimate, accepted.Estimate)
	case r.SaveSeconds != accepted.SaveSeconds:
		differs("job.checkpoint.every", r.SaveEvery(), accepted.SaveEvery())
	case r.AskSeconds != accepted.AskSeconds && (accepted.Level == 0 || accepted.AskSeconds != 0):
		// What is left of the time of a job of a hierarchy may be too short to ask.
		differs("job.checkpoint.before_walltime", r.AskBefore(), accepted.AskBefore())
	}
	if len(f) > 0 {
		return f
	}
	return nil
}

func hasScript(p *kithv1.Payload) bool {
	for _, f := range p.GetInputs().GetFiles() {
		if f.GetPath() == ScriptPath {
			return true
		}
	}
	return false
}

// quoted shows at most 64 bytes of a text from another site.
func quoted(s string) string {
	return fmt.Sprintf("%q", strings.ToValidUTF8(s[:min(len(s), 64)], "?"))
}
