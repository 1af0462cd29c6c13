// Package gossip spreads load digests among sites that trust each other, with
// hashicorp/memberlist over lanes.
//
// A lane (lane.go) is one connection between two sites that carries packets and
// short exchanges both ways, whichever of them opened it, so that a site that nobody can dial
// is a member too. The transport (transport.go) dials sites by name, through
// [Lanes]: no address that gossip brings is ever dialled.
//
// What a member may say is decided in two places. The guard (guard.go) looks into
// the messages of memberlist: a site speaks for itself only, and only sites that
// this one trusts are members. The table of digests (digests.go) takes a digest
// only with the signature of its site ([Signer], [Verifier]), in ascending order,
// within bounds of value and clock. So a member that passes digests on can hold
// them back, and nothing else.
//
// Each site's list of members holds the sites that it trusts itself. Where A and B
// trust each other, B and C do, and A and C do not, A hears nothing of C, and
// nothing that A says or fails to do counts against C.
//
// Membership and loads are hints: nothing durable depends on them.
package gossip
