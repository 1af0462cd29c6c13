// Package job holds the words that every other package shares: who a site is,
// how a job, one of its attempts and one of its copies are named, what a job
// asks for, what became of it, and the life cycle of a job at its origin.
//
// It is the innermost package: it does no I/O, reads no clock and imports
// nothing of Kith. The words are defined in docs/architecture.md; read
// [State] first.
package job
