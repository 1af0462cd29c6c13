// Package cluster knows the other sites: who they are, whether a stream to
// them is up, and how loaded they say they are.
//
// A [View] is the table of one site. It is fed with streams that come and go
// and with load digests; of two digests of one site the one with the higher
// (incarnation, sequence) wins, whichever way it came and however often. The
// load is a hint for ranking and never a fact: nothing durable depends on it.
//
// The package is pure: time is an argument, iteration is in the order of site
// names, and the network is in the adapters (cluster/gossip, meta/peer).
package cluster
