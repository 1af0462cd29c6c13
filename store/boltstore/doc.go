// Package boltstore keeps a site's facts in one bbolt file.
//
// A batch is one bbolt transaction: written, synced, and only then visible to
// a reopening. If the process dies at any point of a commit, the file holds
// the state before or after that batch; both were sealed by the same loop,
// and the later one was never acknowledged. What bbolt does not do is check what
// it reads, so every record carries a checksum (package codec), and Open
// compares the file's length with what its header says before mapping it: a
// file with its tail cut off is refused with an error instead of a SIGBUS.
//
// See docs/adr/0004-group-commit.md for why the state lives in memory and
// only changed records are written.
package boltstore
