package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"kith/internal/job"
	statev1 "kith/proto/gen/kith/state/v1"
	"kith/store"
)

// HeldKey is the key of what a bundle runs that this site holds.
func HeldKey(id job.AttemptID) []byte { return copyKey(id) }

// heldBatchKey is the key of a batch of a held bundle; those of one bundle begin with its
// [HeldKey].
func heldBatchKey(id job.AttemptID, number uint32) []byte {
	return binary.BigEndian.AppendUint32(copyKey(id), number)
}

func heldWrites(s *store.State, c *store.BagChanges) []Write {
	w := make([]Write, 0, len(c.Held)+len(c.HeldBatches)+len(c.HeldPayloads)+3*len(c.ForgottenHeld))
	for _, id := range c.ForgottenHeld { // before all else: it may be held again since
		w = append(w, Write{Table: HeldBatches, Key: copyKey(id), Prefix: true})
		if s.Held(id) == nil {
			w = append(w, Write{Table: Held, Key: copyKey(id)}, Write{Table: HeldPayloads, Key: copyKey(id)})
		}
	}
	for _, h := range c.Held {
		if s.Held(h.ID) == h {
			w = append(w, Write{Table: Held, Key: copyKey(h.ID), Value: seal(heldMessage(h))})
		}
	}
	for _, b := range c.HeldBatches {
		h := s.Held(b.Bundle)
		if h == nil {
			continue
		}
		write := Write{Table: HeldBatches, Key: heldBatchKey(b.Bundle, b.Number)}
		if batch := h.UnackedBatch(b.Number); batch != nil {
			write.Value = seal(heldBatchMessage(h.ID, batch))
		}
		w = append(w, write)
	}
	for _, p := range c.HeldPayloads {
		if s.Held(p.Bundle) != nil {
			w = append(w, Write{Table: HeldPayloads, Key: copyKey(p.Bundle), Value: sealBytes(p.Data)})
		}
	}
	return w
}

func heldMessage(h *store.HeldBundle) *statev1.HeldBundleRecord {
	return &statev1.HeldBundleRecord{
		Name: attemptName(h.ID), Request: requestMessage(&h.Request), Node: h.Node, BootId: h.BootID, AcceptedNs: int64(h.Accepted),
		Run: h.Run, Tasks: h.Tasks.AppendBinary(nil), Batch: h.Batch,
	}
}

func (r *Reader) held(value []byte) error {
	var m statev1.HeldBundleRecord
	if err := open(value, &m); err != nil {
		return fmt.Errorf("record of a held bundle: %w", err)
	}
	id, err := attemptID(m.GetName())
	errs := []error{err}
	tasks, err := job.DecodeTaskSet(m.GetTasks())
	errs = append(errs, err)
	id.Job.Origin = r.names.site(string(id.Job.Origin))
	h := store.HeldBundle{
		ID: id, Request: r.names.request(m.GetRequest()), Node: r.names.text(m.GetNode()), BootID: r.names.text(m.GetBootId()),
		Accepted: job.Time(m.GetAcceptedNs()), Run: m.GetRun(), Tasks: tasks, Batch: m.GetBatch(),
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("record of a held bundle: %w: %w", err, store.ErrCorrupt)
	}
	return r.state.RestoreHeld(h)
}

func heldBatchMessage(bundle job.AttemptID, b *store.TaskBatch) *statev1.HeldBatchRecord {
	m := &statev1.StoredTaskBatch{Number: b.Number, Returned: b.Returned.AppendBinary(nil)}
	for _, r := range b.Results {
		m.Results = append(m.Results, &statev1.StoredTaskResult{
			Ordinal: r.Ordinal, Kind: uint32(r.Kind), ExitCode: r.ExitCode, Signal: r.Signal,
			StartNs: int64(r.Start), RunNs: int64(r.Run), CpuTimeNs: int64(r.CPUTime), MaxRssBytes: r.MaxRSSBytes, FilesLost: r.FilesLost, ErrorLine: r.ErrorLine,
		})
	}
	for _, f := range b.Files {
		m.Files = append(m.Files, &statev1.StoredTaskFiles{Ordinal: f.Ordinal, Set: f.Set})
	}
	return &statev1.HeldBatchRecord{Name: attemptName(bundle), Batch: m}
}

func (r *Reader) heldBatch(value []byte) error {
	var m statev1.HeldBatchRecord
	if err := open(value, &m); err != nil {
		return fmt.Errorf("batch of a held bundle: %w", err)
	}
	id, err := attemptID(m.GetName())
	errs := []error{err}
	stored := m.GetBatch()
	returned, err := job.DecodeTaskSet(stored.GetReturned())
	errs = append(errs, err)
	batch := store.TaskBatch{Number: stored.GetNumber(), Returned: returned}
	for _, t := range stored.GetResults() {
		result := job.TaskResult{
			Ordinal: t.GetOrdinal(), Kind: job.OutcomeKind(min(t.GetKind(), math.MaxUint8)), ExitCode: t.GetExitCode(), Signal: t.GetSignal(),
			Start: job.Time(t.GetStartNs()), Run: time.Duration(t.GetRunNs()), CPUTime: time.Duration(t.GetCpuTimeNs()), MaxRSSBytes: t.GetMaxRssBytes(), FilesLost: t.GetFilesLost(), ErrorLine: t.GetErrorLine(),
		}
		errs = append(errs, result.Validate())
		batch.Results = append(batch.Results, result)
	}
	for _, f := range stored.GetFiles() {
		batch.Files = append(batch.Files, store.TaskFiles{Ordinal: f.GetOrdinal(), Set: f.GetSet()})
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("batch of a held bundle: %w: %w", err, store.ErrCorrupt)
	}
	return r.state.RestoreHeldBatch(id, batch)
}
