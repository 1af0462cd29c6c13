// Package owner measures how much of a machine its owner uses: the processor time of all
// processes but those of Kith's jobs, from /proc, without privileges.
//
// A [Sensor] is read now and then. Between two readings it knows, from counters that only grow,
// how many processors the owner held in the mean; nothing that happens in between is missed.
// What to make of that is the business of internal/harvest.
package owner
