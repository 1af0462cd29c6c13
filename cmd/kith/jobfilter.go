package main

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// jobFilter selects jobs of a list. The site is asked to, and what it sends is
// looked through again: a site of an older version selects by labels and states only.
type jobFilter struct {
	users, names string
}

// register adds the flags.
func (f *jobFilter) register(flags *pflag.FlagSet) {
	flags.StringVarP(&f.users, "user", "u", "", "only jobs of these users, as `USER[,USER...]`")
	flags.StringVarP(&f.names, "name", "n", "", "only jobs of these names, as `NAME[,NAME...]`")
}

// ask puts the selection into a request.
func (f *jobFilter) ask(r *kithv1.ListJobsRequest) {
	r.Users, r.Names = words(f.users), words(f.names)
}

// words takes a list with commas apart; an empty list has none.
func words(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// keep returns the jobs that are selected.
func (f *jobFilter) keep(jobs []*kithv1.Job) []*kithv1.Job {
	return slices.DeleteFunc(jobs, func(j *kithv1.Job) bool {
		return !oneOf(f.users, j.GetStatus().GetUser()) || !oneOf(f.names, j.GetName())
	})
}

// keepBags returns the bags that are selected.
func (f *jobFilter) keepBags(bags []*kithv1.Bag) []*kithv1.Bag {
	return slices.DeleteFunc(bags, func(b *kithv1.Bag) bool {
		return !oneOf(f.users, b.GetStatus().GetUser()) || !oneOf(f.names, b.GetJob().GetName())
	})
}

// oneOf reports whether a list has a word; an empty list has all.
func oneOf(list, word string) bool {
	return list == "" || slices.Contains(words(list), word)
}

// timeFlag is a flag for an instant.
func (c *client) timeFlag() cli.Parsed[time.Time] {
	return cli.Parsed[time.Time]{Kind: "WHEN", Parse: c.parseWhen}
}

// parseWhen reads an instant: a date with or without a time of day in the
// user's zone, or how long ago it was.
func (c *client) parseWhen(text string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", time.DateTime} {
		if t, err := time.ParseInLocation(layout, text, c.Zone); err == nil {
			return t, nil
		}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return c.Now().Add(-ago), nil
	}
	return time.Time{}, errors.New("write a date as 2026-11-22, with a time of day as 2026-11-22T15:04, or how long ago it was, as 90m or 24h")
}

// between keeps the jobs that were submitted from since to until; a zero time
// bounds nothing.
func between(jobs []*kithv1.Job, since, until time.Time) []*kithv1.Job {
	return slices.DeleteFunc(jobs, func(j *kithv1.Job) bool {
		at := j.GetStatus().GetSubmitTime().AsTime()
		return at.Before(since) || !until.IsZero() && at.After(until)
	})
}
