package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	kithv1 "kith/proto/gen/kith/v1"
)

// The exit codes. Scripts depend on them: they never change their meaning.
const (
	exitOK          = 0
	exitRefused     = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitBusy        = 4
	exitTimeLimit   = 124
	exitNoResult    = 125
	exitSignal      = 128
	exitInterrupted = 130
)

// exitCode is a line of the table of exit codes.
type exitCode struct {
	code, meaning string
}

// exitCodes is the table behind "kith help exit-codes": first those of kith
// itself, then those that stand for a job.
func exitCodes() (own, ofJobs []exitCode) {
	own = []exitCode{
		{fmt.Sprint(exitOK), "it worked"},
		{fmt.Sprint(exitRefused), "the request failed: no such job, the job is not in a state for it, a file could not be written; a claim of \"kith lab run\" does not hold"},
		{fmt.Sprint(exitUsage), "wrong usage: the command line, the script or a value in it"},
		{fmt.Sprint(exitUnreachable), "the site cannot be reached or did not answer within --timeout"},
		{fmt.Sprint(exitBusy), "the site is full or busy; the message says when to try again"},
		{fmt.Sprint(exitInterrupted), "interrupted, for example with Ctrl-C"},
	}
	ofJobs = []exitCode{
		{"0 to 255", "the job's own exit code; with several jobs, the highest of all codes"},
		{fmt.Sprint(exitTimeLimit), "the job was stopped at its time limit"},
		{fmt.Sprint(exitNoResult), "the job was cancelled or lost"},
		{fmt.Sprintf("%d + N", exitSignal), "signal N ended the job"},
	}
	return own, ofJobs
}

// jobExitCode returns the exit code that stands for a job that has ended.
func jobExitCode(s *kithv1.JobStatus) int {
	outcome := s.GetOutcome()
	switch s.GetState() {
	case kithv1.JobStatus_STATE_COMPLETED:
		return exitOK
	case kithv1.JobStatus_STATE_TIMEOUT:
		return exitTimeLimit
	case kithv1.JobStatus_STATE_CANCELLED, kithv1.JobStatus_STATE_LOST:
		return exitNoResult
	}
	switch {
	case outcome.GetSignal() > 0:
		return exitSignal + int(outcome.GetSignal())
	case outcome.GetExitCode() > 0:
		return int(outcome.GetExitCode())
	}
	return exitRefused // it failed without having run
}

// exitCodesTopic is "kith help exit-codes".
func exitCodesTopic(*cli) *cobra.Command {
	own, ofJobs := exitCodes()
	var b strings.Builder
	b.WriteString("Exit codes of kith:\n\n")
	writeCodes(&b, own)
	b.WriteString("\nOf \"kith wait\" and \"kith submit --wait\", once the job has ended:\n\n")
	writeCodes(&b, ofJobs)
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long:  strings.TrimSuffix(b.String(), "\n"),
	}
}

func writeCodes(b *strings.Builder, codes []exitCode) {
	for _, c := range codes {
		fmt.Fprintf(b, "  %-8s  %s\n", c.code, c.meaning)
	}
}
