package main

import (
	"errors"
	"fmt"
	"strings"
)

// An argument says whether an option takes one.
type argument int

const (
	noArgument argument = iota
	takesArgument
	mayTakeArgument // only as --option=ARGUMENT
)

// An option is one that sbatch, or kith submit in its place, has.
type option struct {
	long  string
	short byte // 0 if there is none
	arg   argument
	// flag is what does the same in kith submit; "" if nothing does.
	flag string
	// remedy is what to do without it.
	remedy string
	// unbuilt says that Kith itself is to have it and does not yet.
	unbuilt bool
}

// A directive is an option in an #SBATCH line of a script.
type directive struct {
	line   int
	option *option
	value  string // "true" for an option that takes none
}

// String returns the directive as one would write it, without its value.
func (d directive) String() string { return d.option.name() }

func (o *option) name() string {
	if o.short != 0 && o.long != "" {
		return fmt.Sprintf("--%s (-%c)", o.long, o.short)
	}
	if o.short != 0 {
		return fmt.Sprintf("-%c", o.short)
	}
	return "--" + o.long
}

// parseDirectives returns the options in the #SBATCH lines of a script, in
// their order, and all that is wrong with them, each as "line N: …".
//
// As sbatch does, it reads the lines up to the first that is neither blank nor
// a comment. In a line, blanks separate words, ' and " quote, a backslash
// takes the next character as it is, and a # that is neither quoted nor
// escaped begins a comment.
func parseDirectives(script string, options []option) (found []directive, problems []string) {
	number := 0
	for line := range strings.Lines(script) {
		number++
		line = strings.TrimRight(line, "\r\n")
		rest, ok := directiveText(line)
		if !ok {
			if text := strings.TrimSpace(line); text != "" && text[0] != '#' {
				break
			}
			continue
		}
		words, err := splitWords(rest)
		var directives []directive
		var errs []error
		if err == nil {
			directives, errs = parseWords(words, options)
		} else {
			errs = []error{err}
		}
		for _, d := range directives {
			d.line = number
			found = append(found, d)
		}
		for _, err := range errs {
			problems = append(problems, fmt.Sprintf("line %d: %v", number, err))
		}
	}
	return found, problems
}

// directiveText returns what follows #SBATCH.
func directiveText(line string) (string, bool) {
	rest, ok := strings.CutPrefix(line, "#SBATCH")
	if !ok || rest != "" && !strings.ContainsAny(rest[:1], " \t-") {
		return "", false // also "#SBATCHES", an innocent comment
	}
	return rest, true
}

// splitWords splits the text of a directive.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, byte(0)
	end := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\':
			if i++; i == len(text) {
				return nil, errors.New(`a backslash at the end has nothing to escape`)
			}
			word.WriteByte(text[i])
			inWord = true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case c == '#':
			end()
			return words, nil
		case c == ' ' || c == '\t':
			end()
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", quote)
	}
	end()
	return words, nil
}

// parseWords reads the words of one line as options. After a word that cannot
// be understood it goes on with the next, to find all mistakes at once.
func parseWords(words []string, options []option) (found []directive, errs []error) {
	p := wordParser{words: words, options: options}
	for len(p.words) > 0 {
		word := p.words[0]
		p.words = p.words[1:]
		switch {
		case len(word) > 2 && word[:2] == "--":
			p.long(word[2:])
		case len(word) > 1 && word[0] == '-' && word != "--":
			p.short(word[1:])
		default:
			p.errs = append(p.errs, fmt.Errorf("%q is no option; a value with blanks needs quotes", word))
		}
	}
	return p.found, p.errs
}

type wordParser struct {
	words   []string // still to be read
	options []option
	found   []directive
	errs    []error
}

// long reads --name, --name=value or --name value.
func (p *wordParser) long(text string) {
	name, value, hasValue := strings.Cut(text, "=")
	o := p.find(func(o *option) bool { return o.long == name })
	switch {
	case o == nil:
		p.errs = append(p.errs, fmt.Errorf("unknown option --%s; \"kith submit --help\" lists those that there are", name))
	case hasValue && o.arg == noArgument:
		p.errs = append(p.errs, fmt.Errorf("option --%s takes no value", name))
	default:
		p.take(o, value, hasValue)
	}
}

// short reads a cluster of one-letter options, the last of which may have a
// value: -H, -n4, -n 4, -n=4, -Hn4.
func (p *wordParser) short(cluster string) {
	for i := range len(cluster) {
		o := p.find(func(o *option) bool { return o.short == cluster[i] })
		if o == nil {
			p.errs = append(p.errs, fmt.Errorf("unknown option -%c; \"kith submit --help\" lists those that there are", cluster[i]))
			return
		}
		if o.arg == takesArgument {
			rest := cluster[i+1:]
			p.take(o, strings.TrimPrefix(rest, "="), rest != "")
			return
		}
		p.take(o, "", false)
	}
}

// take adds an option, with the next word as its value if it still needs one.
func (p *wordParser) take(o *option, value string, hasValue bool) {
	if o.arg == takesArgument && !hasValue {
		if len(p.words) == 0 {
			p.errs = append(p.errs, fmt.Errorf("option %s needs a value", o.name()))
			return
		}
		value, p.words = p.words[0], p.words[1:]
	}
	if o.flag == "" {
		p.errs = append(p.errs, o.unsupported())
		return
	}
	if o.arg == noArgument {
		value = "true"
	}
	p.found = append(p.found, directive{option: o, value: value})
}

func (p *wordParser) find(is func(*option) bool) *option {
	for i := range p.options {
		if is(&p.options[i]) {
			return &p.options[i]
		}
	}
	return nil
}

// unsupported is the error for an option that kith does not have.
func (o *option) unsupported() error {
	if o.unbuilt {
		return fmt.Errorf("option %s is not built yet: %s", o.name(), o.remedy)
	}
	return fmt.Errorf("option %s of Slurm is not available in Kith: %s", o.name(), o.remedy)
}
