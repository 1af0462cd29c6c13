package meta

// Counters count what a site did since its engine began.
type Counters struct {
	JobsSubmitted, JobsClosed              int64
	CopiesQueued, CopiesRefused            int64
	AttemptsStarted, AttemptsStartedRemote int64
	ClaimsGranted, ClaimsDenied            int64
	ClaimsTimedOut, ClaimsRevoked          int64
	// ClaimMessagesLogical is the paper's count: one claim and K-1 cancels a
	// job, also where they stayed within the site. ClaimMessagesWire counts
	// those that crossed between sites as seen by the origin, repeats included.
	ClaimMessagesLogical, ClaimMessagesWire int64
	Withdrawals                             int64
	// StartsFailed are attempts that could not be started here, see [StartFailed].
	StartsFailed int64
	// StrayCopies were found by comparing copies; DigestsRequested counts
	// comparisons that differed.
	StrayCopies, DigestsRequested int64
	// TasksGranted and TaskResults are of this origin's bags, TasksStarted of all that began
	// here. BundlesRevoked were taken back.
	TasksGranted, TaskResults, TasksStarted, BundlesRevoked int64
	// DeadlinesMissed are runs of this origin's bags.
	DeadlinesMissed int64
	// WaitSeconds sums, over attempts started here, the time since submission
	// (of jobs of this origin) or arrival (of others).
	WaitSeconds float64
}
