// Package peer carries the messages of package meta between sites: one
// bidirectional gRPC stream per pair of sites, dialled by either of them.
//
// [Links] owns all streams of a site. It dials the sites that have an address,
// serves those that dial here, settles on one stream when both do, and reports
// to a [Handler], per site and in order: up, what was received, down. A stream
// that brings nothing for three heartbeats is closed, so that a network that
// swallows packets is noticed.
//
// Sending never blocks and nothing is kept for a site without a stream: the
// protocol repeats what was not answered and compares notes on every connect.
// What waits for a stream that does not drain is bounded; meeting the bound
// closes the stream.
//
// Protocol messages go before file pieces, so that a claim never waits behind
// a large file for longer than the pieces that are already on the wire.
package peer
