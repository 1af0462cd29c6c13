package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	"kith/internal/declared"
	kithv1 "kith/proto/gen/kith/v1"
)

// The names that stdout and stderr of tasks get without --stdout and --stderr.
const (
	defaultTaskStdout = "kith-%A_%a.out"
	defaultTaskStderr = "kith-%A_%a.err"
)

// bagFetchVerb is "kith bag fetch".
func bagFetchVerb(c *client) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "fetch BAG [DIR] [flags]",
		Short: "Write the output of tasks of a bag that have ended into a folder",
		Long: `Write what tasks of a bag left that have ended into the folder DIR (default: the
current one): their stdout and stderr under the names that the submission gave them,
with the bag's id for %A and the index for %a, else kith-BAG_INDEX.out and
kith-BAG_INDEX.err; and their declared outputs into a folder INDEX for each task.
Tasks that wrote nothing have no file.

Nothing is written outside DIR. A file that is there already ends it, unless --force
is given.`,
		ValidArgsFunction: c.completeBags(true),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return cli.Usagef("%s: argument %q is one too many", cmd.Name(), args[2])
			}
			return oneBag(cmd, args[:min(len(args), 1)])
		},
	}
	cmd.Flags().SortFlags = false
	indices := indexFlag(cmd, "only these tasks")
	states := stateFlag(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "overwrite files that are there already")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir := "."
		if len(args) > 1 {
			dir = args[1]
		}
		return c.dial(cmd.Context(), func(ctx context.Context, s *site) error {
			b, err := c.getBag(ctx, s, args[0])
			if err != nil {
				return err
			}
			r := &kithv1.GetTaskOutputRequest{BagId: args[0], Indices: indices.Value, States: states.Value, AllFiles: true}
			return c.fetchTasks(ctx, s, b, r, dir, force)
		})
	}
	return cmd
}

// fetchTasks writes what tasks left.
func (c *client) fetchTasks(ctx context.Context, s *site, b *kithv1.Bag, r *kithv1.GetTaskOutputRequest, dir string, force bool) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return cli.Refusedf("folder %s: %v", dir, cli.Bare(err))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return cli.Refusedf("folder %s: %v", dir, cli.Bare(err))
	}
	defer root.Close() //nolint:errcheck // Only a handle.
	w := &taskWriter{bag: b, root: root, dir: dir, force: force}
	err = c.receiveTasks(ctx, s, r, w.take)
	if endErr := w.end(err == nil); err == nil {
		err = endErr
	}
	if err != nil {
		return err
	}
	for _, text := range w.missing {
		c.Note("%s", text)
	}
	return c.Print(map[string]any{"files": w.files, "tasks": w.tasks}, func() string {
		return fmt.Sprintf("%s of %s in %s\n", cli.Plural(int64(w.files), "file", "files"), cli.Plural(int64(w.tasks), "task", "tasks"), dir)
	})
}

// taskWriter writes files of tasks, one after the other.
type taskWriter struct {
	bag   *kithv1.Bag
	root  *os.Root
	dir   string
	force bool

	files, tasks int
	last         int32 // the latest task, if there is one
	missing      []string
	shared       map[string]int32 // names without an index that a task has already, at most two

	file            *os.File
	name, temporary string
	offset          int64
}

// take takes a piece.
func (w *taskWriter) take(p *kithv1.GetTaskOutputResponse) error {
	if w.tasks == 0 || p.GetIndex() != w.last {
		w.tasks, w.last = w.tasks+1, p.GetIndex()
	}
	if p.GetMissing() != "" {
		w.tasks--
		if w.last = -1; len(w.missing) < 10 {
			w.missing = append(w.missing, p.GetMissing())
		}
		return w.end(true)
	}
	if p.GetOffset() == 0 {
		if err := w.end(true); err != nil {
			return err
		}
		if err := w.begin(p); err != nil {
			return err
		}
	}
	if w.file == nil || p.GetOffset() != w.offset {
		return fmt.Errorf("task %s_%d, %s: the site sent byte %d where byte %d comes next; its log may tell more", w.bag.GetId(), p.GetIndex(), p.GetPath(), p.GetOffset(), w.offset)
	}
	n, err := w.file.Write(p.GetData())
	w.offset += int64(n)
	if err != nil {
		return cli.Refusedf("%s: %v", filepath.Join(w.dir, w.name), cli.Bare(err))
	}
	return nil
}

// begin opens the file that a piece begins.
func (w *taskWriter) begin(p *kithv1.GetTaskOutputResponse) error {
	name, ok := taskFileName(w.bag, p.GetIndex(), p.GetPath())
	if !ok {
		return cli.Refusedf("task %s_%d left %q, which it did not declare; \"kith bag logs\" prints files", w.bag.GetId(), p.GetIndex(), p.GetPath())
	}
	if other, _ := taskFileName(w.bag, p.GetIndex()^1, p.GetPath()); other == name { // of every task
		if earlier, taken := w.shared[name]; taken && earlier != p.GetIndex() {
			id := w.bag.GetId()
			return cli.Refusedf("tasks %s_%d and %s_%d would both be written to %s: fetch one at a time with --index, or print them with \"kith bag logs\"; %%a in -o and -e of a submission keeps tasks apart",
				id, earlier, id, p.GetIndex(), filepath.Join(w.dir, name))
		}
		if w.shared == nil {
			w.shared = make(map[string]int32)
		}
		w.shared[name] = p.GetIndex()
	}
	if _, err := w.root.Lstat(name); err == nil && !w.force {
		return cli.Refusedf("%s is there already; --force overwrites it", filepath.Join(w.dir, name))
	}
	if err := w.root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return cli.Refusedf("%s: %v", filepath.Join(w.dir, name), cli.Bare(err))
	}
	temporary := name + ".kith-" + newUUID()
	f, err := w.root.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return cli.Refusedf("%s: %v", filepath.Join(w.dir, name), cli.Bare(err))
	}
	w.file, w.name, w.temporary, w.offset = f, name, temporary, 0
	return nil
}

// end closes the latest file, and gives it its name if it is whole.
func (w *taskWriter) end(whole bool) error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	if err == nil && whole {
		if err = w.root.Rename(w.temporary, w.name); err == nil {
			w.files++
			return nil
		}
	}
	_ = w.root.Remove(w.temporary)
	if err != nil {
		return cli.Refusedf("%s: %v", filepath.Join(w.dir, w.name), cli.Bare(err))
	}
	return nil
}

// taskFileName returns where a file of a task goes, false if it goes nowhere.
func taskFileName(b *kithv1.Bag, index int32, file string) (string, bool) {
	fill := func(name, otherwise string) (string, bool) {
		id, number := b.GetId(), fmt.Sprint(index)
		name = strings.NewReplacer("%A", id, "%a", number, "%j", id+"_"+number).Replace(orDefault(name, otherwise))
		return path.Clean(name), filepath.IsLocal(name)
	}
	switch file {
	case stdoutName:
		return fill(b.GetJob().GetStdoutPath(), defaultTaskStdout)
	case stderrName:
		return fill(b.GetJob().GetStderrPath(), defaultTaskStderr)
	}
	var outputs []string
	for _, o := range b.GetJob().GetOutputs() {
		if strings.Contains(o.GetPath(), "{{") { // the site knows what the task made of it
			return path.Join(fmt.Sprint(index), path.Clean(file)), filepath.IsLocal(file)
		}
		outputs = append(outputs, o.GetPath())
	}
	return path.Join(fmt.Sprint(index), path.Clean(file)), filepath.IsLocal(file) && declared.Has(outputs, file)
}
