package workload

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
)

// SacctCommand prints what [Open] reads of Slurm's accounting. Other columns
// may be there, in any order.
const SacctCommand = "sacct -a -X -P -o JobID,User,Group,Submit,Start,End,Elapsed,Timelimit,AllocCPUS,ReqMem,State"

// ErrColumns is wrapped when the header line of sacct lacks a column.
var ErrColumns = errors.New("a column is missing; this prints all: " + SacctCommand)

// sacctColumn is a column of sacct -P, by the meaning it has here.
type sacctColumn uint8

const (
	colJob sacctColumn = iota
	colJobRaw
	colSubmit
	colStart
	colEnd
	colElapsed
	colElapsedRaw // seconds
	colLimit
	colLimitRaw // minutes
	colAllocated
	colAllocatedToo // another name of it
	colRequested
	colMemory
	colNodes
	colState
	colUser
	colGroup
	colAccount
	sacctColumns
)

var sacctNames = [sacctColumns]string{
	"JobID", "JobIDRaw", "Submit", "Start", "End", "Elapsed", "ElapsedRaw", "Timelimit", "TimelimitRaw",
	"AllocCPUS", "NCPUS", "ReqCPUS", "ReqMem", "NNodes", "State", "User", "Group", "Account",
}

// looksSacct reports whether a line is the header line of sacct -P.
func looksSacct(line []byte) bool {
	for cell := range bytes.SplitSeq(line, []byte{'|'}) {
		if bytes.EqualFold(cell, []byte("JobID")) || bytes.EqualFold(cell, []byte("JobIDRaw")) {
			return bytes.IndexByte(line, '|') >= 0
		}
	}
	return false
}

// sacctParser reads sacct -P: a header line that names the columns, then a
// line for each job. The width is what was allocated, for that is what the
// machine had to give, else what was requested. Without a Group, the Account
// stands for it.
type sacctParser struct {
	w     *Workload
	names names
	// zone is that of instants without one.
	zone *time.Location
	// at is where each column stands, -1 if it is not there.
	at      [sacctColumns]int
	columns int
	cells   [][]byte
}

func parseSacct(in *lines, w *Workload) error {
	p := sacctParser{w: w, names: names{}, zone: in.zone}
	if err := in.each(&w.Report, p.line); err != nil {
		return err
	}
	if len(w.Jobs) > 0 {
		w.Start = time.Unix(0, 0).In(p.zone)
	}
	return nil
}

func (p *sacctParser) line(n int, text []byte) error {
	if looksSacct(text) {
		// Once more where outputs were put together.
		return p.header(n, text)
	}
	if p.columns == 0 {
		p.w.Report.add(BadLine, func() string { return fmt.Sprintf("line %d: ahead of the header line", n) })
		return nil
	}
	p.cells = p.cells[:0]
	for cell := range bytes.SplitSeq(text, []byte{'|'}) {
		p.cells = append(p.cells, bytes.TrimSpace(cell))
	}
	// sacct -p ends each line with the separator.
	if len(p.cells) == p.columns+1 && len(p.cells[p.columns]) == 0 {
		p.cells = p.cells[:p.columns]
	}
	if len(p.cells) != p.columns {
		p.w.Report.add(BadLine, func() string {
			return fmt.Sprintf("line %d: %d columns, the header line has %d", n, len(p.cells), p.columns)
		})
		return nil
	}
	return p.job(n)
}

// header notes where the columns stand.
func (p *sacctParser) header(line int, text []byte) error {
	for c := range p.at {
		p.at[c] = -1
	}
	text = bytes.TrimSuffix(text, []byte{'|'})
	p.columns = 0
	for cell := range bytes.SplitSeq(text, []byte{'|'}) {
		for c, name := range sacctNames {
			if bytes.EqualFold(bytes.TrimSpace(cell), []byte(name)) {
				p.at[c] = p.columns
			}
		}
		p.columns++
	}
	for _, need := range [...][]sacctColumn{
		{colSubmit}, {colElapsed, colElapsedRaw, colStart}, {colElapsed, colElapsedRaw, colEnd}, {colAllocated, colAllocatedToo, colRequested},
	} {
		var missing []string
		for _, c := range need {
			if p.at[c] >= 0 {
				missing = nil
				break
			}
			missing = append(missing, sacctNames[c])
		}
		if missing != nil {
			return fmt.Errorf("line %d: no %s: %w", line, strings.Join(missing, " or "), ErrColumns)
		}
	}
	return nil
}

// cell returns a cell of the line, nil if it is not there or says nothing.
func (p *sacctParser) cell(c sacctColumn) []byte {
	if p.at[c] < 0 {
		return nil
	}
	switch cell := p.cells[p.at[c]]; string(cell) {
	case "", "Unknown", "None", "N/A", "INVALID", "(null)":
		return nil
	default:
		return cell
	}
}

func (p *sacctParser) bad(k Kind, line int, c sacctColumn) error {
	p.w.Report.add(k, func() string { return fmt.Sprintf("line %d: %s %.40q", line, sacctNames[c], p.cells[p.at[c]]) })
	return nil
}

// job reads a line that has all its columns.
func (p *sacctParser) job(n int) error {
	id := p.cell(colJob)
	if id == nil || bytes.IndexByte(id, '.') < 0 && p.cell(colJobRaw) != nil {
		id = p.cell(colJobRaw) // of array jobs, it alone is unique
	}
	if bytes.IndexByte(id, '.') >= 0 {
		p.w.Report.add(Step, func() string { return fmt.Sprintf("line %d: %.40s", n, id) })
		return nil
	}
	j := logged{user: p.names.of(p.cell(colUser)), group: p.names.of(p.cell(colGroup))}
	if j.group == "" {
		j.group = p.names.of(p.cell(colAccount))
	}
	var ok bool
	if j.id, ok = leadingInt(string(id)); !ok { // 123, 123_4, 123_[5-9], 123+1
		at := colJob
		if p.at[colJob] < 0 {
			at = colJobRaw
		}
		return p.bad(BadValue, n, at)
	}
	state, _, _ := bytes.Cut(p.cell(colState), []byte{' '}) // CANCELLED by 1000
	switch string(state) {
	case "PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING":
		p.w.Report.add(Unfinished, func() string { return fmt.Sprintf("line %d: job %d is %s", n, j.id, state) })
		return nil
	}
	if c, ok := p.times(n, &j); !ok {
		return p.bad(BadValue, n, c)
	}
	for _, c := range [...]sacctColumn{colAllocated, colAllocatedToo, colRequested} {
		text := p.cell(c)
		if text == nil || j.procs > 0 {
			continue
		}
		if j.procs, ok = parseWhole(text); !ok {
			return p.bad(BadValue, n, c)
		}
		if j.procs < 0 {
			return p.bad(Negative, n, c)
		}
	}
	if j.memory, ok = p.memory(j.procs); !ok {
		return p.bad(BadValue, n, colMemory)
	}
	return p.w.add(n, &j)
}

// times reads submission, run time and limit. If one makes no sense it returns
// which. A job that never started has no run time.
func (p *sacctParser) times(n int, j *logged) (wrong sacctColumn, ok bool) {
	var wall bool
	if j.submit, wall, ok = parseInstant(p.cell(colSubmit), p.zone); !ok {
		return colSubmit, false
	}
	p.w.WallClock = p.w.WallClock || wall
	start, end := p.cell(colStart), p.cell(colEnd)
	switch {
	case p.at[colElapsedRaw] >= 0:
		if j.run, ok = parseWhole(p.cell(colElapsedRaw)); !ok {
			return colElapsedRaw, false
		}
	case p.at[colElapsed] >= 0:
		if j.run, ok = parseSpan(p.cell(colElapsed)); !ok {
			return colElapsed, false
		}
	case start != nil && end != nil:
		from, _, ok := parseInstant(start, p.zone)
		if !ok {
			return colStart, false
		}
		to, _, ok := parseInstant(end, p.zone)
		if !ok {
			return colEnd, false
		}
		j.run = to - from
	}
	if raw := p.cell(colLimitRaw); raw != nil {
		if minutes, ok := parseWhole(raw); ok {
			j.request = min(minutes, tooLong) * 60
			return 0, true
		}
	}
	switch limit := p.cell(colLimit); strings.ToUpper(string(limit)) {
	case "", "UNLIMITED", "PARTITION_LIMIT":
		// The run time is taken, and counted.
	default:
		if j.request, ok = parseSpan(limit); !ok {
			return colLimit, false
		}
	}
	return 0, true
}

// memory reads the memory that was asked for: of the job, of each node (4Gn)
// or of each processor (4Gc).
func (p *sacctParser) memory(procs int64) (int64, bool) {
	text := string(p.cell(colMemory))
	if text == "" || text == "?" || text == "0" {
		return 0, true
	}
	times := 1.0
	switch text[len(text)-1] {
	case 'c':
		times, text = float64(max(procs, 1)), text[:len(text)-1]
	case 'n':
		if nodes, ok := leadingInt(string(p.cell(colNodes))); ok {
			times = float64(max(nodes, 1))
		}
		text = text[:len(text)-1]
	}
	const mega = 1 << 20 // Slurm's unit where none is written
	bytes, ok := parseBytes(text, mega)
	if !ok {
		return 0, false
	}
	return memoryOf(bytes * times)
}
