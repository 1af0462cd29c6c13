package cli

import (
	"os"
	"runtime/debug"
)

// CollectLess lets the garbage collector run less often until restore is
// called: a simulation holds little and throws away much. Where it does hold
// much, a soft limit keeps memory from growing in proportion. GOGC in the
// environment goes before.
func CollectLess() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	const percent, limit = 1600, 2 << 30
	before, bound := debug.SetGCPercent(percent), debug.SetMemoryLimit(limit)
	return func() {
		debug.SetGCPercent(before)
		debug.SetMemoryLimit(bound)
	}
}
