package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/job"
	"kith/meta/transfer"
	"kith/store/blobstore"
)

// filesModel is the files of a site under random uploads, submissions, staging, outputs
// collected and brought home, sweeps and restarts, in virtual steps: whatever is under way
// lets other steps happen between two of its pieces. It knows who needs which chunk: what
// is under way, waits for its job, or is on record.
type filesModel struct {
	t     *testing.T
	rng   *rand.Rand
	dir   string
	quota int64
	now   time.Time
	ticks atomic.Int64 // no two looks at the clock are alike
	files *Files
	depth int

	records [][]blobstore.Sum       // of jobs and outcomes
	under   map[int][]blobstore.Sum // what is there of transfers under way, by number
	coming  map[int][]blobstore.Sum // what may be there of them
	waiting []waitingUpload
	next    int

	refused, restarts, done int
}

// waitingUpload is an upload that no job has named yet.
type waitingUpload struct {
	id   transfer.UploadID
	sums []blobstore.Sum
	end  time.Time
}

func (m *filesModel) open() {
	m.t.Helper()
	files, err := OpenFiles(FilesConfig{
		Site: "alpha", Dir: m.dir, QuotaBytes: m.quota, MaxFileBytes: 1 << 20, Log: slog.New(slog.DiscardHandler),
		now: func() time.Time { return m.now.Add(time.Duration(m.ticks.Add(1))) }, live: m.live,
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.files = files
}

// live yields what records name.
func (m *filesModel) live(yield func(blobstore.Sum, error) bool) {
	for _, r := range m.records {
		for _, sum := range r {
			if !yield(sum, nil) {
				return
			}
		}
	}
}

// needed says what needs a chunk, "" if nothing does.
func (m *filesModel) needed(sum blobstore.Sum) string {
	for n, sums := range m.under {
		if slices.Contains(sums, sum) {
			return fmt.Sprintf("transfer %d under way", n)
		}
	}
	for _, w := range m.waiting {
		if !w.end.Before(m.now) && slices.Contains(w.sums, sum) {
			return "an upload that waits for its job"
		}
	}
	for i, r := range m.records {
		if slices.Contains(r, sum) {
			return fmt.Sprintf("record %d", i)
		}
	}
	return ""
}

// check looks whether all that is needed, and has come, is there.
func (m *filesModel) check() {
	m.t.Helper()
	for n, sums := range m.under {
		for _, sum := range sums {
			if !m.files.blobs.Has(sum) {
				m.t.Fatalf("chunk %s of transfer %d, which is under way, is gone", sum.Short(), n)
			}
		}
	}
	for _, w := range m.waiting {
		// The time of a file may lag a minute behind, which a restart finds.
		if !w.end.After(m.now) || m.restarts > 0 && !w.end.After(m.now.Add(time.Minute)) {
			continue
		}
		for _, sum := range w.sums {
			if !m.files.blobs.Has(sum) {
				m.t.Fatalf("chunk %s of upload %.20v that waits for its job for %v yet is gone", sum.Short(), w.id, w.end.Sub(m.now))
			}
		}
	}
	for _, r := range m.records {
		for _, sum := range r {
			if !m.files.blobs.Has(sum) {
				m.t.Fatalf("chunk %s, which is on record, is gone", sum.Short())
			}
		}
	}
}

// failed looks whether a transfer may have been refused.
func (m *filesModel) failed(what string, err error) {
	m.t.Helper()
	if !errors.Is(err, blobstore.ErrQuota) {
		m.t.Fatalf("%s: %v", what, err)
	}
	m.refused++
	garbage := int64(0)
	for sum, info := range m.files.blobs.All() {
		coming := false
		for _, sums := range m.coming {
			coming = coming || slices.Contains(sums, sum)
		}
		if !coming && m.needed(sum) == "" {
			garbage += info.Size
		}
	}
	if garbage > 0 {
		m.t.Fatalf("%s is refused, and %d of the bytes that are there are not needed: %v", what, garbage, err)
	}
}

// content is one of few, so that chunks are shared.
func (m *filesModel) content() []byte {
	n := m.rng.IntN(30)
	return bytes.Repeat(fmt.Appendf(nil, "content %2d\n", n), 300+m.rng.IntN(3)*300)
}

// between lets other things happen in the middle of a transfer.
func (m *filesModel) between() {
	if m.depth >= 2 {
		return
	}
	for range m.rng.IntN(3) {
		m.step()
	}
}

// begin notes a transfer under way, which brings sums until it ends.
func (m *filesModel) begin(sums ...blobstore.Sum) (n int, end func()) {
	m.next++
	n = m.next
	m.coming[n] = sums
	return n, func() {
		delete(m.under, n)
		delete(m.coming, n)
	}
}

// piecewise is content that comes in pieces.
type piecewise struct {
	m    *filesModel
	rest []byte
}

func (p *piecewise) Read(b []byte) (int, error) {
	p.m.between()
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 4000)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// ReadChunk implements transfer.Source: the other site has everything.
type elsewhere struct {
	m    *filesModel
	n    int
	data map[blobstore.Sum][]byte
}

func (e elsewhere) ReadChunk(_ context.Context, _ job.AttemptID, sum blobstore.Sum, offset int64, limit int) ([]byte, error) {
	e.m.between()
	data := e.data[sum][offset:]
	return data[:min(len(data), limit)], nil
}

// set makes a set of up to three contents.
func (m *filesModel) set() (transfer.Set, map[blobstore.Sum][]byte) {
	var set transfer.Set
	data := map[blobstore.Sum][]byte{}
	for i := range 1 + m.rng.IntN(3) {
		c := m.content()
		sum := blobstore.SumOf(c)
		data[sum] = c
		set.Files = append(set.Files, transfer.File{Path: fmt.Sprint("f", i), Size: int64(len(c)), Chunks: []blobstore.Sum{sum}})
	}
	return set, data
}

func (m *filesModel) upload() {
	content := m.content()
	_, end := m.begin(blobstore.SumOf(content))
	defer end()
	id, err := m.files.Upload(m.t.Context(), &piecewise{m, content})
	if err != nil {
		m.failed("an upload", err)
		return
	}
	sums := []blobstore.Sum{blobstore.SumOf(content), id.Manifest} // content is one chunk
	if missing := m.files.blobs.Missing(sums); len(missing) > 0 {
		m.t.Fatalf("of an upload %v are not there", missing)
	}
	m.waiting = append(m.waiting, waitingUpload{id, sums, m.now.Add(transfer.HeldFor)})
}

// submit packs what waits and some data, and records it or not.
func (m *filesModel) submit() {
	inputs := []transfer.Input{{Path: "data", Data: m.content()}}
	var used *transfer.UploadID
	if len(m.waiting) > 0 && m.rng.IntN(2) == 0 {
		if w := m.waiting[m.rng.IntN(len(m.waiting))]; w.end.After(m.now) {
			used = &w.id
			inputs = append(inputs, transfer.Input{Path: "up", UploadID: w.id.String()})
		}
	}
	n, end := m.begin(blobstore.SumOf(inputs[0].Data))
	defer end()
	set, answered, err := m.files.pack(m.t.Context(), inputs)
	if err != nil {
		m.failed("a submission", err)
		return
	}
	m.under[n] = set.Sums()
	m.between()
	if m.rng.IntN(4) > 0 {
		m.records = append(m.records, set.Sums())
	}
	delete(m.under, n) // it is held yet
	answered()
	if used != nil {
		i := slices.IndexFunc(m.waiting, func(w waitingUpload) bool { return w.id == *used })
		if i >= 0 {
			m.waiting = slices.Delete(m.waiting, i, i+1)
		}
	}
	m.now = m.now.Add(recordedWithin + time.Second)
}

// stage brings the inputs of an attempt, unpacks them, and lets them go.
func (m *filesModel) stage() {
	set, data := m.set()
	hold := m.files.blobs.Hold(set.Sums()...)
	defer hold.Close()
	n, end := m.begin(set.Sums()...)
	defer end()
	f := transfer.NewFetcher(m.files.blobs, transfer.FetchConfig{Requests: 1})
	life := m.restarts
	if err := f.Fetch(m.t.Context(), job.AttemptID{Number: 1}, set, elsewhere{m, n, data}, nil); err != nil {
		if m.restarts == life {
			m.failed("staging", err)
		}
		return
	}
	if m.restarts != life {
		return
	}
	m.under[n] = set.Sums()
	m.between()
	if m.restarts != life {
		return
	}
	dir := filepath.Join(m.t.TempDir(), "work")
	if err := os.Mkdir(dir, 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := (&transfer.Unpacker{Store: m.files.blobs}).Unpack(m.t.Context(), set, dir); err != nil {
		m.t.Fatalf("staging: %v", err)
	}
	m.done++
}

// collect takes an output, records it, and lets it go when it is at its origin.
func (m *filesModel) collect() {
	out := filepath.Join(m.t.TempDir(), "out")
	content := m.content()
	n, end := m.begin(blobstore.SumOf(content))
	defer end()
	if err := os.WriteFile(out, content, 0o600); err != nil {
		m.t.Fatal(err)
	}
	c, err := (&transfer.Collector{Store: m.files.blobs}).Collect(m.t.Context(), transfer.Leaving{Stdout: out})
	if err != nil {
		m.failed("an output", err)
		return
	}
	life := m.restarts
	m.under[n] = c.Set.Sums()
	m.between()
	if m.restarts == life {
		sums := c.Set.Sums()
		m.records = append(m.records, sums)
		delete(m.under, n)
		c.Hold.Close()
		m.between()
		if i := slices.IndexFunc(m.records, func(r []blobstore.Sum) bool { return len(r) > 0 && &r[0] == &sums[0] }); i >= 0 {
			m.records = slices.Delete(m.records, i, i+1)
		}
		m.files.changed()
		m.files.drop(c.Set)
		m.done++
	}
}

// restart is a crash and a start: what was under way is over, and each upload waits once.
func (m *filesModel) restart() {
	for sum, info := range m.files.blobs.All() { // the files' own times are the kernel's
		at, name := m.now.Add(-info.Age), sum.String()
		path := filepath.Join(m.dir, "blobs", "chunks", name[:2], name)
		file, err := os.Stat(path)
		if err == nil && time.Since(file.ModTime()) > -time.Minute { // it is not by the model's clock
			err = os.Chtimes(path, at, at)
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
	if err := m.files.Close(); err != nil {
		m.t.Fatal(err)
	}
	m.restarts++
	m.under, m.coming = make(map[int][]blobstore.Sum), make(map[int][]blobstore.Sum)
	seen := make(map[transfer.UploadID]bool)
	slices.SortFunc(m.waiting, func(a, b waitingUpload) int { return b.end.Compare(a.end) })
	m.waiting = slices.DeleteFunc(m.waiting, func(w waitingUpload) bool {
		again := seen[w.id] || w.end.Before(m.now)
		seen[w.id] = true
		return again
	})
	m.now = m.now.Add(time.Second)
	m.open()
}

// step is something that happens.
func (m *filesModel) step() {
	m.depth++
	defer func() { m.depth-- }()
	m.now = m.now.Add(time.Duration(m.rng.IntN(60)) * time.Second)
	switch m.rng.IntN(12) {
	case 0, 1:
		m.upload()
	case 2, 3:
		m.submit()
	case 4, 5:
		m.stage()
	case 6, 7:
		m.collect()
	case 8: // jobs end and are purged
		if len(m.records) > 0 {
			i := m.rng.IntN(len(m.records))
			m.records = slices.Delete(m.records, i, i+1)
			m.files.changed()
		}
	case 9:
		m.files.sweep(m.t.Context())
	case 10:
		if dropped := m.files.garbage.takeDropped(); dropped != nil {
			if _, err := m.files.blobs.SweepOnly(m.t.Context(), m.live, dropped); err != nil {
				m.t.Fatal(err)
			}
		}
	case 11:
		if m.depth == 1 && m.rng.IntN(3) == 0 { // a crash: what is under way is over
			m.restart()
		} else {
			m.now = m.now.Add(time.Duration(m.rng.IntN(5)) * 30 * time.Minute)
		}
	}
	m.check()
}

// No chunk of a transfer under way is removed, however long it takes and whatever
// happens meanwhile; what is on record or waits for its job stays, over restarts too; and
// nothing is refused for what is not needed.
func TestFilesModel(t *testing.T) {
	t.Parallel()
	refused, restarts, done := 0, 0, 0
	seeds := 40
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		m := &filesModel{
			t: t, rng: rand.New(rand.NewPCG(uint64(seed), 31)), dir: t.TempDir(), quota: 20 * 12 << 10,
			now: time.Now().Add(24 * time.Hour), under: make(map[int][]blobstore.Sum), coming: make(map[int][]blobstore.Sum),
		}
		m.open()
		for range 60 {
			m.step()
		}
		if err := m.files.Close(); err != nil {
			t.Fatal(err)
		}
		refused, restarts, done = refused+m.refused, restarts+m.restarts, done+m.done
	}
	t.Logf("%d transfers, %d refused, %d restarts", done, refused, restarts)
	if refused == 0 || restarts == 0 || done == 0 {
		t.Error("the model shows little")
	}
}
