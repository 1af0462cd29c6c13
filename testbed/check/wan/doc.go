// Package wan is a TCP proxy that behaves like the network between
// institutions: it delays, limits and cuts, and heals again.
//
//	site alpha ──► listen [ link alpha→beta ] target ──► site beta
//	                 out:  bytes from alpha to beta
//	                 back: bytes from beta to alpha
//
// A [Proxy] has links. A link listens at one address, dials another, and is
// named by the sites whose traffic it carries: From is the one that dials.
// Each way of a link has its own delay, jitter, rate and cut.
//
// What it promises:
//
//   - W1. A byte leaves no earlier than the delay of its way after it came,
//     and bytes keep their order. The delay is a line, not a pause: while one
//     byte waits the next ones come in, so throughput is that of the machine
//     up to BufferBytes in a delay.
//   - W2. A cut way passes nothing from the moment [Proxy.Cut] returns. The
//     proxy does not read what it would not pass, so the sender's bytes fill
//     the kernel's buffers and then it stalls; neither side sees an end or a
//     reset. [Proxy.Heal] lets the same connections go on without a byte lost.
//   - W3. A connection made during a cut is accepted by the kernel, as the
//     first router is not the problem, and reaches no site before the heal; if
//     its maker gives up earlier it never does.
//   - W4. Memory is bounded: BufferBytes a way of a connection, and
//     MaxConnections a link; further connections wait in the kernel's backlog.
//   - W5. Close returns when every goroutine has ended.
//
// What it does not do: the kernel acknowledges what lies in its buffers, so
// TCP's own keepalive and user timeout see a healthy peer during a cut; after
// a heal nothing waits for a retransmission, as it would in a real network;
// and a connection is open for its maker before a round trip has passed.
//
// Scripts steer a proxy through a socket with a line of text a command, see
// [Proxy.Do]. Randomness (jitter) comes from the seed in the [Config].
package wan
