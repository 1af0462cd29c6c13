package strict_test

import (
	"slices"
	"strings"
	"testing"

	"kith/internal/strict"
)

type settings struct {
	Name  string `toml:"name"`
	Limit struct {
		Jobs int `toml:"jobs"`
	} `toml:"limit"`
	Sites []struct {
		Processors int `toml:"processors"`
	} `toml:"sites"`
}

func sample() settings {
	var s settings
	s.Sites = append(s.Sites, struct {
		Processors int `toml:"processors"`
	}{})
	return s
}

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string // of the error; none: it is read
	}{
		"good":       {"name = \"a\"\n[limit]\njobs = 3\n[[sites]]\nprocessors = 4\n", nil},
		"empty":      {"", nil},
		"misspelt":   {"nmae = \"a\"\n[[sites]]\nprocesors = 4\n", []string{"key nmae is not known; did you mean \"name\"?", "key sites.procesors is not known; did you mean \"sites.processors\"?"}},
		"unlike any": {"frobnicate = 1\n", []string{"key frobnicate is not known; the manual lists the keys"}},
		"no TOML":    {"name = \"a\"\nname\n", []string{"line 2"}},
		"wrong type": {"[limit]\njobs = \"many\"\n", []string{"line 2", "jobs"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := sample()
			got.Sites = nil
			err := strict.Decode(c.text, &got, sample(), "the manual")
			if (err == nil) != (c.want == nil) {
				t.Fatalf("error %v", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
}

func TestKeys(t *testing.T) {
	want := []string{"limit", "limit.jobs", "name", "sites", "sites.processors"}
	if got := strict.Keys(sample()); !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
}
