package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/internal/declared"
	kithv1 "kith/proto/gen/kith/v1"
)

// fetched is a file of a job and where it goes.
type fetched struct {
	// Path is its name for the site, File its place below the folder.
	Path      string `json:"path"`
	File      string `json:"file"`
	SizeBytes int64  `json:"sizeBytes,string"`

	temporary string
}

// The names that stdout and stderr get without --stdout and --stderr: those of
// several jobs fit into one folder.
const (
	defaultStdout = "kith-%j.out"
	defaultStderr = "kith-%j.err"
)

// fetchVerb is "kith fetch".
func fetchVerb(c *client) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "fetch [--force] JOB|TASK [DIR]",
		Short: "Write the output of a job that has ended into a folder",
		Long: `Write what came back of a job that has ended into the folder DIR (default: the
current one): its stdout and stderr under the names that the submission gave
them, with the job's id for %j, else kith-JOB.out and kith-JOB.err; and its
declared outputs under their paths. What is still on its way from the site where the
job ran is waited for; what cannot come home for want of room is read there.

Of a bag, of tasks (BAG_INDEX, BAG_[1-5,9]), it is "kith bag fetch".

Declared outputs that did not come back are named on stderr; "kith submit
--require-outputs" makes a failure of them.

Nothing is written outside DIR. Files that are there already are not touched
unless --force is given; if anything goes wrong, no file is written.`,
		ValidArgsFunction: c.completeJobs(false),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return cli.Usagef("%s: argument %q is one too many", cmd.Name(), args[2])
			}
			return someJobsOrTasks(cmd, args[:min(len(args), 1)])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 1 {
				dir = args[1]
			}
			return c.dial(cmd.Context(), func(ctx context.Context, s *site) error {
				if name, ok := parseTasksName(args[0]); ok {
					b, err := c.getBag(ctx, s, name.bag)
					if err != nil {
						return err
					}
					return c.fetchTasks(ctx, s, b, &kithv1.GetTaskOutputRequest{BagId: name.bag, Indices: name.indices, AllFiles: true}, dir, force)
				}
				got, err := c.getJob(ctx, s, args[0])
				if err != nil {
					return c.bagOr(ctx, s, args[0], err, func(b *kithv1.Bag) error {
						return c.fetchTasks(ctx, s, b, &kithv1.GetTaskOutputRequest{BagId: b.GetId(), AllFiles: true}, dir, force)
					})
				}
				j := got.GetJob()
				files, err := planFiles(j)
				if err == nil {
					err = c.fetch(ctx, s, args[0], dir, force, files)
				}
				if err != nil {
					return err
				}
				for _, text := range []string{missingText(j), lostText(j), undeclaredText(j)} {
					if text != "" {
						c.Note("%s", text)
					}
				}
				missing := append([]string{}, j.GetStatus().GetOutcome().GetMissingOutputs()...)
				return c.Print(map[string]any{"files": files, "missing": missing}, func() string { return fetchText(args[0], dir, files) })
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite files that are there already")
	return cmd
}

// planFiles lists the files of a job. A job that ran has a stdout and a stderr,
// if only empty ones, so that scripts find them.
func planFiles(j *kithv1.Job) ([]*fetched, error) {
	id, st := j.GetId(), j.GetStatus()
	if !ended(st.GetState()) && st.GetState() != kithv1.JobStatus_STATE_RETURNING {
		return nil, cli.Refusedf("job %s is %s: its output comes when it has ended; \"kith wait\" waits for it, \"kith logs\" prints what there is",
			id, stateWord(st.GetState()))
	}
	local := map[string]string{
		stdoutName: localName(j.GetStdoutPath(), defaultStdout, id),
		stderrName: localName(j.GetStderrPath(), defaultStderr, id),
	}
	files := []*fetched{}
	listed := map[string]bool{}
	wanted := declaredBy(j)
	for _, o := range st.GetOutcome().GetOutputs() {
		if !wanted(o.GetPath()) && filepath.IsLocal(o.GetPath()) {
			continue
		}
		f := &fetched{Path: o.GetPath(), File: orDefault(local[o.GetPath()], o.GetPath()), SizeBytes: o.GetSizeBytes()}
		listed[f.Path] = true
		files = append(files, f)
	}
	for _, name := range []string{stdoutName, stderrName} {
		if began(st) && !listed[name] {
			files = append(files, &fetched{Path: name, File: local[name]})
		}
	}
	taken := map[string]string{}
	for _, f := range files {
		if !filepath.IsLocal(f.File) {
			return nil, cli.Refusedf("%s of job %s is named %q, which is not inside a folder; \"kith logs\" prints it", f.Path, id, f.File)
		}
		f.File = path.Clean(f.File)
		if other := taken[f.File]; other != "" {
			return nil, cli.Refusedf("%s and %s of job %s have the same name %q; \"kith logs\" prints each of them", other, f.Path, id, f.File)
		}
		taken[f.File] = f.Path
	}
	return files, nil
}

// declaredBy returns what reports whether a job asked for a file. Others are not written
// here, whatever a site says.
func declaredBy(j *kithv1.Job) func(path string) bool {
	var outputs []string
	for _, o := range j.GetOutputs() {
		outputs = append(outputs, o.GetPath())
	}
	return func(path string) bool {
		return path == stdoutName || path == stderrName || declared.Has(outputs, path)
	}
}

// undeclaredText says which files a site has of a job that were not declared, the first
// few by name; "" if none. A site may tell of 64,000 files.
func undeclaredText(j *kithv1.Job) string {
	const most = 10
	var names []string
	wanted, more := declaredBy(j), 0
	for _, o := range j.GetStatus().GetOutcome().GetOutputs() {
		switch {
		case wanted(o.GetPath()):
		case len(names) < most:
			names = append(names, strconv.Quote(o.GetPath()))
		default:
			more++
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := fmt.Sprintf("not written, because job %s did not declare it: %s", j.GetId(), strings.Join(names, ", "))
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// localName is the name that stdout or stderr gets here.
func localName(name, otherwise, id string) string {
	return strings.ReplaceAll(orDefault(name, otherwise), "%j", id)
}

// fetch brings the files in: each under a temporary name first, so that all or
// none of them appear.
func (c *client) fetch(ctx context.Context, s *site, id, dir string, force bool, files []*fetched) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return cli.Refusedf("folder %s: %v", dir, cli.Bare(err))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return cli.Refusedf("folder %s: %v", dir, cli.Bare(err))
	}
	defer root.Close() //nolint:errcheck // Only a handle.
	if err := checkFree(root, dir, force, files); err != nil {
		return err
	}
	defer func() {
		for _, f := range files {
			if f.temporary != "" {
				_ = root.Remove(f.temporary)
			}
		}
	}()
	for _, f := range files {
		if err := c.fetchOne(ctx, s, root, id, f); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := place(root, f, force); err != nil {
			return cli.Refusedf("%s: %v", filepath.Join(dir, f.File), cli.Bare(err))
		}
	}
	return nil
}

// checkFree returns a failure that names every file that is in the way.
func checkFree(root *os.Root, dir string, force bool, files []*fetched) error {
	var problems []string
	for _, f := range files {
		info, err := root.Lstat(f.File)
		name := filepath.Join(dir, f.File)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			problems = append(problems, fmt.Sprintf("%s: %v", name, cli.Bare(err)))
		case info.IsDir():
			problems = append(problems, fmt.Sprintf("%s is a folder; fetch into another DIR", name))
		case !force:
			problems = append(problems, fmt.Sprintf("%s is there already; --force overwrites it", name))
		}
	}
	if len(problems) > 0 {
		return &cli.Failure{Code: cli.ExitRefused, Problems: problems}
	}
	return nil
}

// fetchOne writes a file under a temporary name beside its place.
func (c *client) fetchOne(ctx context.Context, s *site, root *os.Root, id string, f *fetched) error {
	if err := root.MkdirAll(path.Dir(f.File), 0o777); err != nil {
		return cli.Refusedf("folder %s: %v", path.Dir(f.File), cli.Bare(err))
	}
	temporary := path.Join(path.Dir(f.File), ".kith-"+newUUID())
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return cli.Refusedf("%s: %v", f.File, cli.Bare(err))
	}
	f.temporary = temporary
	defer file.Close() //nolint:errcheck // After an error; else it is closed below.
	if f.SizeBytes > 0 {
		of := &outputFile{job: id, name: f.Path}
		if err := c.receive(ctx, s, of, copyTo(file)); err != nil {
			return err
		}
		if of.offset != f.SizeBytes {
			return cli.Refusedf("%s of job %s: %d of %d bytes arrived; try again", f.Path, id, of.offset, f.SizeBytes)
		}
	}
	if err := file.Close(); err != nil {
		return cli.Refusedf("%s: %v", f.File, cli.Bare(err))
	}
	return nil
}

// place gives a file its name.
func place(root *os.Root, f *fetched, force bool) error {
	if !force {
		// A link fails where there is a file by now; a rename would not.
		err := root.Link(f.temporary, f.File)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
		if _, err := root.Lstat(f.File); err == nil {
			return fs.ErrExist
		}
	}
	err := root.Rename(f.temporary, f.File)
	if err == nil {
		f.temporary = ""
	}
	return err
}

// missingText says which declared outputs of a job did not come back; "" if all did.
func missingText(j *kithv1.Job) string {
	missing := j.GetStatus().GetOutcome().GetMissingOutputs()
	if len(missing) == 0 {
		return ""
	}
	names := make([]string, len(missing))
	for i, m := range missing {
		names[i] = strconv.Quote(m)
	}
	text := fmt.Sprintf("job %s is %s and did not bring back %s", j.GetId(), stateWord(j.GetStatus().GetState()), strings.Join(names, ", "))
	if why := howItEnded(j.GetStatus()); why != "" {
		text += " (" + why + ")"
	}
	return text
}

// lostText says that some output of a job is lost; "" if none is, or if [missingText]
// says why already.
func lostText(j *kithv1.Job) string {
	if o := j.GetStatus().GetOutcome(); !o.GetOutputLost() || len(o.GetMissingOutputs()) > 0 {
		return ""
	}
	text := fmt.Sprintf("job %s is %s and some of its output is lost", j.GetId(), stateWord(j.GetStatus().GetState()))
	if why := howItEnded(j.GetStatus()); why != "" {
		text += " (" + why + ")"
	}
	return text
}

// lossText says that some output of a job is lost, "" if none is.
func lossText(j *kithv1.Job) string {
	if !j.GetStatus().GetOutcome().GetOutputLost() {
		return ""
	}
	return orDefault(lostText(j), missingText(j))
}

func fetchText(id, dir string, files []*fetched) string {
	if len(files) == 0 {
		return "Job " + id + " left nothing to fetch.\n"
	}
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%s  %s\n", cli.Clean(filepath.Join(dir, f.File)), byteCount(f.SizeBytes))
	}
	return b.String()
}
