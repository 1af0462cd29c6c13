// Package gridbot is the experiment of GridBot (SC 2009, spec 002): bags of tasks on grids
// whose hosts come late, vanish and fail.
//
// [grids.go] is the one generator of all that happens in the grids; it was fixed before any
// result was looked at. A [floor] plays it in virtual time and lets a dispatcher give its
// clients tasks. There are four:
//
//   - [production]: the engine that kithd runs, with the policies of meta/policy, at the
//     origin of the bags. Each host is to it a site of one processor;
//   - [plain]: the paper's server, its algorithms 1 and 2 as they are printed. Without
//     policies it is the naive server;
//   - [buffered]: that server before its optimisation, which judges each task of a buffer;
//   - [queueing]: a batch system that queues each task by itself.
//
// The last three are what to compare with. They are of no use elsewhere.
package gridbot
