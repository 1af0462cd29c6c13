// Package donemark reads the file that a job writes last when it has saved what it has done: a
// number from 1 on, which grows. It imports nothing, as a shim reads the file, too.
package donemark

// Most is the most that the file may have, in bytes: a number, and blanks around it.
const Most = 32

// Parse returns the number, and false if the content is none.
func Parse(b []byte) (uint64, bool) {
	if len(b) > Most {
		return 0, false
	}
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && blank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' || n > (1<<64-1-uint64(c-'0'))/10 {
			return 0, false
		}
		n = 10*n + uint64(c-'0')
	}
	return n, n > 0
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
