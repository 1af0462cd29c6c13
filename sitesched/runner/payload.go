package runner

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	"kith/meta/api"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/work"
)

// errPayload is returned when what a grant brought cannot be run.
var errPayload = errors.New("payload of the attempt cannot be read")

// payload is what an attempt runs, taken apart.
type payload struct {
	raw    []byte
	job    *kithv1.Job
	inputs transfer.Set
}

func parsePayload(raw []byte) (*payload, error) {
	var m kithv1.Payload
	if err := proto.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", errPayload, err)
	}
	p := &payload{raw: raw, job: m.GetJob()}
	if m.GetInputs() != nil {
		set, err := transfer.FromProto(m.GetInputs())
		if err != nil {
			return nil, fmt.Errorf("%w: inputs: %w", errPayload, err)
		}
		p.inputs = set
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

// spec is what the system runs. folder is the private folder.
func (p *payload) spec(a job.AttemptID, r *job.Request, host job.SiteID, folder string) (work.Spec, error) {
	s := work.Spec{
		Attempt: a, Argv: p.job.GetCommand(), Env: p.job.GetEnvironment(), Directory: p.job.GetWorkingDirectory(),
		Processors: int(r.Processors), Tasks: int(p.job.GetTasks()), MemoryBytes: r.MemoryBytes, Walltime: r.Walltime,
		Name: r.Name, User: r.User, OriginSite: a.Job.Origin, HostSite: host, SubmitDirectory: r.Directory,
	}
	if _, ok := p.inputs.Find(api.ScriptPath); ok {
		script := filepath.Join(folder, filepath.FromSlash(api.ScriptPath))
		interpreter, err := shebang(script)
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

// shebang returns the interpreter of a staged script and its one argument, as
// the kernel reads them. Kith calls the interpreter itself: the private folder
// may lie on a file system that allows no execution, and the kernel refuses to
// execute a script that any process still has open for writing.
func shebang(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	line, err := bufio.NewReaderSize(io.LimitReader(f, 4096), 4096).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("script: %w", err)
	}
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
