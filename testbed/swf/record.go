package swf

// Trace is a whole log.
type Trace struct {
	// Header holds the named header lines in the order of the log. A name may
	// occur more than once.
	Header []HeaderField
	// Records are the jobs in the order of the log.
	Records []Record
}

// HeaderField is a header line "; Name: Value".
type HeaderField struct {
	Name, Value string
	// Line counts from 1.
	Line int
}

// Record is one line of the log, with the 18 fields of the format in their
// order. Times are in seconds. -1 stands for unknown.
type Record struct {
	Job                 int64   // 1: number, counting from 1
	Submit              int64   // 2: since the start of the log
	Wait                int64   // 3: from submission to start
	Run                 int64   // 4: from start to end
	AllocatedProcessors int64   // 5
	AverageCPU          float64 // 6: CPU time used, averaged over the processors
	UsedMemory          float64 // 7: kilobytes per processor
	RequestedProcessors int64   // 8
	RequestedTime       int64   // 9: the user's estimate
	RequestedMemory     float64 // 10: kilobytes per processor
	Status              int64   // 11: 1 completed, 0 failed, 5 cancelled
	User                int64   // 12
	Group               int64   // 13
	Executable          int64   // 14
	Queue               int64   // 15
	Partition           int64   // 16
	PrecedingJob        int64   // 17: this job waited for that one to end
	ThinkTime           int64   // 18: from then to submission
}

// Value returns the value of the first header field of that name, "" if there is none.
func (t *Trace) Value(name string) string {
	for _, f := range t.Header {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// MaxProcessors returns the size of the machine according to the header:
// MaxProcs, else MaxNodes; zero if it says neither.
func (t *Trace) MaxProcessors() int64 {
	for _, name := range []string{"MaxProcs", "MaxNodes"} {
		if n, ok := leadingInt(t.Value(name)); ok {
			return n
		}
	}
	return 0
}

// leadingInt reads the digits at the start of s: some logs go on with a remark.
func leadingInt(s string) (n int64, ok bool) {
	for i := 0; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		if n > (1<<62)/10 {
			return 0, false
		}
		n, ok = n*10+int64(s[i]-'0'), true
	}
	return n, ok
}
