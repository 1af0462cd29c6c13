// Package e2e drives the container testbed from outside, as users and
// accidents do: it submits by grpcurl, reads outputs and exit codes, stops
// containers, cuts sites off the network, kills daemons. Every job appends its
// attempt to a ledger that only the checker reads.
//
// The tests run where KITH_E2E=1 is set and a Docker engine answers:
//
//	KITH_E2E=1 go test -count=1 ./testbed/e2e
package e2e
