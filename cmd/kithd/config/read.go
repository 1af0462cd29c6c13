package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"kith/internal/pathkind"
	"kith/internal/strict"
	"kith/internal/units"
	"kith/meta"
	"kith/sitesched"
)

// mostBytes bounds a configuration file.
const mostBytes = 1 << 20

// Load reads and checks a file. The error is the file system's, or [Mistakes].
func Load(path string) (Config, error) {
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, fmt.Errorf("config: %w; make one with: kithd init --site NAME, or name it with --config FILE", err)
	}
	if err != nil {
		return Config{}, fmt.Errorf("config: %w", err)
	}
	return parse(path, string(text))
}

// readFile reads a file that is one: a pipe would be waited for, a device read without an end.
func readFile(path string) ([]byte, error) {
	if err := pathkind.File(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err == nil && len(text) > mostBytes {
		err = fmt.Errorf("%s has more than %d bytes: no configuration is that long", path, mostBytes)
	}
	return text, err
}

// Parse reads and checks the text of a configuration. The error is [Mistakes].
func Parse(text string) (Config, error) { return parse("", text) }

func parse(file, text string) (Config, error) {
	r := reader{file: file, doc: strict.Read(text), c: Default(), set: make(map[string]bool), wrong: make(map[string]bool)}
	for _, f := range r.doc.Faults {
		r.mistakes = append(r.mistakes, Mistake{File: file, Line: f.Line, Says: f.Says})
	}
	if len(r.doc.Values) > 0 || len(r.doc.Faults) == 0 {
		r.read()
		r.c.check(r.bad)
	}
	if len(r.mistakes) > 0 {
		slices.SortStableFunc(r.mistakes, func(a, b Mistake) int { return cmp.Compare(a.Line, b.Line) })
		return Config{}, r.mistakes
	}
	return r.c, nil
}

// Validate returns all that is wrong as [Mistakes], or nil.
func (c *Config) Validate() error {
	r := reader{c: *c, wrong: make(map[string]bool)}
	r.c.check(r.bad)
	if len(r.mistakes) > 0 {
		return r.mistakes
	}
	return nil
}

// reader gathers what is wrong with a file.
type reader struct {
	file     string
	doc      strict.Document
	c        Config
	set      map[string]bool // keys that the file has
	wrong    map[string]bool // keys with a mistake
	mistakes Mistakes
}

// bad notes a mistake about a key. A key has one mistake; what follows from
// a mistake about another key is none.
func (r *reader) bad(key, says string, others ...string) {
	for _, k := range append(others, key) {
		if r.wrong[k] {
			return
		}
	}
	if len(r.doc.Faults) > 0 && strings.Contains(says, " is missing") {
		return // it may stand on a line that is no TOML
	}
	r.wrong[key] = true
	r.mistakes = append(r.mistakes, Mistake{File: r.file, Line: r.doc.Line(key), Key: key, Says: says})
}

// read takes all values of the document up.
func (r *reader) read() {
	knobs := make(map[string]Knob)
	for _, k := range r.c.Knobs() {
		knobs[k.Key] = k
	}
	r.table("", r.doc.Values, knobs)
	// Absent is not zero: a scheme that is defined with a rank brings it along,
	// but one that was written down stays.
	if rank, ok := r.c.Placement.Scheme.ImpliedRank(); ok && !r.set["placement.rank"] {
		r.c.Placement.Rank = rank
	}
	// Guests that home jobs do not see are one thing under two names.
	switch preempts, mode := r.c.Scheduler.Queues == sitesched.DualPreempt, r.set["no_harm.mode"]; {
	case preempts && !mode:
		r.c.NoHarm.Mode = meta.HarmInvisible
	case mode && r.c.NoHarm.Mode == meta.HarmInvisible && !r.set["scheduler.queues"]:
		r.c.Scheduler.Queues = sitesched.DualPreempt
	}
}

// table reads the keys of a table.
func (r *reader) table(name string, values map[string]any, knobs map[string]Knob) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		path, value := key, values[key]
		if name != "" {
			path = name + "." + key
		}
		knob, known := knobs[path]
		switch {
		case known:
			r.value(path, knob, value)
		case path == "peers":
			r.peers(value)
		case name == "" && slices.ContainsFunc(Keys(), func(k string) bool { return strings.HasPrefix(k, path+".") }):
			if inner, ok := value.(map[string]any); ok {
				r.table(path, inner, knobs)
			} else {
				r.bad(path, fmt.Sprintf("%s = %s: it is a table; write [%s] and its keys below", path, literal(value), path))
			}
		default:
			r.unknown(path, path)
		}
	}
}

// value takes a value up, or says why not.
func (r *reader) value(path string, k Knob, v any) {
	r.set[path] = true
	if remedy := k.read(v); remedy != "" {
		r.bad(path, fmt.Sprintf("%s = %s: %s", path, literal(v), remedy))
	}
}

// peers reads the list of peers.
func (r *reader) peers(v any) {
	var tables []map[string]any
	ok := true
	switch v := v.(type) {
	case []map[string]any:
		tables = v
	case []any:
		for _, one := range v {
			t, isTable := one.(map[string]any)
			tables, ok = append(tables, t), ok && isTable
		}
	default:
		ok = false
	}
	if !ok {
		r.bad("peers", `peers: write each peer as [[peers]], with site and address below`)
		return
	}
	r.c.Peers = make([]Peer, len(tables))
	for i, t := range tables {
		knobs := make(map[string]Knob)
		for _, k := range r.c.Peers[i].Knobs() {
			knobs[strings.TrimPrefix(k.Key, "peers.")] = k
		}
		for _, key := range slices.Sorted(maps.Keys(t)) {
			path := fmt.Sprintf("peers[%d].%s", i, key)
			if k, ok := knobs[key]; ok {
				r.value(path, k, t[key])
			} else {
				r.unknown(path, "peers."+key)
			}
		}
	}
}

// gone are keys that there were, with what to do instead.
var gone = map[string]string{
	"listen.insecure_no_authentication": "there is no such key any more, a site that others reach has keys: take it and [[peers]] out, make keys with kithd init, " +
		"and have the sites join with kith site invite; on one machine, for tests, listen.insecure_loopback serves without keys",
}

// unknown notes a key that is none. path is where it stands, name what it is called.
func (r *reader) unknown(path, name string) {
	if remedy, ok := gone[name]; ok {
		r.bad(path, path+": "+remedy)
		return
	}
	known := Keys()
	for _, k := range Keys() {
		if section, _, ok := strings.Cut(k, "."); ok {
			known = append(known, section)
		}
	}
	r.bad(path, strict.Unknown(name, known, Manual))
}

// literal writes a value as the file may have written it, at most 60 bytes of it.
func literal(v any) string {
	var s string
	switch v := v.(type) {
	case string:
		s = strconv.Quote(v)
	case []any:
		parts := make([]string, len(v))
		for i, one := range v {
			parts[i] = literal(one)
		}
		s = "[" + strings.Join(parts, ", ") + "]"
	case map[string]any, []map[string]any:
		return "a table"
	default:
		s = fmt.Sprint(v)
	}
	if len(s) > 60 {
		s = s[:57] + "..."
	}
	return s
}

// literalOf writes a value of a field.
func literalOf(v any) string {
	switch v := v.(type) {
	case time.Duration:
		return strconv.Quote(units.FormatDuration(v))
	case fmt.Stringer:
		return strconv.Quote(v.String())
	}
	return literal(v)
}
