// Package estimate reads what the estimator of a job prints: lines "bound SECONDS", each an upper
// bound of all the work of the job, in processor-seconds of the reference. The least counts.
// Everything else is no bound, and is ignored. It imports little, as a shim reads it.
package estimate
