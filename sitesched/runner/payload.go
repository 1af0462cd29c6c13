package runner

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	"kith/internal/params"
	"kith/meta/api"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/work"
	"kith/store/blobstore"
)

// errPayload is returned when what a grant brought cannot be run.
var errPayload = errors.New("payload of the attempt cannot be read")

// payload is what an attempt runs, taken apart.
type payload struct {
	raw    []byte
	parsed *kithv1.Payload
	job    *kithv1.Job
	inputs transfer.Set
	saved  transfer.Set // what an earlier attempt has saved
	// Of a task: its name, and what it finds in its environment beside what jobs do.
	task        string
	environment []params.Variable
}

func parsePayload(raw []byte) (*payload, error) {
	var m kithv1.Payload
	if err := proto.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", errPayload, err)
	}
	p := &payload{raw: raw, parsed: &m, job: m.GetJob()}
	if m.GetInputs() != nil {
		set, err := transfer.FromProto(m.GetInputs())
		if err != nil {
			return nil, fmt.Errorf("%w: inputs: %w", errPayload, err)
		}
		p.inputs = set
	}
	if m.GetResume().GetFiles() != nil {
		set, err := transfer.FromProto(m.GetResume().GetFiles())
		if err != nil {
			return nil, fmt.Errorf("%w: checkpoint: %w", errPayload, err)
		}
		if len(withoutSaved(set).Files) > 0 {
			return nil, fmt.Errorf("%w: its checkpoint has files beside %s", errPayload, api.CheckpointFolder)
		}
		p.saved = set
	}
	return p, nil
}

// outputs are the declared outputs.
func (p *payload) outputs() []string {
	var list []string
	for _, o := range p.job.GetOutputs() {
		list = append(list, o.GetPath())
	}
	return list
}

// agrees returns an error if the payload is not what this site has accepted.
func (p *payload) agrees(r *job.Request) error {
	if err := api.CheckPayload(p.parsed, r); err != nil {
		return fmt.Errorf("%w: %w", errPayload, err)
	}
	return nil
}

// spec is what the system runs, if it is what this site has accepted. It comes from
// the payload alone: what is in the private folder a job may have replaced. folder is
// that folder, blobs has the contents of large scripts.
func (p *payload) spec(a job.AttemptID, r *job.Request, host job.SiteID, folder string, blobs *blobstore.Store) (work.Spec, error) {
	if err := p.agrees(r); err != nil {
		return work.Spec{}, err
	}
	s := work.Spec{
		Attempt: a, JobID: p.task, Argv: p.job.GetCommand(), Env: p.env(), Directory: p.job.GetWorkingDirectory(),
		Processors: int(r.Processors), Tasks: int(p.job.GetTasks()), MemoryBytes: r.MemoryBytes, Walltime: r.Walltime,
		Name: r.Name, User: r.User, OriginSite: a.Job.Origin, HostSite: host, SubmitDirectory: r.Directory,
		Checkpoint: p.checkpoint(folder),
		Light:      p.task != "" && len(p.inputs.Files) == 0 && len(p.job.GetOutputs()) == 0,
	}
	if file, ok := p.inputs.Find(api.ScriptPath); ok {
		script := filepath.Join(folder, filepath.FromSlash(api.ScriptPath))
		interpreter, err := shebang(transfer.OpenFile(blobs, file))
		if err != nil {
			return s, err
		}
		s.Argv = append(append(interpreter, script), p.job.GetArguments()...)
	}
	if len(s.Argv) == 0 {
		return s, fmt.Errorf("%w: neither command nor script", errPayload)
	}
	return s, nil
}

// env is the environment that the submitter asked for, and what a task is told.
func (p *payload) env() map[string]string {
	env := p.job.GetEnvironment()
	if len(p.environment) == 0 {
		return env
	}
	all := make(map[string]string, len(env)+len(p.environment))
	maps.Copy(all, env)
	for _, v := range p.environment {
		all[v.Name] = v.Value
	}
	return all
}

// shebang returns the interpreter of a script and its one argument, as
// the kernel reads them. Kith calls the interpreter itself: the private folder
// may lie on a file system that allows no execution, and the kernel refuses to
// execute a script that any process still has open for writing.
func shebang(script *transfer.Reader) ([]string, error) {
	defer script.Close() //nolint:errcheck // it was only read
	head := make([]byte, min(4096, script.Size()))
	if _, err := script.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("script: %w", err)
	}
	line, _, _ := strings.Cut(string(head), "\n")
	line, ok := strings.CutPrefix(line, "#!")
	line = strings.TrimSpace(line)
	if !ok || line == "" {
		return nil, fmt.Errorf(`%w: script does not begin with "#!" and an interpreter`, errPayload)
	}
	program, argument, _ := strings.Cut(line, " ")
	if argument = strings.TrimSpace(argument); argument != "" {
		return []string{program, argument}, nil
	}
	return []string{program}, nil
}
