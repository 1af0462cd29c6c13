package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// written returns directives as "line flag=value", for comparison.
func written(found []directive) []string {
	var lines []string
	for _, d := range found {
		lines = append(lines, fmt.Sprintf("%d %s=%s", d.line, d.option.flag, d.value))
	}
	return lines
}

func TestParseDirectives(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		script   string
		want     []string
		problems []string
	}{
		"no script":            {script: ""},
		"no directives":        {script: "#!/bin/sh\necho\n"},
		"long with =":          {script: "#!/bin/sh\n#SBATCH --ntasks=4\n", want: []string{"2 ntasks=4"}},
		"long with blank":      {script: "#SBATCH --ntasks 4", want: []string{"1 ntasks=4"}},
		"short with blank":     {script: "#SBATCH -n 4", want: []string{"1 ntasks=4"}},
		"short attached":       {script: "#SBATCH -n4", want: []string{"1 ntasks=4"}},
		"short with =":         {script: "#SBATCH -n=4", want: []string{"1 ntasks=4"}},
		"cluster":              {script: "#SBATCH -HWn4", want: []string{"1 hold=true", "1 wait=true", "1 ntasks=4"}},
		"several on a line":    {script: "#SBATCH -n 4\t-c2  --hold", want: []string{"1 ntasks=4", "1 cpus-per-task=2", "1 hold=true"}},
		"no blank before":      {script: "#SBATCH--hold", want: []string{"1 hold=true"}},
		"value with =":         {script: "#SBATCH --export=A=B=C", want: []string{"1 export=A=B=C"}},
		"empty value":          {script: "#SBATCH --job-name=", want: []string{"1 job-name="}},
		"empty quoted value":   {script: "#SBATCH --job-name ''", want: []string{"1 job-name="}},
		"double quotes":        {script: `#SBATCH -J "a  b"`, want: []string{"1 job-name=a  b"}},
		"single quotes":        {script: `#SBATCH -J 'a "b"'`, want: []string{`1 job-name=a "b"`}},
		"quotes in a word":     {script: `#SBATCH --job-name=a' 'b`, want: []string{"1 job-name=a b"}},
		"escapes":              {script: `#SBATCH -J a\ b\#c\\d`, want: []string{`1 job-name=a b#c\d`}},
		"escape in quotes":     {script: `#SBATCH -J "a\"b"`, want: []string{`1 job-name=a"b`}},
		"comment":              {script: "#SBATCH -n 4 # -c 2", want: []string{"1 ntasks=4"}},
		"comment in a word":    {script: "#SBATCH -J a#b -n 4", want: []string{"1 job-name=a"}},
		"# in quotes":          {script: "#SBATCH -J 'a#b'", want: []string{"1 job-name=a#b"}},
		"names of output":      {script: "#SBATCH -o a --output=b --error c -e d --stdout e", want: []string{"1 stdout=a", "1 stdout=b", "1 stderr=c", "1 stderr=d", "1 stdout=e"}},
		"blank and other":      {script: "\n  \n# text\n #SBATCH -n 9\n#SBATCH -n 4\n", want: []string{"5 ntasks=4"}},
		"commented out":        {script: "##SBATCH -n 4\n# SBATCH -n 5\n#sbatch -n 6\n#SBATCHED -n 7\n"},
		"ends at code":         {script: "#SBATCH -n 4\necho # text\n#SBATCH -n 5\n", want: []string{"1 ntasks=4"}},
		"indented code ends":   {script: "#SBATCH -n 4\n\t:\n#SBATCH -n 5\n", want: []string{"1 ntasks=4"}},
		"CR LF":                {script: "#SBATCH -J x\r\n#SBATCH -n 4\r\n", want: []string{"1 job-name=x", "2 ntasks=4"}},
		"nothing to say":       {script: "#SBATCH\n#SBATCH  # text\n"},
		"order":                {script: "#SBATCH -n 4\n#SBATCH -n 5\n", want: []string{"1 ntasks=4", "2 ntasks=5"}},
		"value like an option": {script: "#SBATCH -J -n", want: []string{"1 job-name=-n"}},
		"memory":               {script: "#SBATCH --mem=4G\n#SBATCH --mem-per-cpu 1", want: []string{"1 mem=4G", "2 mem-per-cpu=1"}},
		"Kith's own":           {script: "#SBATCH --copies=3 --label a=b --output-file 'x*' --on-site-lost=race", want: []string{"1 copies=3", "1 label=a=b", "1 output-file=x*", "1 on-site-lost=race"}},

		"open quote":     {script: `#SBATCH -J "a`, problems: []string{`line 1: the quote " is not closed`}},
		"open escape":    {script: `#SBATCH -J a\`, problems: []string{"line 1: a backslash at the end has nothing to escape"}},
		"no value":       {script: "#SBATCH -n", problems: []string{"line 1: option --ntasks (-n) needs a value"}},
		"no value, long": {script: "#SBATCH --mem", problems: []string{"line 1: option --mem needs a value"}},
		"needless value": {script: "#SBATCH --hold=yes", problems: []string{"line 1: option --hold takes no value"}},
		"no option":      {script: "#SBATCH ntasks=4", problems: []string{`line 1: "ntasks=4" is no option; a value with blanks needs quotes`}},
		"dashes":         {script: "#SBATCH - --", problems: []string{`line 1: "-" is no option; a value with blanks needs quotes`, `line 1: "--" is no option; a value with blanks needs quotes`}},
		"unknown":        {script: "#SBATCH --ntask=4", problems: []string{`line 1: unknown option --ntask; "kith submit --help" lists those that there are`}},
		"unknown, short": {script: "#SBATCH -n4 -Z3", want: []string{"1 ntasks=4"}, problems: []string{`line 1: unknown option -Z; "kith submit --help" lists those that there are`}},
		"goes on": {script: "#SBATCH --gres=1 -n 4\n\n#SBATCH --nice -c 2\n", want: []string{"1 ntasks=4", "3 cpus-per-task=2"}, problems: []string{
			"line 1: option --gres of Slurm is not available in Kith: remove it, or submit at a site's own Slurm; Kith hands out processors and memory only",
			"line 3: option --nice of Slurm is not available in Kith: remove it; each site serves its queue by its own policy",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, problems := parseDirectives(tc.script, slurmOptions())
			if got := written(found); !slices.Equal(got, tc.want) {
				t.Errorf("directives %q, want %q", got, tc.want)
			}
			if !slices.Equal(problems, tc.problems) {
				t.Errorf("problems %q, want %q", problems, tc.problems)
			}
		})
	}
}

// submitFlags returns the flags of a new submission.
func submitFlags() (*submission, *pflag.FlagSet) {
	o := newSubmission()
	flags := pflag.NewFlagSet("submit", pflag.ContinueOnError)
	o.register(flags)
	return o, flags
}

// TestSupportedOptions checks that each option leads to a flag of its kind.
func TestSupportedOptions(t *testing.T) {
	t.Parallel()
	_, flags := submitFlags()
	for _, o := range supportedOptions() {
		f := flags.Lookup(o.flag)
		switch {
		case f == nil || f.Hidden:
			t.Errorf("%s: there is no flag %s", o.name(), o.flag)
		case (f.NoOptDefVal != "") != (o.arg == noArgument):
			t.Errorf("%s: its flag and it differ in whether they take a value", o.name())
		case o.short != 0 && f.Shorthand != string(o.short):
			t.Errorf("%s: the flag's short name is %q", o.name(), f.Shorthand)
		}
	}
}

// TestUnsupportedOptions checks for each of Slurm's other options and of those that are not
// built yet, in each of its forms, that a script and the command line with it are refused by name.
func TestUnsupportedOptions(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, o := range slurmOptions() {
		for _, name := range []string{"--" + o.long, "-" + string(o.short)} {
			if seen[name] && name != "-\x00" {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
		if o.flag != "" {
			continue
		}
		if o.remedy == "" || strings.HasSuffix(o.remedy, ".") {
			t.Errorf("%s: remedy %q", o.name(), o.remedy)
		}
		for _, form := range forms(o) {
			found, problems := parseDirectives("#!/bin/sh\n#SBATCH "+strings.Join(form, " ")+" --hold\n", slurmOptions())
			want := "line 2: option " + o.name() + " of Slurm is not available in Kith: " + o.remedy
			if o.unbuilt {
				want = "line 2: option " + o.name() + " is not built yet: " + o.remedy
			}
			if len(problems) != 1 || problems[0] != want || len(found) != 1 || found[0].option.long != "hold" {
				t.Errorf("%q in a script: %v, %q", form, written(found), problems)
			}
			if strings.HasPrefix(o.remedy, commandOnly) || o.long == "input" && form[0][1] == '-' {
				continue // the command line has it
			}
			_, flags := submitFlags()
			if err := flags.Parse(form); err == nil || !strings.Contains(err.Error(), want[len("line 2: "):]) {
				t.Errorf("%q on the command line: %v", form, err)
			}
		}
	}
}

// forms lists the ways to write an option.
func forms(o option) [][]string {
	var list [][]string
	if o.arg != takesArgument {
		list = append(list, []string{"--" + o.long})
		if o.short != 0 {
			list = append(list, []string{"-" + string(o.short)})
		}
	}
	if o.arg != noArgument {
		list = append(list, []string{"--" + o.long + "=1"})
	}
	if o.arg == takesArgument {
		list = append(list, []string{"--" + o.long, "1"})
		if o.short != 0 {
			list = append(list, []string{"-" + string(o.short), "1"}, []string{"-" + string(o.short) + "1"})
		}
	}
	return list
}

func FuzzParseDirectives(f *testing.F) {
	f.Add("#!/bin/sh\n#SBATCH -n4 --mem='1 G' # text\n\necho\n#SBATCH -x")
	f.Add("#SBATCH -HWJ\\ \"a\n#SBATCH --array")
	options := slurmOptions()
	f.Fuzz(func(t *testing.T, script string) {
		found, problems := parseDirectives(script, options)
		lines := strings.Split(script, "\n")
		for _, d := range found {
			if d.line < 1 || d.line > len(lines) || !strings.HasPrefix(lines[d.line-1], "#SBATCH") {
				t.Fatalf("%v in line %d, which is no directive", d, d.line)
			}
			if d.option.flag == "" {
				t.Fatalf("%v was accepted", d)
			}
		}
		for _, p := range problems {
			if !strings.HasPrefix(p, "line ") {
				t.Fatalf("problem %q names no line", p)
			}
		}
		// What is put in quotes comes out as it was.
		if !strings.ContainsAny(script, "\n\r") {
			quoted := "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(script) + "'"
			found, problems := parseDirectives("#SBATCH -J "+quoted, options)
			if len(problems) > 0 || len(found) != 1 || found[0].value != script {
				t.Fatalf("%s was read as %v, %q", quoted, written(found), problems)
			}
		}
	})
}
