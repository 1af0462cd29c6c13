// Package federation runs workloads through a whole federation in virtual time
// and returns a record for each job: the engines are those that kithd drives
// (package sim), the workloads come from package workload, and everything to be
// known of the run is derived from the records (package metrics).
//
// [Run] is all there is. By default messages take no time and loads are fresh
// at every decision, which is the setting of the papers (spec 001 sections 2.3
// and 2.5); [Config] has the rest. Runs share nothing: many may go on at once.
package federation
