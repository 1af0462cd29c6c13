// Package codec turns the facts of package store into bytes and back: the
// protobuf messages of kith.state.v1, each behind a checksum.
//
// Every value is crc32c(message) in four bytes, big endian, then the message.
// bbolt does not check what it reads; this does, so that a damaged record is
// an error at opening and not a wrong decision later.
//
// All back ends share it. What goes to other sites is converted by cluster/wire.
package codec
