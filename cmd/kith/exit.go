package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// The exit codes beside those of package cli. Scripts depend on them: they never change their meaning.
const (
	exitUnreachable = 3
	exitBusy        = 4
	exitOutputLost  = 123
	exitTimeLimit   = 124
	exitNoResult    = 125
	exitSignal      = 128
)

// exitCodes is the table behind "kith help exit-codes": first those of kith
// itself, then those that stand for a job.
func exitCodes() (own, ofJobs []cli.ExitCode) {
	own = []cli.ExitCode{
		{Code: fmt.Sprint(cli.ExitOK), Meaning: "it worked"},
		{Code: fmt.Sprint(cli.ExitRefused), Meaning: "the request failed: no such job, the job is not in a state for it, a file could not be written"},
		{Code: fmt.Sprint(cli.ExitUsage), Meaning: "wrong usage: the command line, the script or a value in it"},
		{Code: fmt.Sprint(exitUnreachable), Meaning: "the site cannot be reached or did not answer within --timeout"},
		{Code: fmt.Sprint(exitBusy), Meaning: "the site is full or busy; the message says when to try again"},
		{Code: fmt.Sprint(cli.ExitInterrupted), Meaning: "interrupted, for example with Ctrl-C"},
	}
	ofJobs = []cli.ExitCode{
		{Code: "0 to 255", Meaning: "the job's own exit code; with several jobs, the highest of all codes"},
		{Code: fmt.Sprint(exitOutputLost), Meaning: "the job succeeded, and some of its output could not be kept or brought home, or was removed by the job"},
		{Code: fmt.Sprint(exitTimeLimit), Meaning: "the job was stopped at its time limit"},
		{Code: fmt.Sprint(exitNoResult), Meaning: "the job, or the bag, was cancelled or lost"},
		{Code: fmt.Sprintf("%d + N", exitSignal), Meaning: "signal N ended the job"},
	}
	return own, ofJobs
}

// jobExitCode returns the exit code that stands for a job that has ended.
func jobExitCode(s *kithv1.JobStatus) int {
	outcome := s.GetOutcome()
	switch s.GetState() {
	case kithv1.JobStatus_STATE_COMPLETED:
		if outcome.GetOutputLost() {
			return exitOutputLost
		}
		return cli.ExitOK
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
	return cli.ExitRefused // it failed without having run
}

// exitCodesTopic is "kith help exit-codes".
func exitCodesTopic(*client) *cobra.Command {
	own, ofJobs := exitCodes()
	return cli.ExitTopic("Exit codes of kith:\n\n" + cli.ExitTable(own) +
		"\nOf \"kith wait\" and \"kith submit --wait\", once the job has ended:\n\n" + cli.ExitTable(ofJobs))
}
