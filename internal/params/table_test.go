package params

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func scanned(t *testing.T, text string, f Format) *Table {
	t.Helper()
	index, err := Scan(strings.NewReader(text), f)
	if err != nil {
		t.Fatalf("%.60q: %v", text, err)
	}
	return NewTable(index, strings.NewReader(text))
}

func TestTables(t *testing.T) {
	for name, c := range map[string]struct {
		format Format
		text   string
		names  []string
		rows   [][]string
	}{
		"lines":                  {Lines, "a\nb c\n", []string{"line"}, [][]string{{"a"}, {"b c"}}},
		"no final newline":       {Lines, "a\nb", []string{"line"}, [][]string{{"a"}, {"b"}}},
		"CRLF":                   {Lines, "a\r\nb\r\n", []string{"line"}, [][]string{{"a"}, {"b"}}},
		"empty lines":            {Lines, "\n\na\n\n\r\nb\n\n", []string{"line"}, [][]string{{"a"}, {"b"}}},
		"a mark at the begin":    {Lines, "\ufeffa\n\ufeffb", []string{"line"}, [][]string{{"a"}, {"\ufeffb"}}},
		"a carriage return":      {Lines, "a\rb\n", []string{"line"}, [][]string{{"a\rb"}}},
		"csv":                    {CSV, "x,y\n1,2\n3,\n", []string{"x", "y"}, [][]string{{"1", "2"}, {"3", ""}}},
		"csv, CRLF, no newline":  {CSV, "x,y\r\n1,2\r\n3,4", []string{"x", "y"}, [][]string{{"1", "2"}, {"3", "4"}}},
		"csv, quotes":            {CSV, "x,y\n\"a,b\",\"c\"\"d\"\n\"\",\"\"\"\"\n", []string{"x", "y"}, [][]string{{"a,b", `c"d`}, {"", `"`}}},
		"csv, lines in quotes":   {CSV, "x,y\n\"a\n\nb\",\"c\r\nd\"\n1,2\n", []string{"x", "y"}, [][]string{{"a\n\nb", "c\r\nd"}, {"1", "2"}}},
		"csv, quotes at the end": {CSV, "x\n\"a\"", []string{"x"}, [][]string{{"a"}}},
		"csv, names in quotes":   {CSV, "\ufeff\"x\",y\n1,2", []string{"x", "y"}, [][]string{{"1", "2"}}},
		"csv, blanks":            {CSV, "x,y\n 1 ,\t2", []string{"x", "y"}, [][]string{{" 1 ", "\t2"}}},
		"tsv":                    {TSV, "x\ty\n1\t\"2\"\n,\t\r\n", []string{"x", "y"}, [][]string{{"1", `"2"`}, {",", ""}}},
		"json":                   {JSONLines, `{"x": 1.50, "y": "a\nb"}` + "\n" + `{"y":true,"x":-1e3}`, []string{"x", "y"}, [][]string{{"1.50", "a\nb"}, {"-1e3", "true"}}},
	} {
		t.Run(name, func(t *testing.T) {
			table := scanned(t, c.text, c.format)
			if !slices.Equal(table.Names(), c.names) {
				t.Errorf("names %q, want %q", table.Names(), c.names)
			}
			checkSource(t, table, c.rows)
		})
	}
}

func TestTablesRefused(t *testing.T) {
	long := strings.Repeat("x", MaxRowBytes)
	for name, c := range map[string]struct {
		format Format
		text   string
		want   error
		part   string
	}{
		"nothing":                  {Lines, "", ErrBadTable, "no row"},
		"empty lines":              {Lines, "\n\n\r\n", ErrBadTable, "no row"},
		"names only":               {CSV, "x,y\n", ErrBadTable, "no row"},
		"an unknown format":        {9, "x", ErrBadTable, "format 9"},
		"no format":                {0, "x", ErrBadTable, "format 0"},
		"a row too long":           {Lines, "a\n" + long + "x\nb\n", ErrBadTable, "line 2: a row of more than 65536 bytes; put long values into files"},
		"a row without an end":     {Lines, strings.Repeat(long, 20), ErrBadTable, "line 1: a row of more than 65536 bytes"},
		"a row of 65 KiB":          {CSV, "x\n" + strings.Repeat("y", 65<<10), ErrBadTable, "line 2: a row of more than"},
		"a zero byte":              {Lines, "a\nb\x00c\n", ErrBadTable, "line 2: a zero byte"},
		"a zero byte in names":     {CSV, "x\x00\n1\n", ErrBadTable, "line 1: a zero byte"},
		"a zero byte in quotes":    {CSV, "x\n\"a\nb\x00\"\n", ErrBadTable, "line 2: a zero byte, the byte 2 of line 3"},
		"a zero byte in an escape": {JSONLines, `{"x":"a\u0000"}`, ErrBadValue, "line 1: the value of x"},
		"no UTF-8":                 {Lines, "a\nM\xfcnchen\n", ErrBadTable, "line 2: not UTF-8, from byte 2 of line 2 on; convert"},
		"UTF-16":                   {Lines, "\xff\xfea\x00\n\x00", ErrBadTable, "zero byte"},
		"a missing column":         {CSV, "x,y,z\n1,2,3\n\n1,2\n", ErrBadTable, "line 4: 2 values, there are 3 parameters: x, y, z"},
		"a column more":            {TSV, "x\ty\n1\t2\t3\n", ErrBadTable, "line 2: 3 values, there are 2"},
		"quotes that never close":  {CSV, "x\n1\n\"a\nb\nc\n", ErrBadTable, "line 3: the quotes of value 1 (x) never close"},
		"quotes over 64 KiB":       {CSV, "x\n\"" + strings.Repeat("a\n", MaxRowBytes/2) + "\"\n", ErrBadTable, "line 2: the quotes of value 1 (x) do not close within"},
		"empty lines in quotes":    {CSV, "x\n\"" + strings.Repeat("\n", 1<<20), ErrBadTable, "do not close within"},
		"a quote in a value":       {CSV, "x,y\n1,5\" pipe\n", ErrBadTable, "line 2: a quote in value 2 (y), which is not in quotes"},
		"text behind quotes":       {CSV, "x\n\"a\"b\n", ErrBadTable, "line 2: text behind the closing quote of value 1"},
		"a bad name":               {CSV, "learning rate,y\n1,2\n", ErrBadName, `line 1, the names: parameter "learning rate"`},
		"an empty name":            {CSV, "x,\n1,2\n", ErrBadName, `parameter ""`},
		"a name twice":             {TSV, "x\tX\n1\t2\n", ErrBadNames, `"x" and "X"`},
		"too many columns":         {CSV, strings.Repeat(",", 300) + "\n", ErrBadTable, "301 values in a row, at most 256"},
		"no JSON":                  {JSONLines, "x\n", ErrBadTable, `"x" is no JSON object`},
		"a JSON list":              {JSONLines, `["x"]`, ErrBadTable, "no JSON object"},
		"no member":                {JSONLines, `{}`, ErrBadTable, "the names"},
		"a null":                   {JSONLines, `{"x":1}` + "\n" + `{"x":null}`, ErrBadTable, `line 2: "x" is neither a text nor`},
		"a list in an object":      {JSONLines, `{"x":[1]}`, ErrBadTable, `"x" is neither`},
		"an object in an object":   {JSONLines, `{"x":{"y":1}}`, ErrBadTable, `"x" is neither`},
		"an object cut off":        {JSONLines, `{"x":1`, ErrBadTable, "line 1"},
		"an object and more":       {JSONLines, `{"x":1} {"x":2}`, ErrBadTable, "behind the JSON object"},
		"a member twice":           {JSONLines, `{"x":1,"x":2}`, ErrBadTable, `"x" is there twice`},
		"another member":           {JSONLines, `{"x":1}` + "\n" + `{"y":1}`, ErrBadTable, `line 2: the first row has no "y", only x`},
		"a member less":            {JSONLines, `{"x":1,"y":2}` + "\n" + `{"y":1}`, ErrBadTable, "line 2: 1 values, there are 2 parameters: x, y"},
		"a bad member":             {JSONLines, `{"x y":1}`, ErrBadName, `"x y"`},
	} {
		index, err := Scan(strings.NewReader(c.text), c.format)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: %+v, %v; want %v with %q", name, index, err, c.want, c.part)
		} else if len(err.Error()) > 800 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}

// A row as long as it may be passes, with any end.
func TestLongestRow(t *testing.T) {
	long := strings.Repeat("x", MaxRowBytes)
	for _, end := range []string{"", "\n", "\r\n"} {
		checkSource(t, scanned(t, long+end, Lines), [][]string{{long}})
	}
	quoted := strings.Repeat("a\n", MaxRowBytes/2-1)
	checkSource(t, scanned(t, "x\n\""+quoted+"\"\n", CSV), [][]string{{quoted}})
}

// brokenReader fails behind some bytes.
type brokenReader struct {
	io.Reader
	err error
}

func (r brokenReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = r.err
	}
	return n, err
}

// An upload that breaks off is no shorter table, and a file that changes is not taken for
// what it was.
func TestRowsThatVanish(t *testing.T) {
	broken := errors.New("connection lost")
	if index, err := Scan(brokenReader{strings.NewReader("a\nb\nc"), broken}, Lines); !errors.Is(err, broken) {
		t.Errorf("%+v, %v", index, err)
	}
	var text strings.Builder
	for n := range 1000 {
		fmt.Fprintf(&text, "%d,%d\n", n, n)
	}
	whole := "x,y\n" + text.String()
	index, err := Scan(strings.NewReader(whole), CSV)
	if err != nil {
		t.Fatal(err)
	}
	cut := NewTable(index, strings.NewReader(whole[:len(whole)/2]))
	if row, err := Row(cut, 999); !errors.Is(err, ErrNoRow) {
		t.Errorf("row 999 of half a table is %q, %v", row, err)
	}
	other := NewTable(index, strings.NewReader(strings.ReplaceAll(whole, ",", ";")))
	if row, err := Row(other, 999); !errors.Is(err, ErrBadTable) {
		t.Errorf("row 999 of another table is %q, %v", row, err)
	}
}

// randomCell is a value that a table may have trouble with.
func randomCell(rng *rand.Rand) string {
	const letters = "ab,\"\n\t ä\ufeff"
	runes := []rune(letters)
	var b strings.Builder
	for range rng.IntN(6) {
		b.WriteRune(runes[rng.IntN(len(runes))])
	}
	return b.String()
}

func TestAnyRowOfATable(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var text strings.Builder
		w := csv.NewWriter(&text)
		var rows [][]string
		_ = w.Write([]string{"x", "y"})
		for range 1 + rng.IntN(1500) {
			row := []string{"v" + randomCell(rng), randomCell(rng)}
			rows = append(rows, row)
			_ = w.Write(row)
		}
		if w.Flush(); w.Error() != nil {
			t.Fatal(w.Error())
		}
		table := scanned(t, text.String(), CSV)
		checkSource(t, table, rows)
		for range 30 {
			n := rng.IntN(len(rows))
			if row, err := Row(table, uint32(n)); err != nil || !slices.Equal(row, rows[n]) {
				t.Fatalf("seed %d: row %d is %q, %v; want %q", seed, n, row, err, rows[n])
			}
		}
		if want := (len(rows) + rowsAnOffset - 1) / rowsAnOffset; len(table.index.Offsets) != want {
			t.Errorf("seed %d: %d offsets for %d rows", seed, len(table.index.Offsets), len(rows))
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add("a\nb\r\n\nc", uint8(Lines))
	f.Add("x,y\n\"a\nb\",\"c\"\"\"\n1,2", uint8(CSV))
	f.Add("x,y\n5\" pipe,2", uint8(CSV))
	f.Add("x\ty\n1\t2\n", uint8(TSV))
	f.Add("{\"x\":1,\"y\":\"a\\u0000\"}\n{\"y\":true,\"x\":\"\"}", uint8(JSONLines))
	f.Fuzz(func(t *testing.T, text string, format uint8) {
		index, err := Scan(strings.NewReader(text), Format(format))
		if err != nil {
			if !errors.Is(err, ErrBadTable) && !errors.Is(err, ErrBadName) && !errors.Is(err, ErrBadNames) && !errors.Is(err, ErrBadValue) || len(err.Error()) > 3000 {
				t.Errorf("%.60q: %v", text, err)
			}
			return
		}
		rows := all(t, NewTable(index, strings.NewReader(text)), 0)
		checkSource(t, NewTable(index, strings.NewReader(text)), rows)
		if Format(format) != CSV || strings.Contains(text, "\r") || strings.HasPrefix(text, "\ufeff") {
			return // the library's reader treats these otherwise
		}
		want, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || !slices.EqualFunc(rows, want[1:], slices.Equal[[]string]) {
			t.Errorf("%q has rows %q, want %q, %v", text, rows, want, err)
		}
	})
}

func benchmarkTable(rows int) string {
	var text strings.Builder
	text.WriteString("seed,alpha,name\n")
	for n := range rows {
		fmt.Fprintf(&text, "%d,%.6f,\"run %d of the sweep, second part\"\n", n, float64(n)/7, n)
	}
	return text.String()
}

func BenchmarkScan(b *testing.B) {
	text := benchmarkTable(100_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Scan(strings.NewReader(text), CSV); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBundleOfRows reads the rows of a bundle of 256 tasks from anywhere.
func BenchmarkBundleOfRows(b *testing.B) {
	text := benchmarkTable(100_000)
	index, err := Scan(strings.NewReader(text), CSV)
	if err != nil {
		b.Fatal(err)
	}
	table := NewTable(index, strings.NewReader(text))
	b.ReportAllocs()
	from := uint32(0)
	for b.Loop() {
		left := 256
		if err := table.Each(from, func(uint32, []string) bool { left--; return left > 0 }); err != nil {
			b.Fatal(err)
		}
		from = (from + 997*256) % 90_000
	}
}
