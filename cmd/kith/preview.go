package main

import (
	"context"
	"fmt"
	"strings"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// preview tells what would become of a job. That no site can take it now is no
// error: as a job it would wait.
func (c *client) preview(ctx context.Context, s *site, j *kithv1.Job) error {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r, err := s.jobs.SubmitJob(limited, &kithv1.SubmitJobRequest{Job: j, ValidateOnly: true})
	if err != nil {
		return err
	}
	return c.printMessage(r, func() string { return c.previewText(r.GetPreview()) })
}

// previewText is a preview for people.
func (c *client) previewText(s *kithv1.JobStatus) string {
	var b strings.Builder
	b.WriteString("The job would be accepted. Nothing was submitted.\n")
	if why := s.GetReason(); why != "" {
		fmt.Fprintf(&b, "It would wait: %s.\n", cli.Clean(why))
	}
	if at := s.GetEstimatedStartTime(); at != nil {
		fmt.Fprintf(&b, "At this site it would start at %s, or earlier elsewhere.\n", c.at(at))
	}
	b.WriteString("\n" + rankText(s.GetRank()) + "\n")
	b.WriteString(c.decisionTable(s).Render(c.Width))
	return b.String()
}
