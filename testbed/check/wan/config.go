package wan

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// Config describes a proxy.
type Config struct {
	// Seed is where the jitter comes from. Zero is a seed like any other.
	Seed uint64 `toml:"seed"`
	// Control is where commands are taken: "unix:" and a path, or a loopback
	// address with a port. Empty: nowhere.
	Control string `toml:"control"`
	// BufferBytes is the most that one way of one connection holds. It bounds
	// the throughput of a connection to BufferBytes in a delay. Zero: 8 MiB.
	BufferBytes int `toml:"buffer_bytes"`
	// MaxConnections is the most connections of one link. Zero: 1024.
	MaxConnections int `toml:"max_connections"`
	// Links are the links; at least one.
	Links []LinkConfig `toml:"link"`
}

// LinkConfig describes a link.
type LinkConfig struct {
	// From names the site that dials, To the one that is dialled: 1 to 64 of
	// letters, digits, '-', '_' and '.'. Several links may have the same names.
	From string `toml:"from"`
	To   string `toml:"to"`
	// Listen is the TCP address to accept at; port 0 takes a free one.
	Listen string `toml:"listen"`
	// Target is the TCP address to dial for each connection.
	Target string `toml:"target"`
	// Path is how bytes travel, from From to To, and back unless Back is given.
	Path
	// Back is how bytes travel from To to From, if otherwise.
	Back *Path `toml:"back"`
}

// A Path is how bytes travel one way.
type Path struct {
	// Delay is how long a byte is under way: 0 to 1 min, whole microseconds.
	Delay time.Duration `toml:"delay"`
	// Jitter is added to the delay, evenly spread from 0 to this: 0 to 1 min.
	Jitter time.Duration `toml:"jitter"`
	// BytesPerSecond is what all connections of the link share. Zero: no limit.
	BytesPerSecond int64 `toml:"bytes_per_second"`
}

// Bounds and defaults.
const (
	maxDelay              = time.Minute
	defaultBufferBytes    = 8 << 20
	defaultMaxConnections = 1024
)

// ErrBadConfig is returned when a configuration is wrong; the text names the
// field and its value.
var ErrBadConfig = errors.New("the configuration of the network is wrong")

// ReadConfig reads a configuration from a TOML file; see [ParseConfig].
func ReadConfig(path string) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, err
	}
	c, err := ParseConfig(string(text))
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// ParseConfig reads a configuration in TOML and validates it. An unknown key
// is an error, like everything else that is wrong; they wrap [ErrBadConfig].
func ParseConfig(text string) (Config, error) {
	var c Config
	meta, err := toml.Decode(text, &c)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrBadConfig, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return Config{}, fmt.Errorf("unknown key %q: %w", unknown[0].String(), ErrBadConfig)
	}
	if err := c.Validate(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// Validate returns all that is wrong with c, joined, or nil.
func (c *Config) Validate() error {
	var errs []error
	bad := func(field string, value any, rule string) {
		errs = append(errs, fmt.Errorf("%s %v: %s: %w", field, value, rule, ErrBadConfig))
	}
	if c.BufferBytes < 0 || c.BufferBytes > 1<<30 {
		bad("buffer_bytes", c.BufferBytes, "must be 1 to 1073741824, or 0 for 8 MiB")
	}
	if c.MaxConnections < 0 {
		bad("max_connections", c.MaxConnections, "must be at least 1, or 0 for 1024")
	}
	if _, _, err := controlAddress(c.Control); err != nil {
		bad("control", fmt.Sprintf("%q", c.Control), err.Error())
	}
	if len(c.Links) == 0 {
		bad("link", "none", "there must be at least one")
	}
	for i := range c.Links {
		c.Links[i].validate(func(field string, value any, rule string) {
			bad(fmt.Sprintf("link[%d].%s", i, field), value, rule)
		})
	}
	return errors.Join(errs...)
}

// validate calls bad for each field that is wrong.
func (l *LinkConfig) validate(bad func(field string, value any, rule string)) {
	for _, site := range [][2]string{{"from", l.From}, {"to", l.To}} {
		if err := checkName(site[1]); err != nil {
			bad(site[0], fmt.Sprintf("%q", site[1]), err.Error())
		}
	}
	if l.From == l.To {
		bad("to", fmt.Sprintf("%q", l.To), "must be another site than from")
	}
	for _, end := range [][2]string{{"listen", l.Listen}, {"target", l.Target}} {
		if _, _, err := net.SplitHostPort(end[1]); err != nil {
			bad(end[0], fmt.Sprintf("%q", end[1]), "must be HOST:PORT")
		}
	}
	l.Path.validate("", bad)
	if l.Back != nil {
		l.Back.validate("back.", bad)
	}
}

// validate calls bad for each field that is wrong.
func (p Path) validate(prefix string, bad func(field string, value any, rule string)) {
	if err := checkDelay(p.Delay); err != nil {
		bad(prefix+"delay", p.Delay, err.Error())
	}
	if err := checkDelay(p.Jitter); err != nil {
		bad(prefix+"jitter", p.Jitter, err.Error())
	}
	if p.BytesPerSecond < 0 {
		bad(prefix+"bytes_per_second", p.BytesPerSecond, "must not be negative")
	}
}

// checkDelay refuses also what a number without a unit would become.
func checkDelay(d time.Duration) error {
	if d < 0 || d > maxDelay || d%time.Microsecond != 0 {
		return errors.New(`must be 0 to 1 min in whole microseconds, written like "20ms"`)
	}
	return nil
}

// checkName returns an error unless name can name a site.
func checkName(name string) error {
	bad := name == "" || len(name) > 64 || name == "all" || strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
	if bad {
		return errors.New("must be 1 to 64 of letters, digits, '-', '_' and '.', and not \"all\"")
	}
	return nil
}

// controlAddress splits the address of the control socket. Both are empty if
// text is.
func controlAddress(text string) (network, address string, err error) {
	if text == "" {
		return "", "", nil
	}
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if path == "" {
			return "", "", errors.New("the path after \"unix:\" is missing")
		}
		return "unix", path, nil
	}
	host, _, err := net.SplitHostPort(text)
	if err != nil {
		return "", "", errors.New("must be \"unix:PATH\" or a loopback HOST:PORT")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", "", errors.New("is not a loopback address, and anyone who reaches it can cut links")
	}
	return "tcp", text, nil
}

// withDefaults fills in what zero and nil stand for.
func (c Config) withDefaults() Config {
	if c.BufferBytes == 0 {
		c.BufferBytes = defaultBufferBytes
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = defaultMaxConnections
	}
	return c
}
