// Package gossip spreads load digests among sites that are not all connected,
// with hashicorp/memberlist. A digest travels as a broadcast, and all known
// ones with every push/pull exchange, so that a newcomer learns of everybody
// from one member.
//
// Membership is a hint: it brings addresses to dial and loads to rank by, and
// nothing durable depends on it. A site works with gossip turned off.
//
// The transport is memberlist's own on a port of its own unless the caller
// brings another: [Config.Transport] is where one that shares the daemon's
// authenticated port fits in.
package gossip
