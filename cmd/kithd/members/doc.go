// Package members is what the members of one site say to each other on the port, beside raft:
// what clients brought to a member that does not lead, and the chunks of files.
//
// A connection is by [trust.ALPNMember], so that both ends have proved that they are members of
// one site. It begins with a [Call] and an answer. What follows depends on its purpose: the
// bytes of a client, both ways, or requests about chunks, one after another.
//
// [Hello] tells, before a byte is answered, which protocol a connection of the port is for:
// those of users and of other sites go on to the leader as they are, so that their TLS ends
// there and nothing that proves anything passes through other hands.
//
// [Copies] keeps each chunk at a majority of the members. See docs/adr/0056-members-of-a-site.md.
package members
