// Package executor runs the attempts of a site as processes of its machine. It
// is the adapter between the daemon's event loop, which decides what runs, and
// the kernel.
//
// Its methods return at once; what happens is told to the function given to
// [Open] as a [work.Started] and a [work.Finished]. A job is started and watched by a
// small process of its own, the shim (package shim), which outlives the daemon
// and leaves the end of the job on disk:
//
//	daemon ── socket ── shim ── fork, exec ── job and its children
//	   │                 │
//	   │                 └── <Dir>/<attempt>/record   taken, then ended
//	   └── Adopt, after a restart: record, lock, pidfd
//
// What the executor promises:
//
//   - X1: of all Starts and Adopts of an attempt, by this daemon and by those
//     before it on this machine, one executes the program.
//   - X2: every attempt that was started or adopted finishes once, and then none
//     of its processes lives.
//   - X3: neither the end of the daemon nor Close ends a job.
//   - X4: a job ends at its walltime, at Stop and when it exceeds its memory or
//     output, whatever its processes do, except that one that hangs inside
//     the kernel is given up after a minute, with a Reason that says so.
//   - X5: an attempt is reported as lost only when it is not known how far it
//     came: its shim was killed, its record is damaged, the machine was
//     restarted. It is never run again here.
//
// What the caller owes: it commits that an attempt begins, with
// [Executor.BootID], before Start; after a restart it calls Adopt for every
// attempt that began and has not finished; it keeps within the processors of the
// site; it calls Forget when the files are not needed any more, and then never
// names the attempt again. The binary calls [ShimMain] first thing in main.
// Other parts of the process must not wait for children that they did not start.
//
// An attempt's folder, private to the daemon's user or to [work.Spec].Account:
//
//	<Dir>/<attempt>/work     working folder and HOME; staged files go here
//	                tmp      TMPDIR
//	                stdout   both may be read while they grow
//	                stderr
//	                record   how far the attempt came (shim.RecordName)
//	                stop     that and why it is to be stopped
//
// A light attempt ([work.Spec.Light]) has its record in the ledger of its shim, and one that
// left nothing in its folder gives that to the next.
//
// How strongly jobs are isolated depends on the machine; [Executor.Capabilities]
// tells. Linux only, 5.4 or newer. Start reading at [Executor.Start], then
// worker.go, then package shim. DESIGN.md answers why.
package executor
