package job

// Copy is one queued request for an attempt at one site.
type Copy struct {
	ID      AttemptID
	Request Request
	// Arrival is when the site accepted it: the key of the site's FCFS order.
	Arrival Time
	// Remote says that another site is the origin.
	Remote bool
	// Elder says that its origin can never run it: it is too wide there, or needs
	// more memory. At other sites it does not wait to be an elder.
	Elder bool
	// Level is its rank in the hierarchy, 0 if it is not of one. Where guests have to leave, those of
	// a higher number go first.
	Level uint8
	// Stays says that its job cannot go on elsewhere. Once it runs it is not made to leave.
	Stays bool
}

// Load is how loaded a site is (spec 001 section 2.3).
type Load struct {
	// Work is metric "work": seconds until the site has drained what it has.
	Work float64
	// Procs is metric "procs": processors asked for over processors there.
	Procs float64
	// Free is the number of processors that are neither in use nor reserved.
	Free int32
	// Queued and Running count copies and attempts.
	Queued, Running int32
	// Blocked says that no copy that comes from another site now starts on what is free: others
	// wait, and the site starts in order only, or its own first.
	Blocked bool
}
