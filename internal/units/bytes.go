package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

type byteUnit struct {
	suffix string
	factor int64
}

// byteUnits has the longer suffixes first: "MB" ends in "B", too.
var byteUnits = []byteUnit{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// ParseBytes reads a size in bytes: "1048576", "512MiB", "1.5 GB". Sizes are not
// negative.
func ParseBytes(text string) (int64, error) {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(strings.TrimSpace(text), u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(v >= 0 && v*float64(u.factor) <= math.MaxInt64/2) {
			break
		}
		return int64(v * float64(u.factor)), nil
	}
	return 0, fmt.Errorf(`%q is not a size such as 1048576, "512MiB" or "10GB"`, text)
}

// FormatBytes writes a size with the largest unit of 1024 bytes that divides it.
func FormatBytes(n int64) string {
	for i := 3; i >= 0; i-- {
		if u := byteUnits[i]; n != 0 && n%u.factor == 0 {
			return strconv.FormatInt(n/u.factor, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}
