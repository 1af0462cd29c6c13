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
	if every := c.GetEvery().AsDuration(); every > 0 {
		text += "; copied home every " + spanOf(durationpb.New(every)) + " while it runs"
	}
	return text
}

// savedLines says what of a job has come home while it ran, and why nothing has since.
func (c *client) savedLines(s *kithv1.JobStatus) []string {
	var lines []string
	if n := s.GetSavedSequence(); n != 0 {
		lines = append(lines, fmt.Sprintf("checkpoint %d of attempt %d, home %s", n, s.GetSavedAttempt(), c.at(s.GetSavedTime())))
	}
	if why := s.GetSaveTrouble(); why != "" {
		lines = append(lines, "not copied: "+why)
	}
	return lines
}

// causeWords say why an attempt ended with its job to go on; nothing if it asked for that itself.
var causeWords = map[kithv1.Demotion_Cause]string{
	kithv1.Demotion_CAUSE_EVICTED: "evicted", kithv1.Demotion_CAUSE_OUT_OF_LEVEL: "outgrew its level",
	kithv1.Demotion_CAUSE_REQUESTED: "as asked", kithv1.Demotion_CAUSE_WALLTIME: "at its time limit",
	kithv1.Demotion_CAUSE_HOST_LOST: "its host was lost",
}

// demotionLines says what became of the attempts that ended with the job to go on, one a line.
func (c *client) demotionLines(s *kithv1.JobStatus) []string {
	var lines []string
	for _, d := range s.GetDemotions() {
		text := fmt.Sprintf("%d at %s", d.GetAttempt(), d.GetSiteId())
		if l := d.GetLevel(); l > 0 {
			text += fmt.Sprintf(", level %d", l)
		}
		if d.GetStartTime() != nil && d.GetEndTime() != nil {
			ran := max(0, d.GetEndTime().AsTime().Sub(d.GetStartTime().AsTime())).Round(time.Second)
			text += fmt.Sprintf(", %s, ran %s", c.at(d.GetStartTime()), spanOf(durationpb.New(ran)))
		}
		if n := d.GetCheckpointSequence(); n != 0 {
			text += fmt.Sprintf(", saved checkpoint %d", n)
		}
		if word := causeWords[d.GetCause()]; word != "" {
			text += ", " + word
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
