// Package scratch lets the temporary folders of a test lie in memory.
package scratch

import (
	"os"
	"syscall"
)

// What InMemory looks for.
const (
	memory     = "/dev/shm"
	tmpfsMagic = 0x01021994
	noExec     = 8 // ST_NOEXEC of statvfs(3)
	enough     = 1 << 30
)

// InMemory makes t.TempDir and os.MkdirTemp use memory from now on: a store of
// files makes hundreds of folders, which takes a real disk longer than all the
// rest of a test. A TestMain calls it first. It does nothing where KITH_THOROUGH
// is 1, so that .ci/run tests on a real disk too; where TMPDIR names a folder;
// and where there is no such memory, or less than 1 GiB.
func InMemory() {
	if os.Getenv("KITH_THOROUGH") == "1" || os.Getenv("TMPDIR") != "" {
		return
	}
	var st syscall.Statfs_t
	if syscall.Statfs(memory, &st) != nil || st.Type != tmpfsMagic || st.Flags&noExec != 0 {
		return
	}
	if st.Bavail*uint64(st.Bsize) < enough {
		return
	}
	os.Setenv("TMPDIR", memory) //nolint:errcheck // then it is the disk
}
