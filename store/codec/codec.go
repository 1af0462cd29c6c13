package codec

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/internal/identity"
	"kith/internal/job"
	statev1 "kith/proto/gen/kith/state/v1"
	"kith/store"
)

// Format is the version of the layout. A file of a later one is refused, one of an
// earlier one is read as it is.
const Format = 5

// Versions of files without some tables. A file becomes one of a later version with the
// first record in its tables: an earlier version of Kith would not know whom to trust,
// what tasks it holds, what waits for what, or what a job goes on from.
const (
	PlainFormat = 1 // only [Tables]
	TrustFormat = 2 // and [TrustTables]
	BagFormat   = 3 // and [BagTables]
	AfterFormat = 4 // and [AfterTables]
)

// Table names one kind of record; a back end keeps each kind apart.
type Table string

// The tables.
const (
	Sites     Table = "site"
	Jobs      Table = "jobs"
	Payloads  Table = "payloads"
	Decisions Table = "decisions"
	Outputs   Table = "outputs"
	Copies    Table = "copies"

	Trusted     Table = "trust"
	Invitations Table = "invitations"
	Tokens      Table = "tokens"

	Bags         Table = "bags"
	BagPages     Table = "pages"
	TaskBundles  Table = "bundles"
	Results      Table = "results"
	TaskFiles    Table = "taskfiles"
	Held         Table = "held"
	HeldBatches  Table = "heldbatches"
	HeldPayloads Table = "heldpayloads"

	After Table = "after"

	AttemptFiles Table = "attemptfiles"

	Past Table = "past"

	Calibration Table = "calibration"
)

// Tables lists those that every file has.
func Tables() []Table { return []Table{Sites, Jobs, Payloads, Decisions, Outputs, Copies} }

// TrustTables lists those that a file has from [TrustFormat] on.
func TrustTables() []Table { return []Table{Trusted, Invitations, Tokens} }

// BagTables lists those that a file has from [BagFormat] on.
func BagTables() []Table {
	return []Table{Bags, BagPages, TaskBundles, Results, TaskFiles, Held, HeldBatches, HeldPayloads}
}

// AfterTables lists those that a file has from [AfterFormat] on.
func AfterTables() []Table { return []Table{After} }

// CheckpointTables lists those that a file has from [Format] on.
func CheckpointTables() []Table { return []Table{AttemptFiles} }

// ReportTables lists those that no decision hangs on. A file of any format gets one with the
// first record in it, and an earlier version leaves it alone.
func ReportTables() []Table { return []Table{Past, Calibration} }

// AllTables lists all tables.
func AllTables() []Table { return slices.Concat(TablesOf(Format), ReportTables()) }

// TablesOf lists the tables that a file of a format has.
func TablesOf(format byte) []Table {
	switch {
	case format >= Format:
		return slices.Concat(Tables(), TrustTables(), BagTables(), AfterTables(), CheckpointTables())
	case format >= AfterFormat:
		return slices.Concat(Tables(), TrustTables(), BagTables(), AfterTables())
	case format >= BagFormat:
		return slices.Concat(Tables(), TrustTables(), BagTables())
	case format >= TrustFormat:
		return slices.Concat(Tables(), TrustTables())
	}
	return Tables()
}

// FormatOf returns the format that a file must have for a table to be in it.
func FormatOf(t Table) byte {
	switch {
	case slices.Contains(CheckpointTables(), t):
		return Format
	case slices.Contains(AfterTables(), t):
		return AfterFormat
	case slices.Contains(BagTables(), t):
		return BagFormat
	case slices.Contains(TrustTables(), t):
		return TrustFormat
	}
	return PlainFormat
}

// Write is one change to a table. A nil Value deletes the key.
type Write struct {
	Table Table
	Key   []byte
	Value []byte
	// Merge: Value is a part, which [MergeResults] puts into what the key has.
	Merge bool
	// Prefix: all keys that begin with Key are deleted.
	Prefix bool
}

// Writes encodes what has changed in s since the last call, in an order in
// which it can be written.
func Writes(s *store.State) []Write {
	c := s.TakeChanges()
	w := make([]Write, 0, len(c.Jobs)+len(c.Copies)+len(c.Payloads)+len(c.Decision)+4*len(c.ForgottenJobs)+len(c.ForgottenCopies)+1)
	if c.Site {
		w = append(w, Write{Table: Sites, Key: siteKey, Value: seal(siteMessage(s.Site()))})
	}
	side := func(t Table, records []store.SideRecord) {
		for _, r := range records {
			if s.Job(r.Job) != nil || s.Bag(r.Job) != nil {
				w = append(w, Write{Table: t, Key: JobKey(r.Job), Value: sealBytes(r.Data)})
			}
		}
	}
	side(Payloads, c.Payloads)
	side(Outputs, c.Outputs)
	for _, f := range c.AttemptFiles {
		if s.Job(f.Attempt.Job) != nil {
			w = append(w, Write{Table: AttemptFiles, Key: AttemptKey(f.Attempt), Value: sealBytes(f.Data)})
		}
	}
	for _, d := range c.Decision {
		if s.Job(d.Job) != nil {
			w = append(w, Write{Table: Decisions, Key: JobKey(d.Job), Value: seal(decisionMessage(d.Decision))})
		}
	}
	r := records.Get().(*record) //nolint:forcetypeassert // it holds nothing else
	for _, j := range c.Jobs {
		if s.Job(j.ID) == j {
			w = append(w, Write{Table: Jobs, Key: JobKey(j.ID), Value: seal(r.ofJob(j, s.Harm(j.ID)))})
		}
	}
	for _, cp := range c.Copies {
		if s.Copy(cp.ID) == cp {
			w = append(w, Write{Table: Copies, Key: copyKey(cp.ID), Value: seal(r.ofCopy(cp))})
		}
	}
	records.Put(r)
	for _, id := range c.ForgottenJobs {
		for _, t := range []Table{Jobs, Payloads, Decisions, Outputs} {
			w = append(w, Write{Table: t, Key: JobKey(id), Value: nil})
		}
		w = append(w, Write{Table: AttemptFiles, Key: JobKey(id), Prefix: true})
	}
	for _, id := range c.ForgottenCopies {
		if s.Copy(id) == nil {
			w = append(w, Write{Table: Copies, Key: copyKey(id), Value: nil})
		}
	}
	w = append(append(append(w, trustWrites(s, &c)...), bagWrites(s, &c.BagChanges)...), pastWrites(&c.PastChanges)...)
	if c.Calibration {
		w = append(w, Write{Table: Calibration, Key: siteKey, Value: seal(&statev1.CalibrationRecord{Book: s.Calibration()})})
	}
	return append(w, afterWrites(s, c.After)...)
}

var siteKey = []byte("site")

// JobKey is the key of a job submitted at the site whose file it is; keys
// order as ids do.
func JobKey(id job.ID) []byte {
	k := make([]byte, 12)
	binary.BigEndian.PutUint32(k, id.Generation)
	binary.BigEndian.PutUint64(k[4:], id.Seq)
	return k
}

// copyKey orders as attempts do: site names hold no byte below '-'.
func copyKey(a job.AttemptID) []byte {
	k := make([]byte, 0, len(a.Job.Origin)+1+16)
	k = append(k, a.Job.Origin...)
	k = append(k, 0)
	k = binary.BigEndian.AppendUint32(k, a.Job.Generation)
	k = binary.BigEndian.AppendUint64(k, a.Job.Seq)
	return binary.BigEndian.AppendUint32(k, a.Number)
}

// Reader builds a state from what a back end has kept: [Reader.Site] first,
// then jobs in the order of their keys and all others in any, then [Reader.State].
type Reader struct {
	state *store.State
	names names
}

// Site reads the site record and begins the state. want is the site that the
// file should belong to; empty for any.
func (r *Reader) Site(value []byte, want job.SiteID) error {
	var m statev1.SiteRecord
	if err := open(value, &m); err != nil {
		return fmt.Errorf("site record: %w", err)
	}
	id, err := job.ParseSiteID(m.GetSiteId())
	if err != nil {
		return fmt.Errorf("site record: %w: %w", err, store.ErrCorrupt)
	}
	if want != "" && id != want {
		return fmt.Errorf("it is the data of site %q, not of %q: %w", id, want, store.ErrOtherSite)
	}
	var folder store.Folder
	if n := copy(folder[:], m.GetFolder()); n != len(m.GetFolder()) || n != 0 && n != len(folder) {
		return fmt.Errorf("site record: folder of %d bytes: %w", len(m.GetFolder()), store.ErrCorrupt)
	}
	r.state = store.NewState(id, m.GetGeneration())
	r.state.RestoreSite(store.Site{
		ID: id, Generation: m.GetGeneration(), NextSeq: m.GetNextSeq(), Draining: m.GetDraining(), DrainReason: m.GetDrainReason(),
		DrainActor: identity.Actor(m.GetDrainActor()), DrainChanged: job.Time(m.GetDrainChangedNs()), Latest: job.Time(m.GetLatestNs()),
		Incarnation: m.GetIncarnation(), Steps: m.GetSteps(), Folder: folder, BundleSequence: m.GetBundleSequence(), Runs: m.GetRuns(),
	})
	return nil
}

// Job reads one job.
func (r *Reader) Job(value []byte) error {
	var m statev1.JobRecord
	if err := open(value, &m); err != nil {
		return fmt.Errorf("job record: %w", err)
	}
	j, err := r.names.job(&m)
	if err != nil {
		return fmt.Errorf("job record: %w: %w", err, store.ErrCorrupt)
	}
	r.state.RestoreHarm(j.ID, store.Harm{Blocked: time.Duration(max(m.GetBlockedNs(), 0)), Moved: m.GetPromisesMoved()})
	return r.state.RestoreJob(j)
}

// Copy reads one copy.
func (r *Reader) Copy(value []byte) error {
	var m statev1.CopyRecord
	if err := open(value, &m); err != nil {
		return fmt.Errorf("copy record: %w", err)
	}
	c, err := r.names.copy(&m)
	if err != nil {
		return fmt.Errorf("copy record: %w: %w", err, store.ErrCorrupt)
	}
	return r.state.RestoreCopy(c)
}

// Calibration reads how forecasts did.
func (r *Reader) Calibration(value []byte) error {
	var m statev1.CalibrationRecord
	if err := open(value, &m); err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	r.state.RestoreCalibration(m.GetBook())
	return nil
}

// State checks and returns the state.
func (r *Reader) State() (*store.State, error) {
	if err := r.state.Check(); err != nil {
		return nil, err
	}
	return r.state, nil
}

// Verify checks that value is as it was written. The error wraps [store.ErrCorrupt].
func Verify(value []byte) error {
	_, err := openBytes(value)
	return err
}

// SideRecord checks and returns a stored payload or output. The result is a new slice.
func SideRecord(value []byte) ([]byte, error) {
	data, err := openBytes(value)
	if err != nil {
		return nil, err
	}
	return append([]byte(nil), data...), nil
}

// Decision checks and returns a stored decision.
func Decision(value []byte) (*store.Decision, error) {
	var m statev1.DecisionRecord
	if err := open(value, &m); err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	return decision(&m), nil
}

// checksum is the CRC-32C of data. Its table is made with the first use, not
// before main: many programs link this package and use none of it.
func checksum(data []byte) uint32 {
	return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
}

// seal returns the checksum of m's bytes and the bytes.
func seal(m proto.Message) []byte {
	b := make([]byte, 4, 4+proto.Size(m))
	b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, m)
	if err != nil {
		// Only a text that is not UTF-8 can bring this about, and what
		// comes from outside is checked where it comes in.
		panic(fmt.Sprintf("codec: %T cannot be written: %v", m, err))
	}
	binary.BigEndian.PutUint32(b, checksum(b[4:]))
	return b
}

func sealBytes(data []byte) []byte {
	b := make([]byte, 4, 4+len(data))
	b = append(b, data...)
	binary.BigEndian.PutUint32(b, checksum(data))
	return b
}

func open(value []byte, m proto.Message) error {
	data, err := openBytes(value)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(data, m); err != nil {
		return fmt.Errorf("%w: %w", err, store.ErrCorrupt)
	}
	return nil
}

func openBytes(value []byte) ([]byte, error) {
	if len(value) < 4 || binary.BigEndian.Uint32(value) != checksum(value[4:]) {
		return nil, fmt.Errorf("checksum does not match: %w", store.ErrCorrupt)
	}
	return value[4:], nil
}

// Dump returns all of s in one piece: equal states give equal bytes. For
// tests and the simulator.
func Dump(s *store.State) []byte {
	var b []byte
	add := func(record []byte) { b = append(binary.AppendUvarint(b, uint64(len(record))), record...) }
	add(seal(siteMessage(s.Site())))
	for j := range s.Jobs(job.ID{}) {
		add(seal(new(record).ofJob(j, s.Harm(j.ID))))
	}
	copies := slices.SortedFunc(s.Copies(), func(a, b *store.Copy) int { return a.ID.Compare(b.ID) })
	for _, c := range copies {
		add(seal(new(record).ofCopy(c)))
	}
	for b := range s.Bags {
		add(seal(bagMessage(b)))
		for page := uint32(0); page*store.PageTasks < b.Next; page++ {
			if m := pageMessage(b, page); !emptyPage(m) {
				add(seal(m))
			}
		}
		for t := range b.Bundles {
			add(seal(taskBundleMessage(b.ID, t)))
		}
	}
	for _, h := range s.HeldBundles() {
		add(seal(heldMessage(h)))
		for i := range h.Unacked {
			add(seal(heldBatchMessage(h.ID, &h.Unacked[i])))
		}
	}
	for id, after := range s.Dependants {
		add(seal(afterMessage(id, after)))
	}
	for _, t := range s.TrustedSites() {
		add(seal(trustMessage(t)))
	}
	for _, i := range s.Invitations() {
		add(seal(invitationMessage(i)))
	}
	for _, t := range s.Tokens() {
		add(seal(tokenMessage(t)))
	}
	return b
}
