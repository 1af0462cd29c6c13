// Package audit keeps the audit log of a site: JSON lines that are only ever
// appended, each with its number and the SHA-256 of the line before it.
//
// [Open] continues the log of a folder. [Log.Record] and [Log.Sync] write down a
// decision, [Log.Refuse] a refusal. Refusals of one kind from one peer are counted:
// there is a line when they begin and one with a count each minute while they go on.
// Once an hour the log writes a [Head], the number and the hash of its last line,
// signed by the site. Whoever keeps a head can tell later whether the log was changed
// up to it: [Verify] compares a folder with itself and with a head.
//
// What it promises:
//
//   - A line is never larger than 1 KiB, one with a head never larger than 8 KiB;
//     texts are clipped, what does not print is escaped. Callers give it no secrets,
//     tokens or environments.
//   - A folder holds at most Config.MaxFiles files of about Config.MaxBytes. When the
//     oldest is removed, a line says so with the hash of its last line, so that the
//     chain can be followed from there on.
//   - No call but [Log.Sync] waits for the disk, and that one no longer than its
//     context. What cannot be written is counted, and the count is written when there
//     is room again.
//   - A line that a crash left unfinished is cut off when the log is opened, and a
//     line says how much was cut.
//
// What the chain alone does not show: that lines at its very end are missing. That
// takes a head from outside, which is why heads are given to other sites.
package audit
