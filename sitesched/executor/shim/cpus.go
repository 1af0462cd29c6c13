package shim

import (
	"strconv"
	"strings"
)

// maxCPU bounds processor numbers; it is what the affinity calls of the kernel take here.
const maxCPU = 1024

// appendCPUs writes ascending processor numbers the way the kernel does: "0-3,8".
func appendCPUs(b []byte, cpus []int) []byte {
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(cpus[i]), 10)
		if j > i {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(cpus[j]), 10)
		}
		i = j + 1
	}
	return b
}

// parseCPUs reads what appendCPUs wrote, and nothing that names a processor twice.
func parseCPUs(s string) ([]int, bool) {
	if s == "" {
		return nil, true
	}
	var cpus []int
	next := 0
	for part := range strings.SplitSeq(s, ",") {
		lowText, highText, ranged := strings.Cut(part, "-")
		if !ranged {
			highText = lowText
		}
		low, err := strconv.Atoi(lowText)
		high, err2 := strconv.Atoi(highText)
		if err != nil || err2 != nil || low < next || high < low || high >= maxCPU {
			return nil, false
		}
		for cpu := low; cpu <= high; cpu++ {
			cpus = append(cpus, cpu)
		}
		next = high + 1
	}
	return cpus, true
}
