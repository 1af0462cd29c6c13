package main

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kithv1 "kith/proto/gen/kith/v1"
)

// savesText says how a job saves what it has done.
func savesText(c *kithv1.Checkpoint) string {
	text := strings.Join(c.GetPaths(), ", ")
	if code := c.GetExitCode(); code != 0 && code != 85 {
		text += fmt.Sprintf("; exit code %d asks to be run again", code)
	}
	return text
}

// demotionLines says what became of the attempts that ended with the job to go on, one a line.
func (c *client) demotionLines(s *kithv1.JobStatus) []string {
	var lines []string
	for _, d := range s.GetDemotions() {
		text := fmt.Sprintf("%d at %s", d.GetAttempt(), d.GetSiteId())
		if d.GetStartTime() != nil && d.GetEndTime() != nil {
			ran := max(0, d.GetEndTime().AsTime().Sub(d.GetStartTime().AsTime())).Round(time.Second)
			text += fmt.Sprintf(", %s, ran %s", c.at(d.GetStartTime()), spanOf(durationpb.New(ran)))
		}
		if n := d.GetCheckpointSequence(); n != 0 {
			text += fmt.Sprintf(", saved checkpoint %d", n)
		}
		if d.GetReason() != "" {
			text += "; " + d.GetReason()
		}
		lines = append(lines, text)
	}
	if len(lines) > 0 && s.GetHostSiteId() != "" {
		text := fmt.Sprintf("%d at %s", s.GetAttempt(), s.GetHostSiteId())
		if n := s.GetCheckpointSequence(); n != 0 {
			text += fmt.Sprintf(", from checkpoint %d", n)
		}
		lines = append(lines, text)
	}
	return lines
}
