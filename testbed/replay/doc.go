// Package replay runs a workload through one site in virtual time: what would
// the users of this log have waited on that many processors under that policy?
//
// It drives the very [sitesched.Scheduler] that kithd runs, with claims that are
// granted at once, and knows no scheduling rule of its own. At each instant it
// applies all completions, then all submissions, then one pass (spec 001
// section 2.1). For several sites and a network between them there is
// testbed/sim.
package replay
