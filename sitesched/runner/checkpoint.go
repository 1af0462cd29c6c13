package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/internal/declared"
	"kith/internal/donemark"
	"kith/internal/job"
	"kith/meta/api"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/work"
	"kith/store"
)

// What a job saves so that another attempt goes on, see [kithv1.Checkpoint]. Its files are
// collected when nothing of the attempt lives, with stdout and stderr and by the same rules.
// A checkpoint counts if it is whole and its DONE has a number above that of the one before;
// else it is left out with the reason, and the job goes on from the one before.

// maxCheckpoint is the longest description of a checkpoint, in bytes: with the inputs and what
// was submitted it fits what a grant may have.
const maxCheckpoint = transfer.MaxEncodedBytes / 2

// savedName is the path of a file of the checkpoint in the private folder.
func savedName(name string) string { return api.CheckpointFolder + "/" + name }

func isSaved(path string) bool { return strings.HasPrefix(path, api.CheckpointFolder+"/") }

// saves reports whether the job writes checkpoints.
func (p *payload) saves() bool { return p.job.GetCheckpoint() != nil }

// savedPaths are the paths and patterns of a checkpoint in the private folder, none if the job
// writes none.
func (p *payload) savedPaths() []string {
	if !p.saves() {
		return nil
	}
	list := []string{savedName(api.DoneName)}
	for _, path := range p.job.GetCheckpoint().GetPaths() {
		list = append(list, savedName(path))
	}
	return list
}

// allFiles are the inputs and what was saved. Of the bounds of a set each of the two keeps its own:
// together they may have more files, and more of their contents.
func (p *payload) allFiles() transfer.Set {
	if len(p.saved.Files) == 0 {
		return p.inputs
	}
	all := slices.Concat(p.inputs.Files, p.saved.Files)
	slices.SortFunc(all, func(a, b transfer.File) int { return strings.Compare(a.Path, b.Path) })
	return transfer.Set{Files: all}
}

// demotes reports whether an end says "saved, run me again".
func (r *run) demotes(o *job.Outcome) bool {
	return r.payload != nil && r.payload.saves() && o.Kind == job.Failure && o.Start != 0 && o.Signal == 0 &&
		o.ExitCode == api.CheckpointExit(r.payload.job.GetCheckpoint())
}

// checkSaved looks whether what was collected of a demoted attempt has a checkpoint that
// counts. If not, its files are left out, and the outcome says why.
func (s *Runner) checkSaved(o *job.Outcome, c *transfer.Collection, r *run) {
	if o.Start == 0 { // it never ran
		return
	}
	sequence, err := s.numberOf(c, r)
	if err == nil {
		err = r.inTime(sequence)
	}
	if err == nil {
		o.Checkpoint = sequence
		return
	}
	o.Reason = addNote(o.Reason, "no checkpoint: "+err.Error())
	c.Set = withoutSaved(c.Set)
}

// errOldCheckpoint is returned where a job has saved nothing new.
var errOldCheckpoint = errors.New("it saved nothing new")

// inTime returns an error if a checkpoint was saved after the grace of the attempt.
func (r *run) inTime(sequence uint64) error {
	if asked, late := r.late(); late && sequence > asked {
		return fmt.Errorf("%s says %d, and was to be written when it said %d, before the grace of %v was over", api.DoneName, sequence, asked, r.asked.Grace)
	}
	return nil
}

// numberOf returns the number of the checkpoint in what was collected, or why it does not count.
func (s *Runner) numberOf(c *transfer.Collection, r *run) (uint64, error) {
	var saved transfer.Set
	for _, f := range c.Set.Files {
		if isSaved(f.Path) {
			saved.Files = append(saved.Files, f)
		}
	}
	done, ok := saved.Find(savedName(api.DoneName))
	switch {
	case !ok && len(saved.Files) == 0 && !s.wroteSaved(r):
		return 0, errors.New("it wrote none")
	case !ok:
		return 0, fmt.Errorf("%s is missing or is no file", api.DoneName)
	case c.Incomplete:
		return 0, fmt.Errorf("files are missing: %s", strings.Join(c.Notes, "; "))
	}
	encoded, err := saved.Encode()
	switch size, most := saved.Bytes(), s.files.cfg.MaxCheckpointBytes; {
	case most > 0 && size > most:
		return 0, fmt.Errorf("its files have %d bytes together, and this site takes at most %d", size, most)
	case err != nil:
		return 0, err
	case len(encoded) > maxCheckpoint:
		return 0, fmt.Errorf("the description of its %d files has %d bytes, at most %d", len(saved.Files), len(encoded), maxCheckpoint)
	}
	sequence, err := s.readDone(done)
	if err != nil {
		return 0, err
	}
	switch before := r.payload.parsed.GetResume().GetSequence(); {
	case sequence < before:
		return 0, fmt.Errorf("%s says %d, and before it said %d", api.DoneName, sequence, before)
	case sequence == before:
		return 0, fmt.Errorf("%w: %s still says %d", errOldCheckpoint, api.DoneName, sequence)
	}
	return sequence, nil
}

// wroteSaved reports whether anything is in the folder for checkpoints.
func (s *Runner) wroteSaved(r *run) bool {
	entries, err := os.ReadDir(filepath.Join(r.files.Work, api.CheckpointFolder))
	return err == nil && len(entries) > 0
}

const maxDone = donemark.Most

// readDone reads the number in DONE.
func (s *Runner) readDone(f transfer.File) (uint64, error) {
	if f.Size > maxDone {
		return 0, fmt.Errorf("%s has %d bytes, and should be a number", api.DoneName, f.Size)
	}
	data := make([]byte, f.Size)
	file := transfer.OpenFile(s.files.blobs, f)
	defer file.Close() //nolint:errcheck // it was only read
	if _, err := file.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("%s cannot be read: %w", api.DoneName, err)
	}
	return parseDone(data)
}

func parseDone(data []byte) (uint64, error) {
	sequence, ok := donemark.Parse(data)
	if !ok {
		return 0, fmt.Errorf("%s says %q, and should be a number from 1 on", api.DoneName, job.ClipText(strings.TrimSpace(string(data)), maxDone))
	}
	return sequence, nil
}

// withoutSaved returns a set without the files of a checkpoint.
func withoutSaved(set transfer.Set) transfer.Set {
	set.Files = slices.DeleteFunc(slices.Clone(set.Files), func(f transfer.File) bool { return isSaved(f.Path) })
	return set
}

// checkpointMissing says why what another site kept of a demoted attempt has no checkpoint
// that counts; "" if it has one.
func checkpointMissing(o *job.Outcome, given, kept transfer.Set, p *payload) string {
	done, ok := kept.Find(savedName(api.DoneName))
	switch {
	case o.Checkpoint == 0 && slices.ContainsFunc(given.Files, func(f transfer.File) bool { return isSaved(f.Path) }):
		return "its host gave it no number"
	case o.Checkpoint == 0:
		return ""
	case !ok:
		return "its host did not name " + api.DoneName
	}
	for _, f := range given.Files {
		if _, ok := kept.Find(f.Path); isSaved(f.Path) && !ok {
			return fmt.Sprintf("%q was not taken", job.ClipText(f.Path, 40))
		}
	}
	for _, path := range p.savedPaths() {
		if !slices.ContainsFunc(kept.Files, func(f transfer.File) bool { return declared.Has([]string{path}, f.Path) }) {
			return fmt.Sprintf("its host has no %q", job.ClipText(path, 40))
		}
	}
	if len(done.Chunks) == 0 { // else it is believed
		if n, err := parseDone(done.Inline); err != nil || n != o.Checkpoint {
			return fmt.Sprintf("its host numbered it %d, and %s says otherwise", o.Checkpoint, api.DoneName)
		}
	}
	return ""
}

// Resumed returns what a job runs with what its next attempt goes on from.
func (f *Files) Resumed(id job.ID, raw []byte, from store.Resume) ([]byte, error) {
	if from == (store.Resume{}) {
		return raw, nil
	}
	resume := &kithv1.Resume{Demotions: from.Demotions, Sequence: from.Sequence, UsedNs: int64(from.Used)}
	if from.Attempt != 0 {
		a := from.Files(id)
		encoded, err := f.cfg.Backend.AttemptFiles(a)
		if err != nil {
			return nil, err
		}
		set, err := transfer.Decode(encoded)
		if err != nil {
			return nil, fmt.Errorf("%w: checkpoint of attempt %v: %w", errPayload, a, err)
		}
		set.Files = slices.DeleteFunc(set.Files, func(f transfer.File) bool { return !isSaved(f.Path) })
		if len(set.Files) == 0 { // to start without would lose what the job has done
			return nil, fmt.Errorf("checkpoint of attempt %v: %w", a, fs.ErrNotExist)
		}
		resume.Files = set.Proto()
	}
	var m kithv1.Payload
	if err := proto.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", errPayload, err)
	}
	m.Resume = resume
	return proto.Marshal(&m)
}

// checkpoint is what the system tells the job of its checkpoints, nil if it writes none.
func (p *payload) checkpoint(folder string) *work.Checkpoint {
	if !p.saves() {
		return nil
	}
	r := p.parsed.GetResume()
	return &work.Checkpoint{
		Dir: filepath.Join(folder, filepath.FromSlash(api.CheckpointFolder)), Sequence: r.GetSequence(), Demotions: int(r.GetDemotions()),
		Used: time.Duration(r.GetUsedNs()),
	}
}
