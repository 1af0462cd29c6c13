// Package transfer moves the files of jobs: from a submitter's inputs into a
// file set, between sites, into an attempt's private folder, and what the
// attempt leaves behind back into a file set.
//
//	origin                                   host
//	──────                                   ────
//	Packer.Pack(inputs) ─► Set ──grant──►  Decode
//	Server.ReadChunk    ◄──pieces───────── Fetcher.Fetch(set)
//	                                       Unpacker.Unpack(set, folder)
//	                                         the job runs   Tail.Read ─► live output
//	Decode              ◄──result── Set ◄─ Collector.Collect(folder)
//	Fetcher.Fetch(set)  ───pieces────────► Server.ReadChunk
//	OpenFile(set's file)
//
// A [Set] is data: paths with contents named by sha256. It travels whole with
// a grant or a result. Contents of up to 2 KiB lie inside it, 64 KiB a set;
// longer ones are cut into chunks of 4 MiB that the other side fetches if its
// blob store lacks them.
//
// What the package promises:
//
//   - T1. Nothing outside the allowed folders is packed, and nothing outside
//     a private folder is read or written, whatever links, pipes and devices
//     lie there and what changes them meanwhile.
//   - T2. A peer reads chunks of attempts it shares with this site, and no others.
//   - T3. Bytes are checked against their names when they arrive, when they
//     are read for a job, and when they are read for a peer.
//   - T4. Whatever a peer or a job sends or leaves, memory, open files,
//     goroutines, time on the disk and requests in flight are bounded.
//   - T5. An attempt that reads and writes no files costs no chunk and no fsync.
//
// What the caller owes: it records a set durably within the grace period of
// the blob store's sweep after Pack, Collect or Fetch returned it, and tells
// the sweep the chunks of every set on record ([Set.Chunks]).
//
// The package imports the blob store directly, against the rule that adapters
// do not import each other; DESIGN.md says why, and why not the obvious way in
// a few other places. Start reading at [Set].
package transfer
