package faults

import (
	"fmt"
	"strings"
)

// Of a long story so many lines are kept at its beginning and at its end.
const storyHead, storyTail = 240, 60

// WholeStory plays a schedule and returns what happened, for people: without the
// chatter of sites that compare what they hold and say how loaded they are.
func WholeStory(s *Schedule) (story []string) {
	Run(s, func(line string) {
		if !chatter(line) {
			story = append(story, line)
		}
	})
	return story
}

// Story is [WholeStory] without the middle of a long one.
func Story(s *Schedule) []string {
	var head, tail []string
	dropped := 0
	Run(s, func(line string) {
		switch {
		case chatter(line):
		case len(head) < storyHead:
			head = append(head, line)
		default:
			if len(tail) == storyTail {
				tail = tail[:copy(tail, tail[1:])]
				dropped++
			}
			tail = append(tail, line)
		}
	})
	if dropped > 0 {
		head = append(head, fmt.Sprintf("… %d lines are left out", dropped))
	}
	return append(head, tail...)
}

// chatter tells lines that only matter to those who look for them.
func chatter(line string) bool {
	for _, word := range []string{": load-digest", ": copy-summary", ": digest-request"} {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}
