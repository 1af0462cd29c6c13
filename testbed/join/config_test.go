package join_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/strict"
	"kith/testbed/join"
)

// twoSites is a federation that can be replayed.
const twoSites = `
[[sites]]
name = "north"
processors = 32
generate = "ctc"
jobs = 60

[[sites]]
name = "south"
processors = 16
generate = "lublin"
jobs = 60
`

// TestBadFederations: every mistake is told with key, value and remedy, all at once.
func TestBadFederations(t *testing.T) {
	site := func(lines string) string {
		return "[[sites]]\nname = \"a\"\ngenerate = \"ctc\"\n" + lines + "\n[[sites]]\nname = \"b\"\ngenerate = \"ctc\"\nprocessors = 64\n"
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing":             {"", []string{"0 [[sites]]: a federation has 2 to 256"}},
		"no TOML":             {"[[sites]\n", []string{"line 2: expected"}},
		"unknown key":         {site("procesors = 4"), []string{"key sites.procesors is not known; did you mean \"sites.processors\"?"}},
		"unknown table":       {"[placment]\nscheme = \"k-dual\"\n" + twoSites, []string{"did you mean \"placement\"?"}},
		"one site":            {"[[sites]]\nname = \"a\"\ngenerate = \"ctc\"\n", []string{"1 [[sites]]: a federation has 2"}},
		"zero processors":     {site("processors = 0"), []string{"sites[0].processors 0: give 1 to"}},
		"negative processors": {site("processors = -4"), []string{"sites[0].processors -4: give 1 to"}},
		"no name":             {"[[sites]]\ngenerate = \"ctc\"\n" + twoSites, []string{"sites[0].name is missing"}},
		"bad name":            {"[[sites]]\nname = \"A B\"\ngenerate = \"ctc\"\n" + twoSites, []string{"sites[0].name"}},
		"one name twice":      {twoSites + "[[sites]]\nname = \"north\"\ngenerate = \"ctc\"\n", []string{`sites[2].name "north": is that of sites[0], too`}},
		"no jobs":             {"[[sites]]\nname = \"x\"\n" + twoSites, []string{"sites[0].trace is missing"}},
		"log and model":       {"[[sites]]\nname = \"x\"\ntrace = \"x.swf\"\ngenerate = \"ctc\"\n" + twoSites, []string{"choose one of them"}},
		"unknown model":       {strings.Replace(twoSites, "lublin", "feitelson", 1), []string{`sites[1].generate "feitelson": choose ctc or lublin`}},
		"unknown policy":      {site(`policy = "fifo"`), []string{`sites[0].policy "fifo": choose fcfs, easy`}},
		"unknown queues":      {site(`queues = "two"`), []string{`sites[0].queues "two": choose single`}},
		"unknown guarantee":   {site(`guarantee = "some"`), []string{`sites[0].guarantee "some": choose head or all`}},
		"negative depth":      {site("guarantee_depth = -1"), []string{"sites[0].guarantee_depth -1: give a number"}},
		"no speed":            {site("speed = 0.0"), []string{"sites[0].speed 0: give 0.001"}},
		"speed no number":     {site("speed = nan"), []string{"sites[0].speed NaN"}},
		"far zone":            {site(`zone = "30h"`), []string{"sites[0].zone 30h0m0s: give -24h to 24h"}},
		"unknown timezone":    {site(`timezone = "Mars/North"`), []string{`sites[0].timezone "Mars/North": give the name of a zone such as Europe/Berlin`}},
		"timezone of nothing": {site(`timezone = "UTC"`), []string{`sites[0].timezone "UTC": is that of a log; leave the key out`}},
		"no duration":         {site(`zone = "6"`), []string{`"6" is not a duration`}},
		"negative load":       {site("load = -0.5"), []string{"sites[0].load -0.5"}},
		"no run times":        {site("scale_runtime = 0.0"), []string{"sites[0].scale_runtime 0: give a number above 0"}},
		"unknown overrun":     {site(`overrun = "keep"`), []string{`sites[0].overrun "keep": choose kill or raise`}},
		"too many jobs":       {strings.ReplaceAll(twoSites, "jobs = 60", "jobs = 15000000"), []string{"jobs: 30000000 at all sites together: give at most"}},
		"negative jobs":       {site("jobs = -1"), []string{"sites[0].jobs -1"}},
		"unknown scheme":      {"[placement]\nscheme = \"best\"\n" + twoSites, []string{`placement.scheme "best": choose one of`}},
		"alone":               {"[placement]\nscheme = \"independent\"\n" + twoSites, []string{"is what the others are compared with"}},
		"unknown rank":        {"[placement]\nrank = \"price\"\n" + twoSites, []string{`placement.rank "price": choose work`}},
		"rank of the scheme":  {"[placement]\nscheme = \"mct\"\nrank = \"work\"\n" + twoSites, []string{"scheme mct ranks by completion"}},
		"too many copies":     {"[placement]\ncopies = [2, 3]\n" + twoSites, []string{"placement.copies 3: there are only 2 sites"}},
		"no copies":           {"[placement]\ncopies = [0]\n" + twoSites, []string{"placement.copies 0: give 1 or more"}},
		"copies twice":        {"[placement]\ncopies = [2, 2]\n" + twoSites, []string{"placement.copies 2: is named twice"}},
		"copies of mct":       {"[placement]\nscheme = \"mct\"\ncopies = [2]\n" + twoSites, []string{"scheme mct places one copy"}},
		"no weight":           {"[placement]\nweight = 0.0\n" + twoSites, []string{"placement.weight 0: give 0.01 to 100"}},
		"nothing to adapt":    {"[placement]\nadaptive = true\n" + twoSites, []string{"placement.adaptive: only the ranks start and completion"}},
		"slow light":          {"[placement]\nlatency = \"2h\"\n" + twoSites, []string{"placement.latency 2h0m0s"}},
		"nobody asks":         {"asks = \"west\"\n" + twoSites, []string{`asks "west": name one of the sites`}},
		"unknown alignment":   {"align = \"left\"\n" + twoSites, []string{`align "left": choose start or calendar`}},
		"several mistakes":    {"align = \"left\"\n" + site("processors = 0\nspeed = -1.0"), []string{"align", "sites[0].processors 0", "sites[0].speed -1"}},
		"calendar of a model": {"align = \"calendar\"\n" + strings.Replace(twoSites, "\"ctc\"", "\"lublin\"", 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := join.Parse(c.text)
			if err == nil {
				_, err = join.Open(cfg)
			}
			if c.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wrong, ok := errors.AsType[*join.Error](err)
			if !ok {
				t.Fatalf("error %v, want a *join.Error", err)
			}
			for _, w := range c.want {
				if !strings.Contains(wrong.Error(), w) {
					t.Errorf("error %q does not say %q", wrong, w)
				}
			}
			if name == "several mistakes" && len(wrong.Problems) != 3 {
				t.Errorf("%d problems: %v", len(wrong.Problems), wrong)
			}
		})
	}
}

// swf makes a line of the Standard Workload Format.
func swf(id, submit, run, procs, request int64) string {
	return fmt.Sprintf("%d %d -1 %d %d -1 -1 %d %d -1 1 1 1 -1 -1 -1 -1 -1\n", id, submit, run, procs, procs, request)
}

// TestBadLogs: what is wrong with a log is an error that names the site, or is
// left out and counted.
func TestBadLogs(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	for i := range int64(3000) {
		if _, err := z.Write([]byte(swf(i, i*100, 50+i%7, 1, 100))); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	good := swf(1, 0, 100, 2, 200) + swf(2, 50, 100, 4, 200)
	for name, c := range map[string]struct {
		log  string // "" leaves the file out
		want string // in the error; "" if it can be replayed
		kind string // of the note that counts what was left out or mended
	}{
		"good":           {log: good},
		"missing":        {want: `sites[0], a: trace "a.log": there is no such file as`},
		"empty":          {log: "; nothing\n", want: "no job that could be run"},
		"no log at all":  {log: "once upon a time\nthere was a log\n", want: "not a log"},
		"truncated gzip": {log: zipped.String()[:zipped.Len()/2], want: "cut off"},
		"three fields":   {log: good + "3 60 100\n", kind: "bad-line"},
		"too wide":       {log: good + swf(3, 60, 10, 9, 20), kind: "too-wide"},
		"all too wide":   {log: swf(1, 0, 10, 9, 20), want: "no job left that fits 8 processors"},
		"out of order":   {log: swf(3, 10, 10, 1, 20) + good, kind: "out-of-order"},
		"endless run":    {log: good + swf(3, 60, 1_000_000_000_000, 1, 20), kind: "too-long"},
		"overrun":        {log: good + swf(3, 60, 500, 1, 20), kind: "overran"},
		"negative":       {log: good + swf(3, -60, 10, 1, 20), kind: "negative"},
		"a folder":       {log: "folder", want: "sites[0], a"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			switch c.log {
			case "":
			case "folder":
				if err := os.Mkdir(filepath.Join(dir, "a.log"), 0o700); err != nil {
					t.Fatal(err)
				}
			default:
				write("a.log", c.log)
			}
			write("f.toml", "[[sites]]\nname = \"a\"\nprocessors = 8\ntrace = \"a.log\"\n[[sites]]\nname = \"b\"\nprocessors = 8\ngenerate = \"ctc\"\njobs = 20\n")
			cfg, err := join.Load(filepath.Join(dir, "f.toml"))
			if err != nil {
				t.Fatal(err)
			}
			study, err := join.Open(cfg)
			if c.want != "" {
				if wrong, ok := errors.AsType[*join.Error](err); !ok || !strings.Contains(wrong.Error(), c.want) {
					t.Fatalf("error %v, want a *join.Error that says %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			a, err := study.Run(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			found := c.kind == ""
			for _, n := range a.Sites[0].Notes {
				found = found || n.Kind == c.kind && n.Count == 1
			}
			if !found {
				t.Errorf("notes %+v, want one of kind %s", a.Sites[0].Notes, c.kind)
			}
		})
	}
}

// TestTimezones: a log whose clock has no zone can be laid on a calendar only
// with one, and one that says by itself when things happened takes none.
func TestTimezones(t *testing.T) {
	const wall = "JobID|Submit|Elapsed|Timelimit|AllocCPUS\n1|2026-03-01T08:00:00|01:00:00|02:00:00|4\n2|2026-03-02T08:00:00|01:00:00|02:00:00|4\n"
	own := strings.ReplaceAll(wall, ":00:00|01", ":00:00Z|01")
	for name, c := range map[string]struct {
		log, keys, align string
		want             string // in the error; "" if it can be replayed
	}{
		"not needed":          {log: wall, align: "start"},
		"missing":             {log: wall, align: "calendar", want: `sites[0], a: trace "a.log": tells times by a clock of a zone that it does not name; give timezone = "Europe/Berlin" or the like, or choose align = "start"`},
		"given":               {log: wall, keys: "timezone = \"-05:00\"\n", align: "calendar"},
		"given, not needed":   {log: wall, keys: "timezone = \"Europe/Berlin\"\n", align: "start"},
		"of its own":          {log: own, align: "calendar"},
		"of its own, another": {log: own, keys: "timezone = \"-05:00\"\n", align: "calendar", want: `sites[0], a: timezone "-05:00": the log a.log says by itself when things happened; leave the key out`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			text := "whole = true\nalign = \"" + c.align + "\"\n[[sites]]\nname = \"a\"\nprocessors = 8\ntrace = \"a.log\"\n" + c.keys +
				"[[sites]]\nname = \"b\"\nprocessors = 8\ntrace = \"b.log\"\n"
			for name, text := range map[string]string{"a.log": c.log, "b.log": own, "f.toml": text} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cfg, err := join.Load(filepath.Join(dir, "f.toml"))
			if err == nil {
				_, err = join.Open(cfg)
			}
			if wrong, ok := errors.AsType[*join.Error](err); c.want == "" && err != nil || c.want != "" && (!ok || !strings.Contains(wrong.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestLoadSaysWhatIsWrongWithTheFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := join.Load(filepath.Join(dir, "none.toml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: error %v", err)
	}
	if _, err := join.Load(dir); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: error %v", err)
	}
	large := filepath.Join(dir, "large.toml")
	if err := os.WriteFile(large, bytes.Repeat([]byte("# much ado\n"), join.MaxFileSize/11+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := join.Load(large); err == nil || !strings.Contains(err.Error(), "no description of a federation") {
		t.Errorf("a large file: error %v", err)
	}
}

// TestExample: the documented example can be replayed and shows every key.
func TestExample(t *testing.T) {
	const path = "../../docs/examples/federation.toml"
	cfg, err := join.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Whole = true
	for i := range cfg.Sites {
		cfg.Sites[i].Jobs = 40
	}
	study, err := join.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := study.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Asks, cfg.Sites[0].Trace = "x", "x"
	for _, key := range strict.Keys(cfg) {
		name := key[strings.LastIndexByte(key, '.')+1:]
		if !strings.Contains(string(text), name) {
			t.Errorf("the example does not show %s", key)
		}
	}
}

// FuzzParse: whatever a file says, it is read or refused, and what is read can
// be checked.
func FuzzParse(f *testing.F) {
	f.Add(twoSites)
	f.Add("seed = 1\nasks = \"a\"\n[placement]\ncopies = [1, 2]\nload_age = \"30s\"\n" + twoSites)
	f.Add("[[sites]]\nname = \"a\"\nprocessors = 99999999999\nspeed = inf\nzone = \"-1h\"\n")
	f.Add("[[sites]]\n[sites.placement]\n")
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := join.Parse(text)
		if err != nil {
			if wrong, ok := errors.AsType[*join.Error](err); !ok || len(wrong.Problems) == 0 {
				t.Fatalf("error %v is no *join.Error", err)
			}
			return
		}
		if err := cfg.Validate(); err != nil && err.Error() == "" {
			t.Fatal("refused without a word")
		}
	})
}
