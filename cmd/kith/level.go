package main

import (
	"fmt"
	"strings"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// limitText is the time limit of a job in words.
func limitText(j *kithv1.Job) string {
	if j.GetWalltimeUnknown() {
		return "unknown time"
	}
	return spanOf(j.GetWalltime())
}

// levelLines says where a job is in its hierarchy, nothing for a job of none.
func levelLines(s *kithv1.JobStatus) []string {
	if s.GetLevel() == 0 {
		return nil
	}
	line := fmt.Sprintf("%d", s.GetLevel())
	if used := s.GetUsed(); used != nil {
		line += fmt.Sprintf(", used %s in %s before", cli.Span(used.AsDuration()), cli.Plural(int64(len(s.GetDemotions())), "attempt", "attempts"))
	}
	lines := []string{line}
	if s.GetWorkDone() > 0 || s.GetWorkBound() > 0 {
		lines = append(lines, workLine(s))
	}
	if b := s.GetAttemptBound(); b > 0 {
		lines = append(lines, fmt.Sprintf("the estimator of the attempt that runs says so far: at most %s processor-seconds in all; that counts when the attempt has ended", workOf(b)))
	}
	if guess := s.GetWorkGuess(); guess > 0 && s.GetWorkBound() == 0 {
		lines = append(lines, fmt.Sprintf("needs at most %s processor-seconds by the forecast of its user's jobs: a guess, by which it may begin at a lower level", workOf(guess)))
	}
	for _, l := range s.GetLevelSites() {
		lines = append(lines, fmt.Sprintf("%s: runs of at most %s, stays of at most %s; work there %s of %s processor-seconds",
			l.GetSiteId(), spanOf(l.GetRunLimit()), spanOf(l.GetQueueLimit()), workOf(l.GetWork()), workOf(l.GetWorkLimit())))
	}
	return lines
}

func workLine(s *kithv1.JobStatus) string {
	bound := "no bound is known of all that it needs"
	if b := s.GetWorkBound(); b > 0 {
		bound = fmt.Sprintf("of at most %s", workOf(b))
	}
	return fmt.Sprintf("did %s processor-seconds of the reference, %s", workOf(s.GetWorkDone()), bound)
}

func workOf(x float64) string { return fmt.Sprintf("%.4g", x) }

// levelText is what "kith why" says of the hierarchy, empty for a job of none.
func levelText(s *kithv1.JobStatus) string {
	lines := levelLines(s)
	if len(lines) == 0 {
		return ""
	}
	for i := range lines {
		lines[i] = cli.Clean(lines[i])
	}
	return "\nIts level:\n" + strings.Join(lines, "\n") + "\n"
}
