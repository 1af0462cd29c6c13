package transfer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kith/store/blobstore"
)

// TestCollectReplacedFolder collects from jobs that put something else in the place of
// their folder. The collector waits for nothing and reads nothing outside.
func TestCollectReplacedFolder(t *testing.T) {
	store := openStore(t, blobstore.Config{})
	outside := t.TempDir()
	write(t, outside, "secret", []byte("secret"))
	for name, c := range map[string]struct {
		put  func(t *testing.T, dir string)
		note string
	}{
		"pipe":    {func(t *testing.T, dir string) { mkfifo(t, filepath.Dir(dir), "work") }, "the private folder is gone"},
		"link":    {func(t *testing.T, dir string) { symlink(t, outside, filepath.Dir(dir), "work") }, "the private folder is gone"},
		"file":    {func(t *testing.T, dir string) { write(t, filepath.Dir(dir), "work", nil) }, "the private folder is gone"},
		"nothing": {func(*testing.T, string) {}, "the private folder is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			l, dir := leave(t, "secret", "s*")
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			c.put(t, dir)
			done := make(chan struct{})
			go func() {
				defer close(done)
				collector := &Collector{Store: store}
				if n := collector.Bytes(background(), l); n != 0 {
					t.Errorf("%d bytes", n)
				}
				got, err := collector.Collect(background(), l)
				if err != nil {
					t.Error(err)
				}
				same(t, "files", setContents(t, store, got.Set), map[string]string{})
				if len(got.Notes) != 1 || !strings.Contains(got.Notes[0], c.note) {
					t.Errorf("notes %q, want one with %q", got.Notes, c.note)
				}
			}()
			select {
			case <-done:
			case <-time.After(20 * time.Second):
				t.Fatal("the collector waits")
			}
		})
	}
}
