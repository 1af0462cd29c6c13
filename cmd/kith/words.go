package main

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kith/internal/cli"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// at writes an instant in the user's zone.
func (c *client) at(t *timestamppb.Timestamp) string {
	if t == nil {
		return cli.Nothing
	}
	return t.AsTime().In(c.Zone).Format(time.DateTime)
}

// spanOf is cli.Span of a duration that may be missing.
func spanOf(d *durationpb.Duration) string {
	if d == nil {
		return cli.Nothing
	}
	return cli.Span(d.AsDuration())
}

// byteCount writes a number of bytes: exactly, and for large numbers also in words.
func byteCount(n int64) string {
	const step = 1024
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
	if n < step {
		return cli.Plural(n, "byte", "bytes")
	}
	value, unit := float64(n)/step, 0
	for value >= step && unit < len(units)-1 {
		value /= step
		unit++
	}
	number := strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0")
	return fmt.Sprintf("%s %s (%d bytes)", number, units[unit], n)
}

// stateWord returns the name that users see.
func stateWord(s kithv1.JobStatus_State) string { return strings.TrimPrefix(s.String(), "STATE_") }

// ended reports whether a job will not change any more.
func ended(s kithv1.JobStatus_State) bool {
	return s >= kithv1.JobStatus_STATE_COMPLETED && s <= kithv1.JobStatus_STATE_LOST
}

// began reports whether the command of a job has been started.
func began(s *kithv1.JobStatus) bool { return s.GetStartTime() != nil }

// runTime returns how long a job has run so far. The start is by the host's
// clock and now by ours, so that it may be a little off.
func (c *client) runTime(s *kithv1.JobStatus) time.Duration {
	if s.GetStartTime() == nil {
		return 0
	}
	end := c.Now()
	if s.GetEndTime() != nil {
		end = s.GetEndTime().AsTime()
	}
	return max(0, end.Sub(s.GetStartTime().AsTime()))
}

// runText is the run time in words. Of a job whose host is out of reach no more is
// known than that it ran until then, and not longer than it may.
func (c *client) runText(j *kithv1.Job) string {
	s := j.GetStatus()
	ran := c.runTime(s)
	away := s.GetHostUnreachableSince()
	if away == nil {
		return cli.Span(ran)
	}
	ran = min(ran, max(0, away.AsTime().Sub(s.GetStartTime().AsTime())))
	if limit := j.GetWalltime().AsDuration(); limit > 0 {
		ran = min(ran, limit)
	}
	return "at least " + cli.Span(ran)
}

// howItEnded says how a job that has ended did so; empty for a success.
func howItEnded(s *kithv1.JobStatus) string {
	o := s.GetOutcome()
	why := orDefault(o.GetReason(), s.GetReason())
	if s.GetState() == kithv1.JobStatus_STATE_CANCELLED {
		why = orDefault(s.GetReason(), why) // it says who cancelled and why
	}
	how := ""
	switch {
	case o.GetSignal() > 0:
		how = fmt.Sprintf("signal %d", o.GetSignal())
	case o.GetExitCode() > 0:
		how = fmt.Sprintf("exit code %d", o.GetExitCode())
	}
	switch {
	case strings.Contains(why, how): // also if there is no how
		return why
	case why == "":
		return how
	}
	return how + ": " + why
}

// whereOrWhy says at which site a job is or was, else why it waits.
func whereOrWhy(s *kithv1.JobStatus) string {
	why := s.GetReason()
	if ended(s.GetState()) {
		why = howItEnded(s)
	}
	switch {
	case s.GetHostSiteId() == "" && why == "":
		return cli.Nothing
	case s.GetHostSiteId() == "":
		return "(" + why + ")"
	case ended(s.GetState()) && why != "":
		return s.GetHostSiteId() + " (" + why + ")"
	}
	return s.GetHostSiteId()
}

// sentenceOf explains a reason, which a site gives as one word.
func sentenceOf(word string) string {
	for r := job.NoReason; ; r++ {
		switch r.String() {
		case word:
			return r.Sentence()
		case fmt.Sprintf("reason-%d", r): // the end of the list
			return word
		}
	}
}

// byRule stands for who did what a rule of the site did.
const byRule = "a rule of the site"

// actWord says what a person did to a job.
func actWord(k kithv1.JobAct_Kind) string {
	switch k {
	case kithv1.JobAct_KIND_SUBMIT:
		return "submitted"
	case kithv1.JobAct_KIND_CANCEL:
		return "cancelled"
	case kithv1.JobAct_KIND_HOLD:
		return "held"
	case kithv1.JobAct_KIND_RELEASE:
		return "released"
	case kithv1.JobAct_KIND_FORGET:
		return "gave up site"
	case kithv1.JobAct_KIND_RETRY:
		return "run again"
	case kithv1.JobAct_KIND_POLICIES:
		return "policies replaced"
	case kithv1.JobAct_KIND_BUDGET:
		return "budget replaced"
	case kithv1.JobAct_KIND_CHECKPOINT:
		return "asked to save and go on"
	}
	return "unknown"
}
