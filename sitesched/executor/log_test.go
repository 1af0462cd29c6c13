package executor

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLogOfShimsIsAFile puts other things in the place of the log that each new shim
// gets: a FIFO kept a site from starting jobs and from stopping, also after a restart.
func TestLogOfShimsIsAFile(t *testing.T) {
	for kind, put := range replacements {
		t.Run(kind, func(t *testing.T) {
			if kind == "device" && os.Geteuid() != 0 {
				t.Skip("needs root to make a device")
			}
			path := filepath.Join(t.TempDir(), logName)
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			l := launcher{log: path, path: "/bin/true", argv: []string{"true"}, isolation: Subreaper}
			done := make(chan struct{})
			go func() {
				defer close(done)
				p, err := l.spawn()
				if err != nil {
					t.Error(err)
					return
				}
				_ = p.end()
			}()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("the start of a shim waits")
			}
			if st, err := os.Lstat(path); err != nil || !st.Mode().IsRegular() || st.Size() > maxLog {
				t.Errorf("the log is %v, %v", st, err)
			}
		})
	}
}
