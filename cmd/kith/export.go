package main

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"kith/internal/cli"
)

// exports says which variables of the caller a job gets.
type exports struct {
	all   bool
	given []variable
}

// A variable is one with a value, or one whose value is the caller's.
type variable struct {
	name, value string
	hasValue    bool
}

// parseExport reads ALL, NONE, or VAR[=VALUE] separated by commas, with ALL
// among them for all others. Quotes keep commas in a value together.
func parseExport(text string) (exports, error) {
	parts, err := splitList(text)
	if err != nil {
		return exports{}, err
	}
	var e exports
	for _, part := range parts {
		name, value, hasValue := strings.Cut(part, "=")
		switch {
		case part == "ALL":
			e.all = true
		case part == "NONE" || part == "NIL":
			if len(parts) > 1 {
				return exports{}, fmt.Errorf("%s stands alone", part)
			}
		case name == "":
			return exports{}, errors.New("write ALL, NONE or VAR[=VALUE][,VAR[=VALUE]...]")
		default:
			e.given = append(e.given, variable{name: name, value: value, hasValue: hasValue})
		}
	}
	return e, nil
}

// splitList splits at commas that are not in quotes and drops the quotes.
func splitList(text string) ([]string, error) {
	var parts []string
	var part strings.Builder
	quote := byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0 && c == ',':
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(c)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", quote)
	}
	return append(parts, part.String()), nil
}

// environment returns the variables that a job gets of the caller's.
func (e exports) environment(environ []string) (map[string]string, error) {
	env := make(map[string]string)
	if e.all {
		for _, entry := range environ {
			if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
				env[name] = value
			}
		}
	}
	for _, v := range e.given {
		if !v.hasValue {
			value, ok := cli.Lookup(environ, v.name)
			if !ok {
				return nil, cli.Usagef("--export %s: there is no such variable here; give it a value with %s=VALUE", v.name, v.name)
			}
			v.value = value
		}
		env[v.name] = v.value
	}
	for name, value := range env {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return nil, cli.Usagef("--export: variable %q is not UTF-8 text; unset it, or name the variables that the job needs", name)
		}
	}
	if len(env) == 0 {
		return nil, nil
	}
	return env, nil
}
