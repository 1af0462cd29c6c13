// Package frames bounds how many frames of HTTP/2 a site reads of a connection in a second.
// gRPC answers most kinds of frames itself, before a call or a message is seen by any other
// bound: a connection that sends nothing but pings, or begins calls and takes them back
// (CVE-2023-44487), has it compute all the time. A [Conn] counts the frames in what is read,
// and holds back what its bucket does not pay for. Nothing is dropped: the sender waits.
package frames
