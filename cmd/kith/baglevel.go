package main

import (
	"fmt"
	"strings"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// bagLevelLines says where a bag is in its hierarchy and which levels it has left, nothing for a
// bag of none.
func (c *client) bagLevelLines(b *kithv1.Bag) []string {
	l := b.GetStatus().GetLevel()
	if l.GetLevel() == 0 {
		return nil
	}
	line := fmt.Sprintf("%d since %s", l.GetLevel(), c.at(l.GetArriveTime()))
	if l.GetRunLimit() != nil {
		line += fmt.Sprintf("; stays of at most %s, of which %s from the first task", spanOf(l.GetQueueLimit()), spanOf(l.GetRunLimit()))
	}
	if l.GetBeginTime() != nil {
		line += ", which began " + c.at(l.GetBeginTime())
	}
	lines := []string{line}
	for _, d := range l.GetDemotions() {
		text := fmt.Sprintf("%s from level %d to %d", c.at(d.GetTime()), d.GetLevel(), d.GetToLevel())
		if d.GetUsedTime().AsDuration() > 0 {
			text += fmt.Sprintf(", %s after its first task there", spanOf(d.GetUsedTime()))
		}
		text += ": " + d.GetReason()
		if d.GetSiteId() != "" {
			text += ", says site " + d.GetSiteId()
		}
		lines = append(lines, text)
	}
	return lines
}

// bagLevelText is what "kith bag why" says of the hierarchy, empty for a bag of none.
func (c *client) bagLevelText(b *kithv1.Bag) string {
	lines := c.bagLevelLines(b)
	if len(lines) == 0 {
		return ""
	}
	for i := range lines {
		lines[i] = cli.Clean(lines[i])
	}
	return "\nIts level:\n" + strings.Join(lines, "\n") + "\n"
}
