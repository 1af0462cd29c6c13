package gossip

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"kith/cluster"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// Bounds of what counts as news.
const (
	// mostSkew is how far the time of a digest may be from this site's clock. It
	// bounds for how long one that this site has forgotten can be repeated to it.
	mostSkew = time.Hour
	// forgotten is how long the latest digest of a site is remembered, so that an
	// earlier one is not taken. It must exceed twice mostSkew.
	forgotten = 3 * time.Hour
	// mostKeys of a site are kept: a certificate is renewed at half its life.
	mostKeys = 4
	// A site's digests count atOnce one after the other, then one every newsPause.
	atOnce    = 8
	newsPause = 250 * time.Millisecond
	// maxState bounds what is sent of the digests and keys in one exchange, in bytes.
	maxState = 512 << 10
)

// Reasons to leave out a note that is no sign of malice.
var (
	errOld        = errors.New("not news")
	errUnknownKey = errors.New("its key has not come yet")
	errOften      = errors.New("more often than four times a second")
	errStranger   = errors.New("of a site that is not trusted here") // who passes it on may trust it
)

// Reasons to refuse one, each wrapped beside errDigest.
var (
	errUnproven = errors.New("not proved")
	errClock    = errors.New("not of this time")
	errOther    = errors.New("of another site")
	errHead     = errors.New("audit head not proved")
)

// digests is the latest digest of each site that is trusted, and the keys.
type digests struct {
	self    job.SiteID
	trusted func(job.SiteID) bool
	verify  Verifier
	now     func() time.Time

	mu    sync.Mutex
	of    map[job.SiteID]*known
	first job.SiteID // where the next state begins
}

// known is what was heard of a site.
type known struct {
	has    bool // a digest
	digest cluster.Digest
	note   []byte // the digest as it is passed on
	keys   []key  // the latest last
	// early is the latest note whose key had not come.
	early []byte
	at    time.Time
	// skewed says that the last digest that was proved was refused for its time.
	skewed bool
	// spare is how many digests count now, at the time at.
	spare   float64
	counted time.Time
}

func newDigests(self job.SiteID, trusted func(job.SiteID) bool, verify Verifier) *digests {
	return &digests{self: self, trusted: trusted, verify: verify, now: time.Now, of: make(map[job.SiteID]*known)}
}

// take decides about an encoded note. It returns the site that it is news of, and its
// digest if it is one; else an error that says why it is none.
func (t *digests) take(b []byte) (site job.SiteID, d *cluster.Digest, err error) {
	if len(b) > maxChainBytes+maxNote {
		return "", nil, refusedNote("note", fmt.Sprint(len(b), " bytes"), fmt.Sprint("at most ", maxChainBytes+maxNote))
	}
	var m kithv1.GossipNote
	if err := proto.Unmarshal(b, &m); err != nil {
		return "", nil, refusedNote("note", "not one", "a GossipNote")
	}
	return t.takeNote(&m, b)
}

func (t *digests) takeNote(m *kithv1.GossipNote, b []byte) (job.SiteID, *cluster.Digest, error) {
	switch n := m.GetNote().(type) {
	case *kithv1.GossipNote_Key:
		site, err := t.takeKey(n.Key)
		return site, nil, err
	case *kithv1.GossipNote_Digest:
		u, err := unseal(n.Digest)
		if err != nil {
			return "", nil, err
		}
		return u.digest.Site, &u.digest, t.takeDigest(&u, b)
	}
	return "", nil, refusedNote("note", "of no known kind", "a digest or a key")
}

// known returns what is known of a site that is trusted, making room for it. The mutex
// is held.
func (t *digests) known(site job.SiteID) (*known, error) {
	if site == t.self {
		return nil, errOld // this site knows itself
	}
	if !t.trusted(site) {
		return nil, errStranger
	}
	k := t.of[site]
	if k == nil {
		if len(t.of) >= cluster.MaxSites {
			return nil, refusedNote("site_id", site, fmt.Sprint("one of ", cluster.MaxSites, " sites"))
		}
		k = &known{spare: atOnce}
		t.of[site] = k
	}
	return k, nil
}

func (t *digests) takeKey(m *kithv1.SigningKey) (job.SiteID, error) {
	site, fresh, err := readKey(m)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	k, err := t.known(site)
	if err == nil && findKey(k.keys, fresh.id) != nil {
		err = errOld
	}
	t.mu.Unlock()
	if err != nil {
		return site, err
	}
	if err := t.verify.CheckKey(site, fresh.chain); err != nil {
		return site, fmt.Errorf("%w: key of %s: %w: %w", errDigest, site, errUnproven, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if findKey(k.keys, fresh.id) != nil {
		return site, errOld
	}
	k.keys = append(k.keys, fresh)
	if len(k.keys) > mostKeys {
		k.keys = slices.Delete(k.keys, 0, 1)
	}
	return site, nil
}

// early returns the note that came ahead of its key, once.
func (t *digests) early(site job.SiteID) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.of[site]
	if k == nil {
		return nil
	}
	b := k.early
	k.early = nil
	return b
}

// takeDigest records a digest if it is the latest of its site.
func (t *digests) takeDigest(u *unsealed, b []byte) error {
	site, now := u.digest.Site, t.now()
	t.mu.Lock()
	k, err := t.known(site)
	var chain [][]byte
	if err == nil {
		if chain, err = k.judge(u, now); errors.Is(err, errUnknownKey) {
			k.early = slices.Clone(b)
		}
	}
	t.mu.Unlock()
	skewed := errors.Is(err, errClock)
	if err != nil && !skewed {
		return err
	}
	if err := t.verify.Verify(site, chain, signedText(u.signed.GetDigest()), u.signed.GetSignature()); err != nil {
		return fmt.Errorf("%w: digest of %s: %w: %w", errDigest, site, errUnproven, err)
	}
	if skewed {
		t.mu.Lock()
		k.skewed = true
		t.mu.Unlock()
		return err
	}
	if err := t.checkHead(k, u, chain); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.has && !u.digest.Newer(&k.digest) { // another lane brought it meanwhile
		return errOld
	}
	k.spare--
	k.skewed = false
	k.has, k.digest, k.at, k.note = true, u.digest, now, slices.Clone(b)
	return nil
}

// checkHead checks the head of an audit log that a digest has: the key of the digest has
// signed it, and not later than the digest.
func (t *digests) checkHead(k *known, u *unsealed, chain [][]byte) error {
	h := u.digest.Head
	if h == nil {
		return nil
	}
	h.Chain = chain
	t.mu.Lock()
	old := k.digest.Head // the one that was checked last
	t.mu.Unlock()
	if old != nil && reflect.DeepEqual(old, h) {
		return nil
	}
	err := t.verify.VerifyHead(u.digest.Site, h)
	if late := lateHead(&u.digest); err == nil && late > mostSkew {
		err = fmt.Errorf("signed %v after the digest", late)
	}
	if err != nil {
		return fmt.Errorf("%w: digest of %s: %w: %w", errDigest, u.digest.Site, errHead, err)
	}
	return nil
}

// lateHead returns by how much the head of a digest is later than the digest.
func lateHead(d *cluster.Digest) time.Duration {
	if d.Head == nil {
		return 0
	}
	return d.Head.Time.Sub(d.Time)
}

// judge checks what needs no key, and returns the chain of the key, beside errClock, too.
// The mutex is held.
func (k *known) judge(u *unsealed, now time.Time) (chain [][]byte, err error) {
	d := &u.digest
	if k.has && now.Sub(k.at) < forgotten && !d.Newer(&k.digest) {
		return nil, errOld
	}
	if len(u.signed.GetKeyId()) > 0 {
		signer := findKey(k.keys, u.signed.GetKeyId())
		if signer == nil {
			return nil, errUnknownKey
		}
		chain = signer.chain
	}
	if skew := time.Duration(d.Time - job.Instant(now)); skew < -mostSkew || skew > mostSkew {
		return chain, fmt.Errorf("%w: %w", refusedNote("time_ns", fmt.Sprint(skew.Round(time.Second), " from this site's clock"), fmt.Sprint("within ", mostSkew, "; set the clocks")), errClock)
	}
	k.spare = min(atOnce, k.spare+float64(now.Sub(k.counted))/float64(newsPause))
	if k.counted = now; k.spare < 1 {
		return nil, errOften
	}
	return chain, nil
}

// state returns what this site knows, encoded: all that fits, beginning with another
// site each time.
func (t *digests) state() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	sites := slices.Sorted(maps.Keys(t.of))
	start, _ := slices.BinarySearch(sites, t.first)
	var s kithv1.GossipState
	size := 0
	for i := range sites {
		site := sites[(start+i)%len(sites)]
		k := t.of[site]
		if !k.has || !t.trusted(site) || t.now().Sub(k.at) > mostSkew {
			continue
		}
		notes, n := k.notes(site)
		if size += n; size > maxState {
			t.first = site
			break
		}
		s.Notes = append(s.Notes, notes...)
	}
	b, err := proto.Marshal(&s)
	if err != nil {
		return nil
	}
	return b
}

// notes returns the digest of a site behind its key, and how long both are.
func (k *known) notes(site job.SiteID) (notes []*kithv1.GossipNote, size int) {
	var m kithv1.GossipNote
	if proto.Unmarshal(k.note, &m) != nil {
		return nil, 0
	}
	if signer := findKey(k.keys, m.GetDigest().GetKeyId()); signer != nil {
		notes = append(notes, signer.note(site))
	}
	notes = append(notes, &m)
	for _, n := range notes {
		size += proto.Size(n) + 4
	}
	return notes, size
}

// drop forgets sites that are not trusted any more, and digests that are too old to
// matter.
func (t *digests) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.of, func(site job.SiteID, k *known) bool { return !t.trusted(site) })
	for _, k := range t.of {
		if k.has && t.now().Sub(k.at) > forgotten {
			k.has, k.note = false, nil
		}
	}
}

// isSkewed reports whether the last digest of a site that was proved had a time that is
// too far off.
func (t *digests) isSkewed(site job.SiteID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.of[site]
	return k != nil && k.skewed
}

// latest reports whether d is still the latest digest of its site.
func (t *digests) latest(d *cluster.Digest) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.of[d.Site]
	return k != nil && k.has && !k.digest.Newer(d)
}
