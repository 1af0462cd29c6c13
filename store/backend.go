package store

import (
	"iter"

	"kith/internal/job"
)

// Backend keeps a [State] on something that outlasts the process. Seal is
// called by the goroutine that owns the state; commits happen one at a time
// in the order of sealing, on any goroutine; reads may happen at any time.
type Backend interface {
	// Load returns the state of what was committed. It is called once, first.
	Load() (*State, error)
	// Seal encodes what has changed in s since the last Seal.
	Seal(s *State) Batch
	// Payload returns what a job runs, from the last committed batch.
	// It returns [ErrUnknown] if there is no such job. The caller owns the bytes.
	Payload(id job.ID) ([]byte, error)
	// Outputs returns the encoded files of a job that has ended, nil if it left
	// none. The caller owns the bytes.
	Outputs(id job.ID) ([]byte, error)
	// AttemptFiles returns the encoded files of an attempt that was demoted, nil if it left
	// none or is not known. The caller owns the bytes.
	AttemptFiles(a job.AttemptID) ([]byte, error)
	// Decision returns the latest decision about a job, nil if there was none,
	// or [ErrUnknown].
	Decision(id job.ID) (*Decision, error)
	// TaskResults returns what is kept of the tasks of a block of a bag: those with ordinals
	// from block*[ResultBlock] on, by ordinals. A task may have a result from before it was
	// retried: the bag says which ones have ended.
	TaskResults(bag job.ID, block uint32) ([]TaskRecord, error)
	// TaskFiles returns what a task of a bag left, as [RecordResults.Files] had it, nil if
	// that was nothing. The caller owns the bytes.
	TaskFiles(bag job.ID, task uint32) ([]byte, error)
	// TaskFilesFrom returns what some tasks of a bag left, by ordinals from one on: at most
	// [MaxBatchFiles] bytes and one set more. It is empty if none of those tasks left
	// anything. See [AllTaskFiles].
	TaskFilesFrom(bag job.ID, task uint32) ([]TaskFiles, error)
	// HeldPayload returns what a bundle runs that this site holds, or [ErrUnknown]. The
	// caller owns the bytes.
	HeldPayload(bundle job.AttemptID) ([]byte, error)
	// Past returns attempts that have ended, by numbers from one on: at most
	// [PastStretch]. It is empty if there are none. See [AllPast].
	Past(from uint64) ([]Past, error)
	// Close releases the back end; what was committed stays.
	Close() error
}

// AllTaskFiles yields what the tasks of a bag left, by ordinals. It reads stretch by
// stretch: little is in memory, and nothing is kept from being written meanwhile. After
// an error it ends.
func AllTaskFiles(from interface {
	TaskFilesFrom(bag job.ID, task uint32) ([]TaskFiles, error)
}, bag job.ID,
) iter.Seq2[TaskFiles, error] {
	return func(yield func(TaskFiles, error) bool) {
		for task := uint32(0); ; {
			files, err := from.TaskFilesFrom(bag, task)
			if err != nil {
				yield(TaskFiles{}, err)
				return
			}
			if len(files) == 0 {
				return
			}
			for _, f := range files {
				if !yield(f, nil) {
					return
				}
			}
			task = files[len(files)-1].Ordinal + 1
		}
	}
}

// PastStretch is the most that is read of what is past at a time.
const PastStretch = 1000

// AllPast yields the attempts that have ended, the oldest first, as [AllTaskFiles] does files.
func AllPast(from interface {
	Past(from uint64) ([]Past, error)
}) iter.Seq2[Past, error] {
	return func(yield func(Past, error) bool) {
		for number := uint64(0); ; {
			list, err := from.Past(number)
			if err != nil {
				yield(Past{}, err)
				return
			}
			if len(list) == 0 {
				return
			}
			for i := range list {
				if !yield(list[i], nil) {
					return
				}
			}
			number = list[len(list)-1].Number + 1
		}
	}
}

// Batch is one or more commands on their way to the disk.
type Batch interface {
	// Empty reports whether there is nothing to write.
	Empty() bool
	// Commit makes the batch durable and returns then. After an error nothing
	// of it is durable, and Commit may be called again; but for the errors of
	// which [Void] is true, after which it says the same for ever.
	Commit() error
}

// Replicated is a [Backend] that several members keep, of which another one may lead by
// now. Commit of an empty batch of it makes sure that none does, and fails with
// [ErrDeposed] otherwise: only after it an answer that rests on committed facts holds.
type Replicated interface {
	Backend
	// Replicated does nothing.
	Replicated()
}
