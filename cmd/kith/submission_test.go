package main

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"kith/internal/cli"
	kithv1 "kith/proto/gen/kith/v1"
)

// build makes a job of a command line and the #SBATCH lines of a script.
func build(t *testing.T, lines string, args ...string) (*kithv1.Job, error) {
	t.Helper()
	o, flags := submitFlags()
	if err := flags.Parse(args); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	p := &program{script: "#!/bin/sh\n" + lines, name: "job.sh", source: "job.sh"}
	if err := o.follow(flags, p); err != nil {
		return nil, err
	}
	return o.job(p, []string{"HOME=/home/ada", "LANG=C"})
}

// TestPrecedence checks what of a script and a command line counts.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		lines string
		args  []string
		want  string // the job without script, name and defaults
	}{
		"defaults":            {want: ""},
		"script":              {lines: "#SBATCH -n 4 -t 5", want: "processors: 4 tasks: 4 walltime: {seconds: 300}"},
		"command line":        {args: []string{"-n", "4", "--time=5"}, want: "processors: 4 tasks: 4 walltime: {seconds: 300}"},
		"both":                {lines: "#SBATCH -n 4 -t 5", args: []string{"-n", "2"}, want: "processors: 2 tasks: 2 walltime: {seconds: 300}"},
		"last of script":      {lines: "#SBATCH -n 4\n#SBATCH --ntasks=3", want: "processors: 3 tasks: 3"},
		"processors":          {args: []string{"-n4", "-c3"}, want: "processors: 12 tasks: 4"},
		"memory":              {lines: "#SBATCH --mem=1G", args: []string{"--mem", "3K"}, want: "memory_bytes: 3072"},
		"memory per cpu":      {args: []string{"-c3", "--mem-per-cpu=5"}, want: "processors: 3 memory_bytes: 15728640"},
		"memory, other kind":  {lines: "#SBATCH --mem=1G", args: []string{"--mem-per-cpu", "1"}, want: "memory_bytes: 1048576"},
		"memory, other way":   {lines: "#SBATCH --mem-per-cpu=1G", args: []string{"--mem", "1"}, want: "memory_bytes: 1048576"},
		"hold":                {lines: "#SBATCH -H", want: "hold: true"},
		"hold not":            {lines: "#SBATCH -H", args: []string{"--hold=false"}, want: ""},
		"labels":              {lines: "#SBATCH --label a=1 --label b=1", args: []string{"--label", "b=2"}, want: `labels: {key: "a" value: "1"} labels: {key: "b" value: "2"}`},
		"outputs":             {lines: "#SBATCH --output-file a", args: []string{"--output-file", "b"}, want: `outputs: {path: "a"} outputs: {path: "b"}`},
		"stdout":              {lines: "#SBATCH --output=a -e b", args: []string{"-o", "c"}, want: `stdout_path: "c" stderr_path: "b"`},
		"stderr by its name":  {args: []string{"--error", "b", "--stdout=a"}, want: `stdout_path: "a" stderr_path: "b"`},
		"stdout with name":    {lines: "#SBATCH -o %x/%j.out", args: []string{"-J", "n"}, want: `name: "n" stdout_path: "n/%j.out"`},
		"export":              {lines: "#SBATCH --export=ALL", want: `environment: {key: "HOME" value: "/home/ada"} environment: {key: "LANG" value: "C"}`},
		"export none":         {lines: "#SBATCH --export=ALL", args: []string{"--export=NONE"}, want: ""},
		"nodes":               {lines: "#SBATCH -N 1-1", want: ""},
		"folder":              {lines: "#SBATCH -D /data", want: `working_directory: "/data"`},
		"copies":              {lines: "#SBATCH --copies=3", args: []string{"--copies=5"}, want: "copies: 5"},
		"site lost":           {lines: "#SBATCH --on-site-lost=race", want: "on_site_lost: ON_SITE_LOST_RACE"},
		"wrong but overruled": {lines: "#SBATCH -n x", args: []string{"-n1"}, want: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := build(t, tc.lines, tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			got.Script = ""
			want := &kithv1.Job{}
			if err := prototext.Unmarshal([]byte(`name: "job.sh" processors: 1 tasks: 1 walltime: {seconds: 3600}`), want); err != nil {
				t.Fatal(err)
			}
			var differs kithv1.Job
			if err := prototext.Unmarshal([]byte(tc.want), &differs); err != nil {
				t.Fatal(err)
			}
			if differs.Walltime != nil {
				want.Walltime = nil
			}
			proto.Merge(want, &differs)
			if !proto.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// TestRefusedValues checks that a wrong value is named with its option.
func TestRefusedValues(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		"#SBATCH -t never":                        "job.sh line 2: --time (-t) never: write a run time",
		"\n#SBATCH --mem=x":                       "job.sh line 3: --mem x: write a whole number",
		"#SBATCH -N 2":                            "job.sh line 2: --nodes (-N) 2: a job runs at one site on one machine",
		"#SBATCH --label x":                       "job.sh line 2: --label x: write NAME=VALUE",
		"#SBATCH --export=A,NONE":                 "job.sh line 2: --export A,NONE: NONE stands alone",
		"#SBATCH --export=,":                      "write ALL, NONE or VAR",
		"#SBATCH --on-site-lost=cry":              "job.sh line 2: --on-site-lost cry: choose wait, rerun or race",
		"#SBATCH -o /tmp/x":                       "job.sh line 2: --output (-o) /tmp/x: must be a relative name",
		"#SBATCH -e ../x":                         "job.sh line 2: --error (-e) ../x: must be a relative name",
		"#SBATCH -o dir/":                         "must be a relative name",
		"#SBATCH -o %A.out":                       "only %j for the job's id and %x for its name are available",
		"#SBATCH -o %%j":                          "only %j",
		"#SBATCH -o %":                            "only %j",
		"#SBATCH -o stderr":                       "both stderr",
		"#SBATCH --mem=1 --mem-per-cpu=1":         "--mem and --mem-per-cpu: choose one of them",
		"#SBATCH -c2 --mem-per-cpu=1024T":         "at most 1024 T of memory",
		"#SBATCH -n 16777216 -c 16777216":         "at most 16777216 processors",
		"#SBATCH --export=MISSING":                "there is no such variable here",
		"#SBATCH --label 'a=\xff'":                "not UTF-8",
		"#SBATCH --export='A=\xff'":               `variable "A" is not UTF-8`,
		"#SBATCH --wrap x":                        "give it on the command line",
		"#SBATCH --request-id x":                  "could be submitted only once",
		"#SBATCH -t 0:00":                         "must be more than 0",
		"#SBATCH --gres=gpu --mail-type=END -A x": "--gres",
	} {
		_, err := build(t, lines)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", lines, err, want)
		}
	}
}

// TestRefusedNamesOfOutputComeWithTheOthers checks that a name for stdout or
// stderr in a script is refused with its line, together with all other mistakes.
func TestRefusedNamesOfOutputComeWithTheOthers(t *testing.T) {
	t.Parallel()
	_, err := build(t, "#SBATCH -o /scratch/%j.out\n#SBATCH -t never\n#SBATCH -e %u.err\n#SBATCH -p long")
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok {
		t.Fatalf("%v", err)
	}
	all := strings.Join(f.Problems, "\n")
	for _, want := range []string{"job.sh line 2: --output (-o) /scratch/%j.out: must be", "job.sh line 3: --time (-t) never", "job.sh line 4: --error (-e) %u.err: only %j", "job.sh line 5: option --partition"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q does not say %q", all, want)
		}
	}
	// One that the command line overrules does not count.
	if _, err := build(t, "#SBATCH -o /scratch/x", "-o", "x"); err != nil {
		t.Error(err)
	}
	if _, err := build(t, "", "-o", "/scratch/x"); err == nil || !strings.Contains(err.Error(), "--stdout (-o) /scratch/x: must be") {
		t.Errorf("%v", err)
	}
}

func TestExport(t *testing.T) {
	t.Parallel()
	environ := []string{"A=1", "B=2=3", "A=4", "EMPTY=", "=C:=x"}
	for text, want := range map[string]map[string]string{
		"NONE":            nil,
		"NIL":             nil,
		"A":               {"A": "4"},
		"EMPTY":           {"EMPTY": ""},
		"B,C=5":           {"B": "2=3", "C": "5"},
		"ALL":             {"A": "4", "B": "2=3", "EMPTY": ""},
		"ALL,A=9":         {"A": "9", "B": "2=3", "EMPTY": ""},
		`C='x,y',D="'"`:   {"C": "x,y", "D": "'"},
		"C=":              {"C": ""},
		"all":             nil,
		"X=ALL":           {"X": "ALL"},
		"C=a b,D='c'd'e'": {"C": "a b", "D": "cde"},
	} {
		e, err := parseExport(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got, err := e.environment(environ)
		if text == "all" { // a name like any other
			if err == nil {
				t.Errorf("%q: %v", text, got)
			}
			continue
		}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "A,", "=1", "'A", "NONE,NIL"} {
		if _, err := parseExport(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
