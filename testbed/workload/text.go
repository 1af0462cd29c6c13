package workload

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"

	"kith/internal/job"
)

// split cuts text at blanks into fields and returns how many there are, which
// may be one more than fit.
func split(text []byte, fields [][]byte) int {
	n := 0
	for i := 0; i < len(text); {
		if text[i] == ' ' || text[i] == '\t' {
			i++
			continue
		}
		from := i
		for i < len(text) && text[i] != ' ' && text[i] != '\t' {
			i++
		}
		if n == len(fields) {
			return n + 1
		}
		fields[n] = text[from:i]
		n++
	}
	return n
}

// parseWhole reads a whole number of up to 18 digits.
func parseWhole(b []byte) (int64, bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	n := int64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// leadingInt reads the digits at the start of s: some fields go on with a remark.
func leadingInt(s string) (n int64, ok bool) {
	for i := 0; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		if n > (1<<62)/10 {
			return 0, false
		}
		n, ok = n*10+int64(s[i]-'0'), true
	}
	return n, ok
}

// parseSpan reads a time as Slurm and PBS write it, in seconds: [D-]HH:MM:SS,
// MM:SS, D-HH, D-HH:MM or SS, the last part with decimals or without. What is
// too large for any use stays so.
func parseSpan(b []byte) (seconds int64, ok bool) {
	days, clock, hasDays := bytes.Cut(b, []byte{'-'})
	if !hasDays {
		days, clock = nil, b
	}
	var parts [3]int64
	n := 0
	for part := range bytes.SplitSeq(clock, []byte{':'}) {
		if n == len(parts) {
			return 0, false
		}
		if whole, decimals, cut := bytes.Cut(part, []byte{'.'}); cut {
			if v, good := parseWhole(decimals); !good || v < 0 {
				return 0, false
			}
			part = whole
		}
		v, good := parseWhole(part)
		if !good || v < 0 {
			return 0, false
		}
		parts[n] = min(v, tooLong)
		n++
	}
	h, m, s := parts[0], parts[1], parts[2]
	switch {
	case hasDays:
		v, good := parseWhole(days)
		if !good || v < 0 {
			return 0, false
		}
		h += min(v, tooLong) * 24
	case n == 2:
		h, m, s = 0, parts[0], parts[1]
	case n == 1:
		h, m, s = 0, 0, parts[0]
	}
	return h*3600 + m*60 + s, true
}

// tooLong is more than any run time may be, in any unit of a span, and small
// enough to be summed up.
const tooLong = 1 << 40

// wallForms and zoneForms are what sacct prints with its various settings,
// without and with a zone.
var (
	wallForms = [...]string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04"}
	zoneForms = [...]string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05-0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05-0700"}
)

// parseInstant reads an instant in seconds since 1970: a date and time with or
// without a zone, or the number itself. Without a zone it is the site's wall
// clock, which is read as one of the given zone.
func parseInstant(b []byte, zone *time.Location) (seconds int64, wall, ok bool) {
	if len(b) == len(wallForms[0]) {
		if v, ok := parseClock(b, zone); ok {
			return v, true, true
		}
	}
	if v, ok := parseWhole(b); ok && v >= 0 {
		return v, false, true
	}
	if len(b) > 40 {
		return 0, false, false
	}
	s := string(b)
	for _, form := range wallForms {
		if t, err := time.ParseInLocation(form, s, zone); err == nil {
			return t.Unix(), true, true
		}
	}
	for _, form := range zoneForms {
		if t, err := time.Parse(form, s); err == nil {
			return t.Unix(), false, true
		}
	}
	return 0, false, false
}

// parseClock is parseInstant for YYYY-MM-DDTHH:MM:SS, which most are.
func parseClock(b []byte, zone *time.Location) (int64, bool) {
	const form = "dddd-dd-ddTdd:dd:dd"
	for i := range len(form) {
		if form[i] == 'd' && (b[i] < '0' || b[i] > '9') || form[i] != 'd' && b[i] != form[i] && (form[i] != 'T' || b[i] != ' ') {
			return 0, false
		}
	}
	two := func(i int) int { return int(b[i]-'0')*10 + int(b[i+1]-'0') }
	year, month, day, h, m, s := two(0)*100+two(2), two(5), two(8), two(11), two(14), two(17)
	if month < 1 || month > 12 || day < 1 || h > 23 || m > 59 || s > 60 {
		return 0, false
	}
	t := time.Date(year, time.Month(month), day, h, m, s, 0, zone)
	return t.Unix(), t.Day() == day || s == 60
}

// parseBytes reads an amount of memory such as 4G, 512mb or 100 in bytes; a
// number without a unit counts unit bytes.
func parseBytes(s string, unit float64) (bytes float64, ok bool) {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
		i++
	}
	v, err := strconv.ParseFloat(s[:i], 64)
	if err != nil {
		return 0, false
	}
	switch suffix := strings.TrimSuffix(strings.ToLower(s[i:]), "b"); suffix {
	case "":
		if i < len(s) { // a lone b
			unit = 1
		}
	case "k", "m", "g", "t", "p":
		unit = math.Ldexp(1, 10*(1+strings.Index("kmgtp", suffix)))
	default:
		return 0, false
	}
	return v * unit, true
}

// memoryOf returns an amount of memory as jobs have it; false if it is absurd.
func memoryOf(bytes float64) (int64, bool) {
	if !(bytes >= 0 && bytes <= job.MaxMemoryBytes) { // also NaN
		return 0, false
	}
	return int64(bytes), true
}

// numerals keeps the texts of small numbers, so that a name that occurs a
// thousand times is one string.
type numerals struct {
	small []string
}

// of returns n in digits, "" for -1.
func (m *numerals) of(n int64) string {
	const most = 1 << 16
	switch {
	case n < 0:
		return ""
	case n >= most:
		return strconv.FormatInt(n, 10)
	}
	for int64(len(m.small)) <= n {
		m.small = append(m.small, "")
	}
	if m.small[n] == "" {
		m.small[n] = strconv.FormatInt(n, 10)
	}
	return m.small[n]
}

// names keeps one string for each name.
type names map[string]string

// of returns the text as a string. Very many different ones are not kept.
func (m names) of(b []byte) string {
	if s, ok := m[string(b)]; ok {
		return s
	}
	const longest, most = 256, 1 << 20
	s := string(b[:min(len(b), longest)])
	if len(m) < most {
		m[s] = s
	}
	return s
}
