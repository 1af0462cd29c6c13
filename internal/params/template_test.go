package params

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestTemplates(t *testing.T) {
	names := []string{"alpha", "beta"}
	for text, want := range map[string]string{
		"":                           "",
		"plain":                      "plain",
		"{{alpha}}":                  "A",
		"--a={{alpha}} {{ beta	}}!":  "--a=A {{alpha}}!",
		"{{alpha}}{{beta}}{{alpha}}": "A{{alpha}}A",
		"out-{{index}}.txt":          "out-17.txt",
		"{{{{alpha}}":                "{{alpha}}",
		"{{{{{{alpha}}":              "{{A",
		"{{{{{{{{":                   "{{{{",
		`{"a": {{alpha}}}`:           `{"a": A}`,
		"}} } { }}":                  "}} } { }}",
		"awk '{ print $1 }'":         "awk '{ print $1 }'",
	} {
		tmpl, err := ParseTemplate(text, names)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		// What a value has in it is not filled in again.
		values := []string{"A", "{{alpha}}"}
		if got := string(tmpl.Append(nil, 17, values)); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		if n := tmpl.Length(2, []int{1, len("{{alpha}}")}); n != len(want) {
			t.Errorf("%q: Length = %d, want %d", text, n, len(want))
		}
	}
}

func TestTemplatesRefused(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = "p" + strings.Repeat("x", i%60)
	}
	for text, part := range map[string]string{
		"{{gamma}}":                       `no parameter is called "gamma"; there are: alpha, beta, index`,
		"{{Alpha}}":                       `"Alpha"`,
		"{{}}":                            `""`,
		"{{{alpha}}}":                     `"{alpha"`,
		"x {{alpha":                       `"{{alpha" is not closed; write "{{{{" for two braces`,
		"{{":                              "is not closed",
		"{{{{{{":                          "is not closed",
		"{{al{{pha}}}}":                   `"al{{pha"`,
		"{{" + strings.Repeat("y", 1<<20): "is not closed",
	} {
		_, err := ParseTemplate(text, []string{"alpha", "beta"})
		if !errors.Is(err, ErrBadTemplate) || !strings.Contains(err.Error(), part) {
			t.Errorf("%.40q: %v; want %q in it", text, err, part)
		} else if len(err.Error()) > 600 {
			t.Errorf("%.40q: an error of %d bytes", text, len(err.Error()))
		}
	}
	if _, err := ParseTemplate("{{z}}", many); err == nil || len(err.Error()) > 2000 || !strings.Contains(err.Error(), "80 others, index") {
		t.Errorf("among a hundred names: %v", err)
	}
}

func TestIndexMayBeAParameter(t *testing.T) {
	tmpl, err := ParseTemplate("{{index}}", []string{"index"})
	if got := string(tmpl.Append(nil, 5, []string{"of the table"})); err != nil || got != "of the table" {
		t.Errorf("{{index}} became %q, %v", got, err)
	}
}

func TestTexts(t *testing.T) {
	fields := []Field{{"command[0]", "run"}, {"command[1]", "--x={{x}}"}, {"environment.SEED", "{{index}}"}}
	texts, err := Compile(fields, []string{"x"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := texts.Expand(3, []string{"7"}), []string{"run", "--x=7", "3"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	_, err = Compile([]Field{{"command[0]", "{{y}}"}, {"outputs[3]", "{{"}, {"ok", "{{x}}"}}, []string{"x"})
	if !errors.Is(err, ErrBadTemplate) || !strings.Contains(err.Error(), "command[0]: ") || !strings.Contains(err.Error(), "\noutputs[3]: ") || strings.Contains(err.Error(), "ok:") {
		t.Errorf("two fields are wrong: %v", err)
	}
	for _, names := range [][]string{{""}, {"1x"}, {"a-b"}, {"a b"}, {"ä"}, {strings.Repeat("x", 65)}} {
		if _, err := Compile(nil, names); !errors.Is(err, ErrBadName) {
			t.Errorf("names %q: %v", names, err)
		}
	}
	for _, names := range [][]string{{"a", "a"}, {"Seed", "seed"}, make([]string, MaxParameters+1)} {
		if _, err := Compile(nil, names); !errors.Is(err, ErrBadNames) {
			t.Errorf("names %.40q: %v", names, err)
		}
	}
}

// reads counts how often rows are read.
type reads struct {
	*Rows
	times int
}

func (r *reads) Each(from uint32, visit func(uint32, []string) bool) error {
	r.times++
	return r.Rows.Each(from, visit)
}

// A command that is too long with one row only is found before anything runs, and rows
// are read for it only if need be.
func TestCommandThatIsTooLongAtOneRow(t *testing.T) {
	texts, err := Compile([]Field{{"command[0]", "run"}, {"command[1]", "{{a}}{{b}}"}, {"environment.X", "{{a}}{{a}}{{a}}"}, {"outputs[0]", "{{b}}"}}, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	index := func(ordinal uint32) uint32 { return ordinal * 10 }
	check := func(rows Source, spans ...Span) (found []error) {
		t.Helper()
		if err := texts.CheckLengths(spans, index, rows, func(_ Span, err error) { found = append(found, err) }); err != nil {
			t.Fatal(err)
		}
		return found
	}
	long := strings.Repeat("x", 100)
	rows, err := NewRows([]string{"a", "b"}, [][]string{{long, "b"}, {"a", long}, {"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int]struct {
		times int
		err   string
	}{
		205: {0, ""},                      // the longest of both would do
		204: {1, ""},                      // it would not, but no row has both
		106: {1, ""},                      // "run", 0, 101 letters, 0
		105: {1, "with index 0, at most"}, // the first of two rows is named
	} {
		r := &reads{Rows: rows}
		err := errors.Join(check(r, Span{Last: 2, Most: most})...)
		if r.times != want.times || (err == nil) != (want.err == "") {
			t.Errorf("at most %d bytes: rows read %d times, %v; want %+v", most, r.times, err, want)
		}
		if err != nil && (!errors.Is(err, ErrTooLong) || !strings.Contains(err.Error(), want.err) || !strings.HasPrefix(err.Error(), "command[0]: 106 bytes")) {
			t.Errorf("at most %d bytes: %v", most, err)
		}
	}
	r := &reads{Rows: rows}
	found := check(r, Span{Last: 2, Most: 204}, Span{Last: 2, Most: 105}, Span{First: 2, Last: 3, Most: 10}, Span{First: 3, Last: 4, Most: 100, Rows: 1})
	if r.times != 1 || len(found) != 2 || !strings.HasPrefix(found[0].Error(), "command[0]: 106 bytes") || !strings.HasPrefix(found[1].Error(), "environment.X: 301 bytes") {
		t.Errorf("four spans: rows read %d times, %v", r.times, found)
	}
	if found := check(rows, Span{First: 3, Last: 4, Most: 100, Rows: 2}); len(found) != 1 || !errors.Is(found[0], ErrTooLong) {
		t.Errorf("the first two rows: %v", found)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"--a={{alpha}} {{ index }}", "{{{{", "{{{alpha}}}", "{{", "}}"} {
		f.Add(text, "value {{alpha}}", uint32(7))
	}
	f.Fuzz(func(t *testing.T, text, value string, index uint32) {
		names, values := []string{"alpha"}, []string{value}
		if tmpl, err := ParseTemplate(text, names); err == nil {
			if got := tmpl.Append(nil, 7, values); len(got) != tmpl.Length(1, []int{len(value)}) {
				t.Errorf("%q became %q, Length = %d", text, got, tmpl.Length(1, []int{len(value)}))
			}
		} else if !errors.Is(err, ErrBadTemplate) || len(err.Error()) > 1000 {
			t.Errorf("%.60q: %v", text, err)
		}
		// Every text can be written, by doubling its double braces.
		tmpl, err := ParseTemplate(strings.ReplaceAll(text, "{{", "{{{{"), names)
		if err != nil || !tmpl.Constant() || string(tmpl.Append(nil, index, values)) != text {
			t.Errorf("%q, escaped, became %q, %v", text, tmpl.Append(nil, index, values), err)
		}
	})
}

func BenchmarkExpand(b *testing.B) {
	texts, err := Compile([]Field{{"command[0]", "simulate"}, {"command[1]", "--alpha={{alpha}}"}, {"command[2]", "--out=out-{{index}}"}}, []string{"alpha"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		texts.Expand(4711, []string{"0.25"})
	}
}
