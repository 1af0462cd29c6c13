package job

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Outcome is how an attempt ended. It is recorded once (design: S3).
type Outcome struct {
	// Kind says which end it was.
	Kind OutcomeKind
	// ExitCode is what the command returned, 0 to 255; it means nothing when Signal is set.
	ExitCode int32
	// Signal is the number of the signal that ended the command, zero if none did.
	Signal int32
	// Reason explains every end but a success, for people; at most 256 bytes, and "…" at
	// the end if it was longer.
	Reason string
	// Start and End are by the host's clock. Start is zero if the command never ran.
	Start, End Time
	// CPUTime is user and system time of the command and its children.
	CPUTime time.Duration
	// MaxRSSBytes is the largest resident set of any one process of the attempt.
	MaxRSSBytes int64
	// Files describes stdout, stderr and declared outputs, encoded; the engines
	// carry it unread. Empty when the attempt wrote nothing.
	Files []byte
	// FilesRemain says that some bytes of Files still have to be fetched from the host.
	FilesRemain bool
	// FilesLost says that some of its output could not be kept or brought home, or that the
	// job removed the file of its own stdout or stderr; Reason says why.
	FilesLost bool
	// Checkpoint is, of a demoted attempt, the number of the checkpoint that is among its
	// files: what its DONE says. 0 if it left none that counts.
	Checkpoint uint64
	// Cause is, of a demoted attempt, why it ended. Of all others it is OwnAccord.
	Cause DemotionCause
	// Bound is the least upper bound of all the work of the job that its estimator gave, in
	// processor-seconds of the reference; 0 if it gave none.
	Bound float64
	// ErrorLine is, of a task's run that failed, the last line of its stderr, see
	// [ErrorLineOf]. Of jobs it is neither recorded nor sent.
	ErrorLine string
}

// MaxReasonLength bounds [Outcome.Reason], in bytes.
const MaxReasonLength = 256

// ClipReason makes a text from outside fit for a record, see [ClipText].
func ClipReason(s string) string { return ClipText(s, MaxReasonLength) }

// cutSign ends a text that was cut.
const cutSign = "…"

// ClipText returns s as valid UTF-8 of at most n bytes, where n is at least 3. A text
// that was longer ends with "…", which counts.
func ClipText(s string, n int) string {
	if s = strings.ToValidUTF8(s, ""); len(s) <= n {
		return s
	}
	cut := n - len(cutSign)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + cutSign
}

// ByEstimate reports whether an attempt was demoted as its estimator said that its job needs more than
// its level does for one: its command never ran.
func (o *Outcome) ByEstimate() bool {
	return o.Kind == Demoted && o.Cause == OutOfLevel && o.Start == 0 && o.Bound > 0
}

// OutcomeKind says how an attempt ended. The numbers are stored and sent; they are frozen.
type OutcomeKind uint8

// The ends of an attempt.
const (
	NoOutcome OutcomeKind = 0
	Success   OutcomeKind = 1 // the command returned 0
	Failure   OutcomeKind = 2 // the command returned another code, died of a signal, or could not be started
	Timeout   OutcomeKind = 3 // stopped at its walltime
	Cancel    OutcomeKind = 4 // stopped, or never started, because the user cancelled it
	Loss      OutcomeKind = 5 // the host lost it: how far it came is not known
	// Demoted is no end of the job: it goes on in another attempt, from its checkpoint.
	Demoted OutcomeKind = 6
)

// Known reports whether a number from outside is that of a kind.
func (k OutcomeKind) Known() bool { return k >= Success && k <= Demoted }

// Event returns the life-cycle event with which a job of this outcome closes.
// It panics on [NoOutcome], as an outcome without a kind is a bug of the caller, and on
// [Demoted], with which no job closes.
func (k OutcomeKind) Event() Event {
	switch k {
	case Success:
		return CloseSuccess
	case Failure:
		return CloseFailure
	case Timeout:
		return CloseTimeout
	case Cancel:
		return CloseCancel
	case Loss:
		return CloseLoss
	}
	panic("job: outcome without a kind")
}
