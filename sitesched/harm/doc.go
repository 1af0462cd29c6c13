// Package harm says what guests cost the jobs of a site, and what they got.
//
// It holds every home job against a schedule without guests, the shadow of package sitesched,
// and adds what the site counted while jobs waited. Everything here is arithmetic on what is
// past: no I/O, no clock, the same past gives the same report. The daemon feeds it what it
// remembers, experiments what they have simulated.
//
// Single jobs move both ways, also where no guest is ever in anybody's way: guests change who
// may overtake whom. So the delays are a report and nothing that is counted or promised.
//
// Source: design, section "Harm, measured"; spec 004 section 2.1 for the promise.
package harm
