package replay

import (
	"bufio"
	"io"
	"strconv"
	"time"

	"kith/internal/job"
	"kith/testbed/metrics"
)

// Records returns a record for each job, which was submitted and ran at site.
func (s *Schedule) Records(site job.SiteID) []metrics.Record {
	records := make([]metrics.Record, len(s.Workload.Jobs))
	for i := range records {
		j := &s.Workload.Jobs[i]
		records[i] = metrics.Record{
			Job: j.ID, Origin: site, Site: site, User: j.User, Group: j.Group, Submit: j.Submit, Start: s.Starts[i],
			End: s.Ends[i], Run: j.Run, Estimate: j.Estimate, Procs: j.Procs,
		}
	}
	return records
}

// Header is the first line that [Schedule.WriteTo] writes.
const Header = "job,submit,start,end,procs,req\n"

// WriteTo writes the schedule as comma-separated values: a line for each job
// in the order of the workload, times in seconds from the first submission and
// with decimals only where they are needed.
func (s *Schedule) WriteTo(w io.Writer) (int64, error) {
	out := bufio.NewWriterSize(w, 1<<16)
	n, err := out.WriteString(Header)
	written := int64(n)
	line := make([]byte, 0, 128)
	for i := 0; i < len(s.Workload.Jobs) && err == nil; i++ {
		j := &s.Workload.Jobs[i]
		line = strconv.AppendInt(line[:0], j.ID, 10)
		for _, t := range [...]job.Time{j.Submit, s.Starts[i], s.Ends[i]} {
			line = appendSeconds(append(line, ','), t)
		}
		line = strconv.AppendInt(append(line, ','), int64(j.Procs), 10)
		line = appendSeconds(append(line, ','), job.Time(j.Estimate))
		n, err = out.Write(append(line, '\n'))
		written += int64(n)
	}
	if err == nil {
		err = out.Flush()
	}
	return written, err
}

// appendSeconds appends t in seconds, exactly.
func appendSeconds(b []byte, t job.Time) []byte {
	whole, rest := int64(t)/int64(time.Second), int64(t)%int64(time.Second)
	if whole == 0 && rest < 0 {
		b = append(b, '-')
	}
	b = strconv.AppendInt(b, whole, 10)
	if rest == 0 {
		return b
	}
	if rest < 0 {
		rest = -rest
	}
	digits := strconv.AppendInt(nil, rest+int64(time.Second), 10)[1:]
	for digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return append(append(b, '.'), digits...)
}
