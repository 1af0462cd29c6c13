package codec

import (
	"encoding/binary"
	"fmt"

	"kith/internal/job"
	"kith/store"
)

// TaskFilesKey is the key of what a task left; those of one bag begin with its [JobKey], in
// the order of tasks.
func TaskFilesKey(bag job.ID, task uint32) []byte { return bagKey(bag, task) }

// filesWrites writes what tasks left, the latest of each last.
func filesWrites(s *store.State, files []store.FilesOf) []Write {
	w := make([]Write, 0, len(files))
	for _, f := range files {
		if s.Bag(f.Bag) == nil {
			continue
		}
		write := Write{Table: TaskFiles, Key: TaskFilesKey(f.Bag, f.Ordinal)}
		if len(f.Set) > 0 {
			write.Value = sealBytes(f.Set)
		}
		w = append(w, write)
	}
	return w
}

// stretchTasks is how many tasks a stretch is of at most.
const stretchTasks = 1024

// FilesStretch gathers what store.Backend.TaskFilesFrom returns. The zero value is ready.
type FilesStretch struct {
	Files []store.TaskFiles
	bytes int
}

// Add adds what is kept under a [TaskFilesKey]; keys must come in their order. It reports
// whether there is room for more. The error wraps [store.ErrCorrupt].
func (f *FilesStretch) Add(key, value []byte) (more bool, err error) {
	set, err := SideRecord(value)
	if err != nil || len(key) < 4 {
		return false, fmt.Errorf("files of a task: %w", err)
	}
	f.Files = append(f.Files, store.TaskFiles{Ordinal: binary.BigEndian.Uint32(key[len(key)-4:]), Set: set})
	f.bytes += len(set)
	return f.bytes < store.MaxBatchFiles && len(f.Files) < stretchTasks, nil
}
