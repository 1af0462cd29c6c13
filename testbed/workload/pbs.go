package workload

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// looksPBS reports whether a line is a record of an accounting log of PBS or
// Torque: "MM/DD/YYYY HH:MM:SS;TYPE;ID;…".
func looksPBS(line []byte) bool {
	const form = "dd/dd/dddd dd:dd:dd;x;"
	if len(line) < len(form) {
		return false
	}
	for i := range len(form) {
		switch form[i] {
		case 'd':
			if line[i] < '0' || line[i] > '9' {
				return false
			}
		case 'x':
		default:
			if line[i] != form[i] {
				return false
			}
		}
	}
	return true
}

// parsePBS reads an accounting log of PBS or Torque. A job is what its E record
// says, which is written when it has ended; records of other types tell what
// that one repeats. The width is what was requested.
func parsePBS(in *lines, w *Workload) error {
	p := pbsParser{w: w, names: names{}}
	if err := in.each(&w.Report, p.line); err != nil {
		return err
	}
	if len(w.Jobs) > 0 {
		w.Start = time.Unix(0, 0).UTC()
	}
	return nil
}

type pbsParser struct {
	w     *Workload
	names names
}

// pbsFields are the values of an E record that matter.
type pbsFields struct {
	ctime, qtime, etime, start, end, limit, used, mem []byte
	selected, nodes, ncpus, procs, slots              []byte
	user, group                                       []byte
}

// field returns where the value of a name goes, nil if it does not matter.
func (f *pbsFields) field(name string) *[]byte {
	switch name {
	case "ctime":
		return &f.ctime
	case "qtime":
		return &f.qtime
	case "etime":
		return &f.etime
	case "start":
		return &f.start
	case "end":
		return &f.end
	case "Resource_List.walltime":
		return &f.limit
	case "resources_used.walltime":
		return &f.used
	case "Resource_List.mem":
		return &f.mem
	case "Resource_List.select":
		return &f.selected
	case "Resource_List.nodes":
		return &f.nodes
	case "Resource_List.ncpus":
		return &f.ncpus
	case "Resource_List.procs":
		return &f.procs
	case "total_execution_slots":
		return &f.slots
	case "user":
		return &f.user
	case "group":
		return &f.group
	}
	return nil
}

func (p *pbsParser) line(n int, text []byte) error {
	if !looksPBS(text) {
		p.w.Report.add(BadLine, func() string {
			return fmt.Sprintf("line %d: does not begin with a date, a time and a type: %.40q", n, text)
		})
		return nil
	}
	kind := text[len("MM/DD/YYYY HH:MM:SS;")]
	if kind != 'E' {
		return nil
	}
	id, message, ok := bytes.Cut(text[len("MM/DD/YYYY HH:MM:SS;E;"):], []byte{';'})
	number, hasNumber := leadingInt(string(id)) // 123.server, 123[4].server
	if !ok || !hasNumber {
		return p.bad(BadLine, n, "job", id)
	}
	var f pbsFields
	for pair := range bytes.FieldsSeq(message) {
		name, value, _ := bytes.Cut(pair, []byte{'='})
		if at := f.field(string(name)); at != nil {
			*at = value
		}
	}
	return p.job(n, number, &f)
}

func (p *pbsParser) bad(k Kind, line int, name string, value []byte) error {
	p.w.Report.add(k, func() string {
		if value == nil {
			return fmt.Sprintf("line %d: no %s", line, name)
		}
		return fmt.Sprintf("line %d: %s %.40q", line, name, value)
	})
	return nil
}

// job reads the values of an E record.
func (p *pbsParser) job(n int, number int64, f *pbsFields) error {
	j := logged{id: number, user: p.names.of(f.user), group: p.names.of(f.group)}
	submit, name := f.ctime, "ctime"
	switch {
	case submit == nil && f.qtime != nil:
		submit, name = f.qtime, "qtime"
	case submit == nil && f.etime != nil:
		submit, name = f.etime, "etime"
	}
	var ok bool
	if j.submit, ok = parseWhole(submit); !ok {
		return p.bad(BadValue, n, name, submit)
	}
	start, hasStart := parseWhole(f.start)
	end, hasEnd := parseWhole(f.end)
	switch {
	case hasStart && hasEnd && end < start:
		return p.bad(Negative, n, "start "+string(f.start)+", end", f.end)
	case hasStart && hasEnd && start > 0:
		j.run = end - start
	case f.used != nil:
		if j.run, ok = parseSpan(f.used); !ok {
			return p.bad(BadValue, n, "resources_used.walltime", f.used)
		}
	case f.start == nil || f.end == nil:
		return p.bad(BadValue, n, "start, end or resources_used.walltime", nil)
	default:
		return p.bad(BadValue, n, "start "+string(f.start)+", end", f.end)
	}
	if f.limit != nil {
		if j.request, ok = parseSpan(f.limit); !ok {
			return p.bad(BadValue, n, "Resource_List.walltime", f.limit)
		}
	}
	if name, value, ok := f.width(&j); !ok {
		return p.bad(BadValue, n, name, value)
	}
	if f.mem != nil {
		bytes, ok := parseBytes(string(f.mem), 1)
		if j.memory, ok = memoryIf(bytes, ok); !ok {
			return p.bad(BadValue, n, "Resource_List.mem", f.mem)
		}
	}
	return p.w.add(n, &j)
}

// memoryIf is memoryOf for an amount that may not have been read.
func memoryIf(bytes float64, ok bool) (int64, bool) {
	if !ok {
		return 0, false
	}
	return memoryOf(bytes)
}

// width finds the width of a job. A request by chunks or nodes says it all;
// ncpus is then a default of the server. If the request makes no sense, its
// name and value are returned.
func (f *pbsFields) width(j *logged) (name string, value []byte, ok bool) {
	switch {
	case f.selected != nil:
		j.procs, ok = chunks(string(f.selected), "ncpus=")
		return "Resource_List.select", f.selected, ok
	case f.nodes != nil:
		j.procs, ok = chunks(string(f.nodes), "ppn=")
		return "Resource_List.nodes", f.nodes, ok
	case f.procs != nil:
		j.procs, ok = parseWhole(f.procs)
		return "Resource_List.procs", f.procs, ok && j.procs >= 0
	case f.ncpus != nil:
		j.procs, ok = parseWhole(f.ncpus)
		return "Resource_List.ncpus", f.ncpus, ok && j.procs >= 0
	case f.slots != nil:
		j.procs, ok = parseWhole(f.slots)
		return "total_execution_slots", f.slots, ok && j.procs >= 0
	}
	return "", nil, true // counted as without processors
}

// chunks returns the processors of a request such as "2:ncpus=8:mem=4gb+1" or
// "4:ppn=8+node17:ppn=2". A chunk that names a node instead of a number is one
// of them; without the word for processors it has one.
func chunks(s, word string) (int64, bool) {
	total := int64(0)
	for chunk := range strings.SplitSeq(s, "+") {
		count, each := int64(1), int64(1)
		for i, part := range strings.Split(chunk, ":") {
			if number, found := strings.CutPrefix(part, word); found {
				v, ok := parseWhole([]byte(number))
				if !ok || v < 0 {
					return 0, false
				}
				each = min(v, tooLong)
				continue
			}
			if v, ok := parseWhole([]byte(part)); ok && i == 0 {
				if v < 0 {
					return 0, false
				}
				count = min(v, 1<<20)
			}
		}
		total = min(total+count*each, tooLong)
	}
	return total, true
}
