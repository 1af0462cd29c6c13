package runner

import (
	"encoding/binary"
	"testing"
	"time"

	"kith/meta/transfer"
	"kith/store/blobstore"
)

func emptyStore(t testing.TB) *blobstore.Store {
	t.Helper()
	s, err := blobstore.Open(blobstore.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func manifest(n int) (sum blobstore.Sum) {
	binary.BigEndian.PutUint64(sum[:], uint64(n))
	return sum
}

// However many uploads wait for their jobs, another one looks at few of them; those that
// have come to their end do not stay.
func TestAnUploadLooksAtFewOthers(t *testing.T) {
	const many = 20_000
	u := uploads{store: emptyStore(t)}
	for i := range many {
		u.add(manifest(i), u.store.Hold(), transfer.HeldFor)
	}
	if len(u.held) != many || u.looked > 2*many {
		t.Errorf("%d uploads wait, and adding them looked at %d; want %d and at most %d", len(u.held), u.looked, many, 2*many)
	}
	u = uploads{store: u.store}
	for i := range many {
		u.add(manifest(i), u.store.Hold(), -time.Second)
	}
	if len(u.held) > leastUploads || u.looked > 2*many {
		t.Errorf("%d uploads that have ended are left, and adding them looked at %d; want at most %d and %d", len(u.held), u.looked, leastUploads, 2*many)
	}
}

func BenchmarkUpload(b *testing.B) {
	u := uploads{store: emptyStore(b)}
	b.ReportAllocs()
	for i := range b.N {
		u.add(manifest(i), u.store.Hold(), transfer.HeldFor)
	}
	b.ReportMetric(float64(u.looked)/float64(b.N), "looked/op")
}
