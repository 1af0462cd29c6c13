package scratch

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TakeFiles leaves this process n descriptors that it can still open, until the test
// ends or calls release. No test of the process may run beside it.
func TakeFiles(t testing.TB, n int) (release func()) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("open descriptors cannot be listed: %v", err)
	}
	highest := 0
	for _, e := range open {
		var fd int
		if _, err := fmt.Sscan(e.Name(), &fd); err == nil {
			highest = max(highest, fd)
		}
	}
	// Gaps below the limit are filled, so that exactly n are left.
	few := unix.Rlimit{Cur: uint64(highest + 1 + n), Max: was.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	var fillers []int
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		fillers = append(fillers, fd)
	}
	for range min(n, len(fillers)) {
		unix.Close(fillers[len(fillers)-1]) //nolint:errcheck // it was only opened
		fillers = fillers[:len(fillers)-1]
	}
	var once sync.Once
	release = func() {
		once.Do(func() {
			for _, fd := range fillers {
				unix.Close(fd) //nolint:errcheck // it was only opened
			}
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(release)
	return release
}
