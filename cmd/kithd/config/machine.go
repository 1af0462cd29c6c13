package config

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// machineMemory returns the bytes of memory that this machine has, or that the
// container kithd runs in may use if that is less; 0 if neither can be read. It is
// read once.
var machineMemory = sync.OnceValue(func() int64 {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 0
	}
	total := int64(info.Totalram) * int64(info.Unit) //nolint:gosec // memory is below 2^63 bytes
	// At the top of the machine's own hierarchy there is no such file.
	if b, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && limit > 0 {
			total = min(total, limit)
		}
	}
	return total
})
