package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"kith/internal/job"
)

// errWalltime says how a run time is written.
var errWalltime = errors.New("write a run time as MINUTES, MM:SS, HH:MM:SS, DAYS-HH, DAYS-HH:MM or DAYS-HH:MM:SS, or with units as 90s or 1h30m")

// unknownTime is the run time of a job of which nobody knows how long it runs.
const unknownTime time.Duration = 0

// parseTime is parseWalltime that also takes "unknown", for [unknownTime].
func parseTime(text string) (time.Duration, error) {
	if strings.EqualFold(strings.TrimSpace(text), "unknown") {
		return unknownTime, nil
	}
	return parseWalltime(text)
}

// parseLevel reads a level of a hierarchy.
func parseLevel(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 || n > job.MaxLevel {
		return 0, fmt.Errorf("a level is 1, the smallest, to %d", job.MaxLevel)
	}
	return int32(n), nil
}

// parseWalltime reads a run time in one of Slurm's forms or one of Go's.
// Slurm's words for no limit are refused: a job needs an end that schedulers
// can reckon with.
func parseWalltime(text string) (time.Duration, error) {
	d, err := readWalltime(strings.TrimSpace(text))
	switch {
	case err != nil:
		return 0, err
	case d <= 0:
		return 0, errors.New("a run time must be more than 0: there are no jobs without a limit")
	case d > job.MaxWalltime:
		return 0, errors.New("a run time is at most 10 years")
	}
	return d, nil
}

func readWalltime(text string) (time.Duration, error) {
	switch strings.ToUpper(text) {
	case "INFINITE", "UNLIMITED", "-1":
		return 0, errors.New("there are no jobs without a limit: write the longest run time you expect")
	}
	if d, err := time.ParseDuration(text); err == nil && strings.ContainsAny(text, "nuµmsh") {
		return d, nil
	}
	// More seconds than a run time may have; a sum of numbers up to it is far
	// from an overflow.
	const tooLong = 2 * int64(job.MaxWalltime/time.Second)
	clock, days, hasDays := text, int64(0), false
	if before, after, ok := strings.Cut(text, "-"); ok {
		n, err := parseNumber(before)
		if err != nil {
			return 0, errWalltime
		}
		clock, days, hasDays = after, min(n, tooLong), true
	}
	var n []int64
	for part := range strings.SplitSeq(clock, ":") {
		v, err := parseNumber(part)
		if err != nil || len(n) == 3 {
			return 0, errWalltime
		}
		n = append(n, min(v, tooLong))
	}
	var h, m, s int64
	switch {
	case hasDays:
		n = append(n, 0, 0)
		h, m, s = n[0], n[1], n[2]
	case len(n) == 3:
		h, m, s = n[0], n[1], n[2]
	case len(n) == 2:
		m, s = n[0], n[1]
	default:
		m = n[0]
	}
	return time.Duration(min(((days*24+h)*60+m)*60+s, tooLong)) * time.Second, nil
}

// parseNumber reads digits only.
func parseNumber(text string) (int64, error) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, errWalltime
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, errWalltime
	}
	return n, nil
}

// parseMemory reads an amount of memory as Slurm does, in bytes: a whole
// number with K, M, G or T, which stand for powers of 1024; without one it is M.
func parseMemory(text string) (int64, error) {
	number, shift := text, 20
	if text != "" {
		switch unit := text[len(text)-1]; unit {
		case 'K', 'k':
			shift = 10
		case 'M', 'm':
			shift = 20
		case 'G', 'g':
			shift = 30
		case 'T', 't':
			shift = 40
		default:
			shift = -1
		}
		number = text[:len(text)-1]
		if shift < 0 {
			number, shift = text, 20
		}
	}
	n, err := parseNumber(number)
	switch {
	case err != nil:
		return 0, errors.New("write a whole number with K, M, G or T, for example 4G; without a letter it counts megabytes")
	case n == 0:
		return 0, errors.New("in Slurm, 0 means all memory of a node; leave the option out for no limit of the job's own")
	case n > job.MaxMemoryBytes>>shift:
		return 0, fmt.Errorf("at most %d T", int64(job.MaxMemoryBytes)>>40)
	}
	return n << shift, nil
}

// parseNodes accepts one node: a job runs at one site on one machine.
func parseNodes(text string) (int, error) {
	if text == "1" || text == "1-1" {
		return 1, nil
	}
	return 0, errors.New("a job runs at one site on one machine; write 1, or leave the option out and ask for processors with --ntasks and --cpus-per-task")
}

// times multiplies two counts and reports whether the product is at most most.
func times(a, b, most int64) (int64, bool) {
	if a != 0 && b > math.MaxInt64/a || a*b > most {
		return 0, false
	}
	return a * b, true
}
