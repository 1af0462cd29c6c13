package daemon

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// configRow is a row of the table of keys: key and default.
var configRow = regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| (?:`([^`]*)`)? ?\\|")

// The table in docs/operations.md names every key, no other, and its default.
func TestOperationsNamesEveryKey(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Configuration")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	var defaults strings.Builder
	for _, row := range configRow.FindAllStringSubmatch(section, -1) {
		documented = append(documented, row[1])
		if row[2] != "" && !strings.HasPrefix(row[1], "peers.") {
			defaults.WriteString(row[1] + " = " + row[2] + "\n")
		}
	}
	known := configKeys("", reflect.TypeFor[Config]())
	for _, key := range known {
		if !slices.Contains(documented, key) {
			t.Errorf("docs/operations.md does not explain %s", key)
		}
	}
	for _, key := range documented {
		if !slices.Contains(known, key) {
			t.Errorf("docs/operations.md explains %s, which is no key", key)
		}
	}
	var got Config
	if _, err := toml.Decode(defaults.String(), &got); err != nil {
		t.Fatalf("the defaults of docs/operations.md: %v", err)
	}
	// Empty lists are written down as such.
	got.Executor.Directories, got.Files.InputRoots, got.Gossip.Join = nil, nil, nil
	want, have := reflect.ValueOf(DefaultConfig()), reflect.ValueOf(got)
	for _, key := range known {
		w, g := field(want, key), field(have, key)
		if w.IsValid() && !reflect.DeepEqual(w.Interface(), g.Interface()) {
			t.Errorf("docs/operations.md says that the default of %s is %v; it is %v", key, g, w)
		}
	}
}

// configKeys lists the keys of a part of the configuration.
func configKeys(prefix string, part reflect.Type) []string {
	var keys []string
	for i := range part.NumField() {
		f := part.Field(i)
		key := prefix + f.Tag.Get("toml")
		switch {
		case f.Type.Kind() == reflect.Struct:
			keys = append(keys, configKeys(key+".", f.Type)...)
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			keys = append(keys, configKeys(key+".", f.Type.Elem())...)
		default:
			keys = append(keys, key)
		}
	}
	return keys
}

// field returns the value of a key, invalid for those of a list of tables.
func field(part reflect.Value, key string) reflect.Value {
	for name := range strings.SplitSeq(key, ".") {
		if part.Kind() != reflect.Struct {
			return reflect.Value{}
		}
		next := reflect.Value{}
		for i := range part.NumField() {
			if part.Type().Field(i).Tag.Get("toml") == name {
				next = part.Field(i)
			}
		}
		if part = next; !part.IsValid() {
			return part
		}
	}
	return part
}
