// Package runner is what a host does for an attempt: it stages its files, has
// it started, adopted, stopped or prolonged, collects what it leaves, and clears
// its folders. It stands between the engine, whose effects it carries out, and a
// [work.System], which runs attempts: processes of this machine (package
// executor), or a batch system.
//
//	meta.Launch ─► stage ─► work.System.Start ─► Started ─► meta.AttemptStarted
//	                                        └─► Finished ─► collect ─► meta.AttemptEnded
//
// runner.go has the parts, attempts.go the effects, held.go waits for a store that
// cannot be read, staging.go and collect.go
// the way in and out, payload.go what is run. [Files] are the files that this
// site keeps and serves to others; remote.go reads those of other sites, and
// output.go finds the output of a job wherever it is.
package runner
