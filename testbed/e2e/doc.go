// Package e2e drives sites from outside, as users and accidents do.
//
// TestTestbed has the container testbed: it submits by grpcurl, reads outputs and exit
// codes, stops containers, cuts sites off the network, kills daemons. Every job appends its
// attempt to a ledger that only the checker reads.
//
// TestASiteOfThree has one of the sites on three machines, and kills, pauses and cuts off those
// that lead.
//
// TestOutboundOnly has two clean machines, federated by the commands of the documentation
// and nothing else. No connection can be made to one of them, which takes full part all the
// same. The machines are containers, or network namespaces with a packet filter.
//
// What needs containers runs where KITH_E2E=1 is set and a Docker engine answers, what needs
// namespaces where root runs it:
//
//	KITH_E2E=1 go test -count=1 -timeout 30m ./testbed/e2e
package e2e
