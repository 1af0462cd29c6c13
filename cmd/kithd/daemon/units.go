package daemon

import (
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a duration as the configuration writes it: "5s", "1h30m".
type Duration time.Duration

// D returns the duration.
func (d Duration) D() time.Duration { return time.Duration(d) }

// String implements fmt.Stringer.
func (d Duration) String() string { return time.Duration(d).String() }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf(`%q is not a duration such as "5s" or "1h30m"`, text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Bytes is a size as the configuration writes it: a number of bytes, or "10GiB", "500MB".
type Bytes int64

var byteUnits = []struct {
	suffix string
	factor float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// ParseBytes reads a size.
func ParseBytes(text string) (Bytes, error) {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(strings.TrimSpace(text), u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || v < 0 || v*u.factor > math.MaxInt64/2 || math.IsNaN(v) {
			break
		}
		return Bytes(v * u.factor), nil
	}
	return 0, fmt.Errorf(`%q is not a size such as 1048576, "512MiB" or "10GB"`, text)
}

// UnmarshalTOML implements toml.Unmarshaler: sizes may be numbers or texts.
func (b *Bytes) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case int64:
		*b = Bytes(v)
		return nil
	case string:
		parsed, err := ParseBytes(v)
		*b = parsed
		return err
	}
	return fmt.Errorf(`%v is not a size such as 1048576, "512MiB" or "10GB"`, v)
}

func (l LogConfig) level() (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return 0, fmt.Errorf("log.level %q: choose debug, info, warn or error", l.Level)
	}
	return level, nil
}
