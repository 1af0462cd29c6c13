package daemon

import (
	"crypto/rand"
	"time"

	"kith/meta/commit"
	"kith/store"
)

// beginLife makes durable that the daemon starts, before anything is said to
// another site, and names a data folder that has no name yet.
func beginLife(state *store.State, backend store.Backend) error {
	first := store.BeginLife{First: uint64(time.Now().UnixNano())}
	rand.Read(first.Folder[:])
	return commit.BeginLife(state, backend, first)
}
