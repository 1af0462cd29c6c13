package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kith/internal/job"
)

// The fields of the Standard Workload Format that matter here, counting from 0.
// -1 stands for unknown.
const (
	swfJob             = 0
	swfSubmit          = 1 // seconds since the start of the log
	swfRun             = 3 // seconds
	swfAllocated       = 4 // processors
	swfRequested       = 7 // processors
	swfRequestedTime   = 8 // seconds: the user's estimate
	swfRequestedMemory = 9 // kilobytes per processor
	swfUser            = 11
	swfGroup           = 12
	swfFields          = 18
)

// swfNames are for messages.
var swfNames = [swfFields]string{
	"job", "submit", "wait", "run", "allocated processors", "average cpu", "used memory", "requested processors",
	"requested time", "requested memory", "status", "user", "group", "executable", "queue", "partition",
	"preceding job", "think time",
}

// parseSWF reads the Standard Workload Format: comment lines, many of the form
// "; Name: value", and a line of 18 numbers for each job. The width is what was
// requested, else what was allocated.
func parseSWF(in *lines, w *Workload) error {
	p := swfParser{w: w}
	if err := in.each(&w.Report, p.line); err != nil {
		return err
	}
	p.header()
	return nil
}

type swfParser struct {
	w *Workload
	// maxProcs, maxNodes, start and zone are what the header says.
	maxProcs, maxNodes, start, zone int64
	names                           numerals
	fields                          [swfFields][]byte
	values                          [swfFields]int64
}

func (p *swfParser) line(n int, text []byte) error {
	if text[0] == ';' {
		p.comment(string(text[1:]))
		return nil
	}
	if count := split(text, p.fields[:]); count != swfFields {
		p.w.Report.add(BadLine, func() string {
			if count > swfFields {
				return fmt.Sprintf("line %d: more than %d fields", n, swfFields)
			}
			return fmt.Sprintf("line %d: %d fields of %d", n, count, swfFields)
		})
		return nil
	}
	v := &p.values
	for _, i := range [...]int{swfJob, swfSubmit, swfRun, swfAllocated, swfRequested, swfRequestedTime, swfUser, swfGroup} {
		var ok bool
		if v[i], ok = parseWhole(p.fields[i]); !ok {
			return p.bad(BadValue, n, i)
		}
		if v[i] < -1 || v[i] < 0 && i == swfSubmit {
			return p.bad(Negative, n, i)
		}
	}
	j := logged{
		id: v[swfJob], submit: v[swfSubmit], run: v[swfRun], request: v[swfRequestedTime], procs: v[swfRequested],
		user: p.names.of(v[swfUser]), group: p.names.of(v[swfGroup]),
	}
	if j.procs <= 0 {
		j.procs = v[swfAllocated]
	}
	if text := p.fields[swfRequestedMemory]; string(text) != "-1" {
		perProcessor, err := strconv.ParseFloat(string(text), 64)
		memory, ok := memoryOf(perProcessor * 1024 * float64(max(j.procs, 0)))
		if err != nil || !ok {
			return p.bad(BadValue, n, swfRequestedMemory)
		}
		j.memory = memory
	}
	return p.w.add(n, &j)
}

// bad counts the line for what is wrong with one of its fields.
func (p *swfParser) bad(k Kind, line, field int) error {
	p.w.Report.add(k, func() string {
		return fmt.Sprintf("line %d: field %d (%s) %.40q", line, field+1, swfNames[field], p.fields[field])
	})
	return nil
}

// comment notes what a header line says, if it is one that matters.
func (p *swfParser) comment(text string) {
	name, value, ok := strings.Cut(text, ":")
	if !ok {
		return
	}
	value = strings.TrimSpace(value)
	switch strings.TrimSpace(name) {
	case "MaxProcs":
		p.maxProcs, _ = leadingInt(value)
	case "MaxNodes":
		p.maxNodes, _ = leadingInt(value)
	case "MaxRecords", "MaxJobs":
		// Only a hint, so that the jobs need not be moved as they come.
		if n, _ := leadingInt(value); n <= 1<<18 && int64(cap(p.w.Jobs)) < n {
			p.w.Jobs = slices.Grow(p.w.Jobs, int(n)-len(p.w.Jobs))
		}
	case "UnixStartTime":
		p.start, _ = leadingInt(value)
	case "TimeZone": // seconds east of Greenwich
		if v, err := strconv.ParseInt(value, 10, 32); err == nil && v > -86400 && v < 86400 {
			p.zone = v
		}
	}
}

// header applies the header: the size of the machine is MaxProcs, else MaxNodes.
func (p *swfParser) header() {
	size := p.maxProcs
	if size <= 0 {
		size = p.maxNodes
	}
	if size > 0 && size <= job.MaxProcessors {
		p.w.Processors = int32(size)
	}
	if p.start > 0 && p.start < maxClock {
		p.w.Start = time.Unix(p.start, 0).In(time.FixedZone("", int(p.zone)))
	}
}
